//! The no-op executor on the Rust SDK.

use callfan::{Call, Effects, Error, Executor, Function, RunError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {
    #[allow(dead_code, reason = "it is what arrives")]
    text: String,
}

async fn noop(_: Input, _: Call) -> Result<&'static str, Error> {
    Ok("ok")
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let concurrency = std::env::var("BENCH_CONCURRENCY").ok().and_then(|n| n.parse().ok()).expect("BENCH_CONCURRENCY is a number");
    let function = Function::new("noop_rust", noop).effects(Effects::None);
    Executor::new("bench-rust").concurrency(concurrency).function(function).run().await
}
