use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::Call;
use crate::error::Error;
use crate::output::Output;
use crate::verdict::Verdict;
use crate::wire::calls::Dispatch;
use crate::wire::requests::Definition;
use crate::{Effects, OnUncertain};

/// Starts the user's code in the user's runtime. The last argument names the handler for the log.
pub(crate) type Code<T> = Arc<dyn Fn(Call, &Handle, &'static str) -> Entered<T> + Send + Sync>;

/// The user's code, on its way.
pub(crate) struct Entered<T> {
    pub(super) join: JoinHandle<Result<T, Error>>,
    /// Is cancelled when the code is over: it returned, panicked or was dropped.
    pub(super) returned: CancellationToken,
}

impl<T> Entered<T> {
    /// `start` has to keep what it is given until the code is over.
    pub(crate) fn new(start: impl FnOnce(DropGuard) -> JoinHandle<Result<T, Error>>) -> Self {
        let returned = CancellationToken::new();
        Self { join: start(returned.clone().drop_guard()), returned }
    }
}

/// A function with its handlers.
pub(crate) struct Registered {
    pub(crate) definition: Definition,
    pub(crate) timeout: Duration,
    pub(crate) effects: Effects,
    pub(crate) on_uncertain: OnUncertain,
    pub(crate) run: Code<Output>,
    pub(crate) verify: Option<Code<Verdict>>,
}

impl Registered {
    /// What to do with a call that may have run: as the dispatcher says, or else as the function declares.
    pub(super) fn choice(&self, d: &Dispatch) -> OnUncertain {
        d.on_uncertain.unwrap_or(self.on_uncertain)
    }

    /// Whether an executor may find out what became of the call, so that a stop leaves it to its lease for the next one to ask.
    pub(super) fn verifiable(&self, d: &Dispatch) -> bool {
        match self.choice(d) {
            OnUncertain::Verify => true,
            OnUncertain::Park => self.verify.is_some(),
            OnUncertain::Rerun | OnUncertain::Fail => false,
        }
    }
}
