//! OpenTelemetry: a span below the call's trace for each handler, with the feature `opentelemetry`.

#[cfg(not(feature = "opentelemetry"))]
mod spans {
    use std::future::Future;

    use crate::call::Call;

    pub(crate) fn within<F: Future>(_: &Call, handler: F) -> F {
        handler
    }

    pub(crate) fn within_blocking<T>(_: &Call, handler: impl FnOnce() -> T) -> T {
        handler()
    }
}

#[cfg(feature = "opentelemetry")]
mod spans {
    use std::future::Future;

    use opentelemetry::propagation::Extractor;
    use opentelemetry::trace::{FutureExt as _, SpanKind, Status, TraceContextExt as _, Tracer as _};
    use opentelemetry::{Context, KeyValue, global};

    use crate::call::Call;
    use crate::error::Error;

    pub(crate) async fn within<T>(call: &Call, handler: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let ending = Ending(begin(call));
        let result = handler.with_context(ending.0.clone()).await;
        ending.note(result)
    }

    pub(crate) fn within_blocking<T>(call: &Call, handler: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let ending = Ending(begin(call));
        let result = {
            let _attached = ending.0.clone().attach();
            handler()
        };
        ending.note(result)
    }

    fn begin(call: &Call) -> Context {
        let parent = global::get_text_map_propagator(|propagator| propagator.extract(&Headers(call)));
        let tracer = global::tracer("callfan");
        let key = call.key();
        let span = tracer
            .span_builder(format!("function {}", call.function()))
            .with_kind(SpanKind::Consumer)
            .with_attributes([
                KeyValue::new("callfan.session_id", key.session_id.clone()),
                KeyValue::new("callfan.turn_id", key.turn_id.clone()),
                KeyValue::new("callfan.call_id", key.call_id.clone()),
                KeyValue::new("callfan.function", call.function().to_owned()),
                KeyValue::new("callfan.attempt", i64::try_from(call.attempt()).unwrap_or(i64::MAX)),
            ])
            .start_with_context(&tracer, &parent);
        parent.with_span(span)
    }

    /// Ends the span, also when the handler panics or is dropped.
    struct Ending(Context);

    impl Ending {
        fn note<T>(self, result: Result<T, Error>) -> Result<T, Error> {
            if result.is_err() {
                self.0.span().set_status(Status::error("")); // the text may have arguments in it
            }
            result
        }
    }

    impl Drop for Ending {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.span().set_status(Status::error("panic"));
            }
            self.0.span().end();
        }
    }

    struct Headers<'c>(&'c Call);

    impl Extractor for Headers<'_> {
        fn get(&self, name: &str) -> Option<&str> {
            match name {
                "traceparent" => self.0.traceparent(),
                "tracestate" => self.0.tracestate(),
                _ => None,
            }
        }

        fn keys(&self) -> Vec<&str> {
            vec!["traceparent", "tracestate"]
        }
    }
}

pub(crate) use spans::{within, within_blocking};
