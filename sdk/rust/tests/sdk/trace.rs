//! Spans of OpenTelemetry.

use callfan::testing::Invocation;
use callfan::{Error, Executor, Function};
use opentelemetry::trace::{Status, TraceContextExt as _};
use opentelemetry::{Context, global};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use serde_json::{Map, Value};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_handler_is_a_span_below_the_trace_of_its_call() {
    let spans = InMemorySpanExporter::default();
    global::set_text_map_propagator(TraceContextPropagator::new());
    global::set_tracer_provider(SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build());
    let trace = |_: Map<String, Value>, _| async {
        tokio::task::yield_now().await;
        Ok(Context::current().span().span_context().trace_id().to_string())
    };
    let fails = |_: Map<String, Value>, _| Err::<(), _>(Error::failure(Context::current().span().span_context().span_id().to_string()));
    let executor = Executor::new("test").function(Function::new("traced", trace)).function(Function::blocking("failing", fails));
    let traced = Invocation::of(&executor, "traced").traceparent(PARENT).run().await;
    assert_eq!(traced.text(), "4bf92f3577b34da6a3ce929d0e0e4736");
    let failing = Invocation::of(&executor, "failing").traceparent(PARENT).run().await;
    let finished = spans.get_finished_spans().unwrap();
    let [of_traced, of_failing] = ["function traced", "function failing"].map(|name| finished.iter().find(|span| span.name == name).unwrap());
    assert_eq!(of_traced.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert_eq!((&of_traced.status, of_traced.attributes.len()), (&Status::Unset, 5));
    assert_eq!((&of_failing.status, of_failing.span_context.span_id().to_string().as_str()), (&Status::error(""), failing.error()));
}
