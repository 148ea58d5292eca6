//! What is on the wire: docs/protocol.md, without a connection.

pub(crate) mod calls;
pub(crate) mod names;
pub(crate) mod outcome;
pub(crate) mod pulls;
pub(crate) mod requests;
pub(crate) mod texts;

#[cfg(test)]
mod tests;
