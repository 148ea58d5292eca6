//! The link over NATS.

mod asking;
mod connecting;
mod connection;
mod denials;
mod line;
mod link;
mod outbox;
mod puller;
mod transit;

pub(crate) use connecting::{Connecting, Credentials, Customize, Tls};
pub(crate) use link::{LinkSettings, NatsLink};
