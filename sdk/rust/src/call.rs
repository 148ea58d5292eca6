use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::wire::calls::Dispatch;

/// The three ids that name a call for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    /// The session's id.
    pub session_id: String,
    /// The turn's id.
    pub turn_id: String,
    /// The call's id.
    pub call_id: String,
}

/// What a handler sees of its call. Clones are of the same call.
#[derive(Clone)]
pub struct Call {
    dispatch: Arc<Dispatch>,
    deadline_ms: u64,
    uncertain: bool,
    cancellation: CancellationToken,
}

impl Call {
    pub(crate) fn new(dispatch: Arc<Dispatch>, deadline_ms: u64, uncertain: bool, cancellation: CancellationToken) -> Self {
        Self { dispatch, deadline_ms, uncertain, cancellation }
    }

    /// The ids of the call.
    #[must_use]
    pub fn key(&self) -> &CallKey {
        &self.dispatch.key
    }

    /// The name of the function.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.dispatch.function
    }

    /// The arguments, byte for byte as the model wrote them: with every digit of every number.
    #[must_use]
    pub fn arguments(&self) -> &[u8] {
        &self.dispatch.arguments
    }

    /// The number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.dispatch.attempt
    }

    /// A key for downstreams, the same for all attempts of the call: what was done under it need not be done again.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.dispatch.idempotency_key
    }

    /// When the handler's time ends.
    #[must_use]
    pub fn deadline(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.deadline_ms)
    }

    /// The time that is left until the deadline; zero after it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline().duration_since(SystemTime::now()).unwrap_or_default()
    }

    /// Whether an earlier run of the call may have taken effect.
    #[must_use]
    pub fn uncertain(&self) -> bool {
        self.uncertain
    }

    /// Is cancelled when the handler's time is over, when the call was cancelled, and at the executor's hard stop. What the
    /// handler returns afterwards is ignored. An async handler that goes on for more than a second is dropped.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Waits for the [cancellation](Self::cancellation).
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.cancellation.cancelled()
    }

    /// Whether the [cancellation](Self::cancellation) came. For handlers that block.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The W3C trace context of the call.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.dispatch.traceparent.as_deref()
    }

    /// The state that goes with [`traceparent`](Self::traceparent).
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.dispatch.tracestate.as_deref()
    }

    /// A span of `tracing` with the ids of the call, in which its handler runs.
    pub(crate) fn span(&self, handler: &'static str) -> tracing::Span {
        let key = self.key();
        tracing::info_span!(
            "function",
            handler,
            session_id = key.session_id,
            turn_id = key.turn_id,
            call_id = key.call_id,
            function = self.function(),
            attempt = self.attempt()
        )
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.dispatch).finish()
    }
}
