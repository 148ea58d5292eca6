//! The conformance suite against the conformance executor of this SDK.

use std::path::Path;

use serde_json::{Value, json};

use crate::programs::{Running, callfan};

/// Cargo builds examples before tests, beside them.
fn executor() -> String {
    let test = std::env::current_exe().expect("the path of this test");
    let path = test.parent().and_then(Path::parent).expect("the directory of the profile").join("examples/conformance");
    assert!(path.exists(), "{} does not exist; remedy: run cargo test without --test, or cargo build --examples first", path.display());
    path.display().to_string()
}

#[test]
fn passes_in_full() {
    let directory = tempfile::tempdir().unwrap();
    let command = format!("'{}' conformance --executor \"$EXECUTOR\"", callfan());
    let output = Running::run(&command, directory.path(), &[("EXECUTOR", format!("exec '{}'", executor()))]);
    let report: Value = serde_json::from_str(output.lines().rfind(|line| line.starts_with('{')).expect("a line of JSON")).unwrap();
    assert_eq!((&report["language"], &report["level"]), (&json!("rust"), &json!("full")));
    assert_eq!((&report["failed_tests"], &report["skipped_tests"]), (&json!([]), &json!([])), "{output}");
    assert!(report["passed"].as_u64() >= Some(110), "{output}");
}
