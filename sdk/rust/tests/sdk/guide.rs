//! Runs docs/executors/rust.md: its commands, its programs, and what it promises.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::programs::{Running, callfan, root};

const SHOP_TESTS: &str = r#"
#[cfg(test)]
mod shop_tests {
    use callfan::testing::{Invocation, Outcome};
    use serde_json::json;

    #[tokio::test]
    async fn orders() {
        let cancel = async |id: i64| Invocation::of(&crate::shop::shop(), "cancel_order").arguments(json!({"id": id})).run().await;
        assert_eq!(cancel(0).await.error(), "there is no order 0");
        assert!(matches!(cancel(503).await, Outcome::Retry { after, .. } if after.as_secs() == 2));
        assert!(cancel(7).await.text().starts_with("cancelled with call_"));
    }

    #[tokio::test]
    async fn payments() {
        let pay = async |amount: f64| Invocation::of(&crate::shop::shop(), "pay").arguments(json!({"amount": amount})).uncertain().run().await;
        assert_eq!(pay(5.0).await.text(), "paid 5");
        assert!(matches!(pay(2e6).await, Outcome::Uncertain { reason } if reason == "ask the bank"));
    }

    #[tokio::test]
    async fn routes() {
        let executor = callfan::Executor::new("routes").function(crate::routes::plan_routes());
        assert_eq!(Invocation::of(&executor, "plan_routes").arguments(json!({"stops": 4})).run().await.text(), "10");
    }
}
"#;

struct Guide {
    text: String,
    ran: Vec<String>,
}

impl Guide {
    fn read() -> Self {
        Self { text: fs::read_to_string(root().join("docs/executors/rust.md")).unwrap(), ran: Vec::new() }
    }

    fn blocks(&self, language: &str) -> Vec<String> {
        let fence = format!("\n```{language}\n");
        let after = self.text.split(&fence).skip(1);
        after.map(|rest| rest.split_once("\n```\n").expect("the end of a block").0.to_owned() + "\n").collect()
    }

    fn block(&self, language: &str, text: &str) -> String {
        let mut found: Vec<String> = self.blocks(language).into_iter().filter(|block| block.contains(text)).collect();
        assert_eq!(found.len(), 1, "blocks of {language} that have {text}");
        found.remove(0)
    }

    /// Commands, with the callfan that was built.
    fn commands(&mut self, text: &str) -> String {
        let block = self.block("sh", text);
        self.ran.push(block.clone());
        block.replace("go run ./cmd/callfan", &format!("'{}'", callfan()))
    }
}

/// Cargo as the guide uses it, but with what was compiled for this test.
fn environment(checkout: &Path) -> Vec<(&'static str, String)> {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().display().to_string();
    vec![
        ("CARGO_TARGET_DIR", target),
        ("CARGO_NET_OFFLINE", "true".into()), // cargo add takes the versions that are here
        ("CARGO_PROFILE_DEV_DEBUG", "false".into()),
        ("CALLFAN_DEV_DIR", checkout.join("state").display().to_string()),
        ("CALLFAN_DEV_NATS_LISTEN", "127.0.0.1:0".into()),
        ("CALLFAN_DEV_SIMULATE_LISTEN", "127.0.0.1:0".into()),
        ("CALLFAN_LISTEN", "127.0.0.1:0".into()),
    ]
}

#[test]
fn the_five_minutes() {
    let mut guide = Guide::read();
    let checkout = tempfile::tempdir().unwrap();
    let checkout = checkout.path();
    let mut environment = environment(checkout);
    let project = checkout.join("customers");
    fs::create_dir(checkout.join("sdk")).unwrap();
    std::os::unix::fs::symlink(root().join("sdk/rust"), checkout.join("sdk/rust")).unwrap();
    Running::run(&guide.commands("cargo new"), checkout, &environment);
    fs::copy(root().join("sdk/rust/Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let program = guide.block("rust", "Answers calls of get_customer");
    fs::write(project.join("src/main.rs"), &program).unwrap();
    Running::run("cargo build", &project, &environment); // so that it starts in time

    let mut dev = Running::start(&guide.commands("callfan dev"), checkout, &environment);
    dev.prints("OPENAI_API_KEY=any");
    environment.push(("NATS_URL", dev.prints("NATS_URL=")));
    environment.push(("CALLFAN_DISPATCHER", dev.prints("health, admin")));
    let mut executor = Running::start(&guide.commands("cargo run"), &project, &environment);
    executor.prints("executor serves");
    let ask = guide.commands("callfan ask").replace("http://127.0.0.1:8421/v1", &dev.prints("OPENAI_BASE_URL="));
    let answer = Running::run(&ask, checkout, &environment);
    assert!(answer.contains(r#"get_customer({"customer_id":"123"}) = "{\"found\":true,\"name\":\"Example Customer\"}""#), "{answer}");
    assert!(answer.contains("Customer 456 was not found."), "{answer}");
    executor.stops();
    dev.stops();

    let tests = guide.block("rust", "mod tests");
    fs::write(project.join("src/main.rs"), format!("{program}\n{tests}\nmod routes;\nmod shop;\n{SHOP_TESTS}")).unwrap();
    fs::write(project.join("src/shop.rs"), guide.block("rust", "pub fn shop()")).unwrap();
    fs::write(project.join("src/routes.rs"), guide.block("rust", "pub fn plan_routes()")).unwrap();
    let output = Running::run(&guide.commands("cargo test"), &project, &environment);
    assert!(output.contains("5 passed; 0 failed; 0 ignored"), "{output}");
    let ran: BTreeSet<_> = guide.ran.iter().collect();
    assert_eq!(ran, guide.blocks("sh").iter().collect(), "a block of commands is not run");
}

#[test]
fn its_program_is_the_example() {
    let example = fs::read_to_string(root().join("examples/rust/src/main.rs")).unwrap();
    assert_eq!(Guide::read().block("rust", "Answers calls of get_customer"), example);
}
