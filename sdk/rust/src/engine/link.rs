//! What a running executor needs of the queue.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::{PermissionDenied, RunError};
use crate::wire::calls::{Dispatch, NotACall};
use crate::wire::outcome::{InvalidOutcome, Outcome};
use crate::wire::requests::{Binding, Definition, Standing};
use crate::{CallKey, wire::texts::duration};

/// A delivered message.
pub(crate) struct Taken {
    pub(crate) call: Result<Dispatch, NotACall>,
    pub(crate) deliveries: u64,
    /// The longest that it may have been on its way.
    pub(crate) transit: Duration,
    pub(crate) message: Arc<dyn Delivered>,
}

/// What is said about a delivered message. Nothing waits.
pub(crate) trait Delivered: Send + Sync {
    /// Starts the lease again.
    fn in_progress(&self);
    /// Removes the call from the stream.
    fn ack(&self);
    /// Removes a message that is no call.
    fn term(&self, reason: &str);
}

/// Takes each message of a pull, also one that comes after its pull was given up.
pub(crate) type Deliver = Arc<dyn Fn(Taken) + Send + Sync>;

/// Something that the queue did not do now.
#[derive(Debug)]
pub(crate) enum LinkError {
    Denied(PermissionDenied),
    NotConnected,
    /// The token that was given was cancelled first.
    GivenUp,
    /// The outcome is larger than the server takes.
    TooLarge {
        size: usize,
        limit: usize,
    },
    Invalid(InvalidOutcome),
    /// A pull ended early for a reason that passes; the link paces itself.
    PullAgain(String),
    /// The pool's consumer does not exist.
    Unbound(String),
    NoAnswer {
        subject: String,
        within: Duration,
    },
    Other(String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denied) => denied.fmt(f),
            Self::NotConnected => f.write_str("not connected to NATS"),
            Self::GivenUp => f.write_str("given up"),
            Self::TooLarge { size, limit } => write!(f, "result too large ({size} bytes, limit {limit})"), // for the model
            Self::Invalid(InvalidOutcome(why)) | Self::PullAgain(why) | Self::Other(why) => f.write_str(why),
            Self::Unbound(consumer) => write!(f, "the consumer {consumer} does not exist"),
            Self::NoAnswer { subject, within } => write!(f, "no answer on {subject} within {}", duration(*within)),
        }
    }
}

/// A connection to the queue.
pub(crate) trait Link: Send + Sync + 'static {
    /// Declares the functions. It waits while no dispatcher answers; none when the token was cancelled first.
    fn register(&self, definitions: &[Definition], until: &CancellationToken) -> impl Future<Output = Result<Option<Binding>, RunError>> + Send;

    /// Asks for up to `n` calls and hands each over as it arrives. It returns when all came or the pull ended.
    fn pull(&self, binding: &Binding, n: usize, until: &CancellationToken, deliver: Deliver) -> impl Future<Output = Result<(), LinkError>> + Send;

    /// Asks a dispatcher about the call, once.
    fn lookup(&self, d: &Dispatch, until: &CancellationToken) -> impl Future<Output = Result<Standing, LinkError>> + Send;

    /// Publishes the outcome, once, and waits until the stream stored it.
    fn report(&self, d: &Dispatch, outcome: &Outcome, until: &CancellationToken) -> impl Future<Output = Result<(), LinkError>> + Send;

    /// Calls back with each cancel notice about the functions, and its reason.
    fn on_cancel(&self, functions: &[String], cancelled: Arc<dyn Fn(CallKey, String) + Send + Sync>) -> impl Future<Output = ()> + Send;

    /// Ends the connection after what was sent has left.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
