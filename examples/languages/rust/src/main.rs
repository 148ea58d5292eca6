//! Answers `greet_rust`, one of the five languages of callfan demo --languages.

use callfan::{Call, Effects, Error, Executor, Function, RunError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// who is greeted
    name: String,
}

async fn greet(person: Person, _: Call) -> Result<String, Error> {
    Ok(format!("Hello, {}, from Rust.", person.name))
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let function = Function::new("greet_rust", greet).description("Greet somebody from Rust.").effects(Effects::None);
    Executor::new("greeters-rust").function(function).run().await
}
