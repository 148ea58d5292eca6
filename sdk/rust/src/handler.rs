//! From handlers to what the engine starts.

use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use crate::arguments;
use crate::call::Call;
use crate::engine::{Code, Entered};
use crate::error::Error;
use crate::trace;

/// An async handler that takes a type.
pub(crate) fn typed<I, O, T, F, H>(handler: H, encode: fn(O) -> Result<T, Error>) -> Code<T>
where
    I: DeserializeOwned + Send + 'static,
    O: Send + 'static,
    T: Send + 'static,
    F: Future<Output = Result<O, Error>> + Send + 'static,
    H: Fn(I, Call) -> F + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    raw(
        move |call: Call| {
            let handler = Arc::clone(&handler);
            async move { handler(arguments::read(call.arguments())?, call).await }
        },
        encode,
    )
}

/// An async handler that reads the arguments itself.
pub(crate) fn raw<O, T, F, H>(handler: H, encode: fn(O) -> Result<T, Error>) -> Code<T>
where
    O: Send + 'static,
    T: Send + 'static,
    F: Future<Output = Result<O, Error>> + Send + 'static,
    H: Fn(Call) -> F + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |call, runtime, name| {
        let handler = Arc::clone(&handler);
        Entered::new(|returned| {
            let span = call.span(name);
            let traced = call.clone();
            let running = async move { encode(handler(call).await?) };
            runtime.spawn(async move {
                let _returned = returned;
                trace::within(&traced, running.instrument(span)).await
            })
        })
    })
}

/// A handler that blocks.
pub(crate) fn blocking<I, O, T, H>(handler: H, encode: fn(O) -> Result<T, Error>) -> Code<T>
where
    I: DeserializeOwned + Send + 'static,
    O: Send + 'static,
    T: Send + 'static,
    H: Fn(I, Call) -> Result<O, Error> + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |call, runtime, name| {
        let handler = Arc::clone(&handler);
        Entered::new(|returned| {
            runtime.spawn_blocking(move || {
                let _returned = returned;
                let span = call.span(name);
                let traced = call.clone();
                span.in_scope(|| trace::within_blocking(&traced, || encode(handler(arguments::read(call.arguments())?, call)?)))
            })
        })
    })
}
