//! Tests of the public interface, and of the SDK as a whole against callfan itself.

mod conformance;
mod functions;
mod guide;
mod programs;
#[cfg(feature = "opentelemetry")]
mod trace;
