#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod call;
mod chance;
mod engine;
mod error;
mod executor;
#[cfg(test)]
mod fixtures;
mod function;
mod handler;
mod nats;
mod output;
mod policy;
mod settings;
mod signals;
pub mod testing;
mod trace;
mod verdict;
mod wire;

pub use async_nats;
pub use tokio_util::sync::CancellationToken;

pub use call::{Call, CallKey};
pub use error::{Error, PermissionDenied, RunError};
pub use executor::Executor;
pub use function::Function;
pub use output::{Content, IntoOutput, Part, RawText};
pub use policy::{Backoff, Effects, OnUncertain};
pub use verdict::Verdict;
