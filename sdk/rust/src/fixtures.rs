//! protocol/fixtures of the repository, for tests.

use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value;

fn path(of: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocol/fixtures")).join(of)
}

/// The exact bytes of a file.
pub(crate) fn bytes(file: &str) -> Bytes {
    std::fs::read(path(file)).unwrap_or_else(|e| panic!("{file} cannot be read: {e}")).into()
}

/// A file of JSON.
pub(crate) fn json(file: &str) -> Value {
    serde_json::from_slice(&bytes(file)).unwrap_or_else(|e| panic!("{file} is no JSON: {e}"))
}

/// Runs a test for each case of an index. A case that fails is named in the output before the panic.
pub(crate) fn each(index: &str, test: impl Fn(&Value)) {
    let cases = json(index)["cases"].as_array().unwrap_or_else(|| panic!("{index} has no cases")).clone();
    assert!(!cases.is_empty(), "{index} has no cases");
    for case in &cases {
        eprintln!("{index}: {}", case["name"]);
        test(case);
    }
}

/// A text of a case; empty when it is not there.
pub(crate) fn text<'c>(case: &'c Value, name: &str) -> &'c str {
    case[name].as_str().unwrap_or_default()
}
