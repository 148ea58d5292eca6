use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::registered::{Code, Entered, Registered};
use super::{about, now_ms, until};
use crate::call::Call;
use crate::error::Error;
use crate::wire::calls::Dispatch;

/// How long a handler may take to return after its cancellation, before its slot is given to another call.
pub(super) const RETURN_GRACE: Duration = Duration::from_secs(1);
/// How long it takes at most to drop a handler that awaits something.
const DROP_GRACE: Duration = Duration::from_millis(100);

/// Where and until when the user's code runs.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// The user's runtime.
    pub(super) handlers: tokio::runtime::Handle,
    /// Nobody waits for the call any more.
    pub(super) cancelled: CancellationToken,
    /// The executor's hard stop.
    pub(super) hard: CancellationToken,
}

/// Why the user's code was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Cancelled,
    Stopped,
}

/// What the user's code returned, or the text of its panic.
pub(super) type Returned<T> = Result<Result<T, Error>, String>;

/// One entry into the user's code, a handler or a verify handler.
pub(super) struct Running<T> {
    pub(super) began_ms: u64,
    pub(super) deadline_ms: u64,
    d: Arc<Dispatch>,
    handler: &'static str,
    entered: Entered<T>,
    cancellation: CancellationToken,
}

impl<T: Send + 'static> Running<T> {
    pub(super) fn enter(code: &Code<T>, handler: &'static str, f: &Registered, d: &Arc<Dispatch>, uncertain: bool, at: &Surroundings) -> Self {
        let began_ms = now_ms();
        let own = u64::try_from(f.timeout.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = began_ms.saturating_add(d.timeout_ms.unwrap_or(own)).min(d.deadline_ms.unwrap_or(u64::MAX));
        let cancellation = CancellationToken::new();
        let call = Call::new(Arc::clone(d), deadline_ms, uncertain, cancellation.clone());
        Self { began_ms, deadline_ms, d: Arc::clone(d), handler, entered: code(call, &at.handlers, handler), cancellation }
    }

    /// Waits for what the code comes to, and says why it was told to end. Nothing is waited for after the end of its time and
    /// after a cancellation, and a moment after the executor's stop.
    pub(super) async fn result(&mut self, at: &Surroundings) -> (Option<Returned<T>>, Option<Cause>) {
        let cause = tokio::select! {
            biased;
            joined = &mut self.entered.join => return (Some(returned(joined)), None),
            () = at.cancelled.cancelled() => Cause::Cancelled,
            () = at.hard.cancelled() => Cause::Stopped,
            () = tokio::time::sleep(until(self.deadline_ms)) => Cause::Timeout,
        };
        self.cancellation.cancel();
        let result = match cause {
            Cause::Stopped => timeout(RETURN_GRACE, &mut self.entered.join).await.ok().map(returned),
            Cause::Timeout | Cause::Cancelled => None,
        };
        (result, Some(cause))
    }

    /// What has to be waited for after the call was settled.
    pub(super) fn straggler(self) -> Straggler {
        let abort = self.entered.join.abort_handle();
        Straggler { d: self.d, handler: self.handler, returned: self.entered.returned, abort, deadline_ms: self.deadline_ms }
    }

    pub(super) fn allowed(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(self.began_ms))
    }
}

fn returned<T>(joined: Result<Result<T, Error>, tokio::task::JoinError>) -> Returned<T> {
    joined.map_err(|e| match e.try_into_panic() {
        Ok(panic) => panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "it panicked".into()),
        Err(_) => "its runtime was shut down".into(),
    })
}

/// The user's code of a call that is settled.
pub(super) struct Straggler {
    d: Arc<Dispatch>,
    handler: &'static str,
    returned: CancellationToken,
    abort: tokio::task::AbortHandle,
    deadline_ms: u64,
}

impl Straggler {
    /// Drops the code after a moment; true when it still goes on. What it returns later is ignored.
    pub(super) async fn leave(self) -> bool {
        if timeout(RETURN_GRACE, self.returned.cancelled()).await.is_ok() {
            return false;
        }
        self.abort.abort();
        let handler = self.handler;
        if timeout(DROP_GRACE, self.returned.cancelled()).await.is_ok() {
            about!(warn, self.d, handler, "handler did not end when it was cancelled; it was dropped");
            return false;
        }
        about!(warn, self.d, handler, "handler does not return; its slot is given to other calls");
        tokio::spawn(async move {
            self.returned.cancelled().await;
            let late_by_ms = now_ms().saturating_sub(self.deadline_ms);
            about!(warn, self.d, handler, late_by_ms, "abandoned handler returned; its result is ignored");
        });
        true
    }
}
