// Answers calls of get_customer.
use callfan::{Call, Effects, Error, Executor, Function, RunError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// the number on the customer's invoices
    customer_id: String,
}

#[derive(Serialize)]
struct Customer {
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
}

async fn get_customer(input: Input, _call: Call) -> Result<Customer, Error> {
    if input.customer_id != "123" {
        return Ok(Customer { found: false, name: None });
    }
    Ok(Customer { found: true, name: Some("Example Customer") })
}

fn executor() -> Executor {
    let function = Function::new("get_customer", get_customer)
        .description("Look up a customer by ID.")
        .effects(Effects::None);
    Executor::new("customers").function(function) // NATS_URL says where; without it nats://127.0.0.1:4222
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    executor().run().await
}
