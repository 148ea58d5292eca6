use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::wire::pulls;

/// The number of free slots at which a pull does not wait for more.
const PULL_BATCH: i64 = 16;
/// How long a free slot waits for others to be pulled together.
const GATHER: Duration = Duration::from_millis(1);

/// Counts the calls that may still be started.
pub(super) struct Slots {
    worth: i64,
    /// Negative when calls came that nobody asked for any more.
    free: Mutex<i64>,
    released: Notify,
}

impl Slots {
    pub(super) fn new(total: usize) -> Self {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        Self { worth: total.min(PULL_BATCH), free: Mutex::new(total), released: Notify::new() }
    }

    fn free(&self) -> MutexGuard<'_, i64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for free slots, and takes as many as are worth one pull.
    pub(super) async fn take(&self) -> usize {
        loop {
            if let Some(n) = self.try_take(self.worth) {
                return n;
            }
            if *self.free() > 0 {
                sleep(GATHER).await;
                if let Some(n) = self.try_take(1) {
                    return n;
                }
            }
            self.released.notified().await;
        }
    }

    fn try_take(&self, at_least: i64) -> Option<usize> {
        let mut free = self.free();
        if *free < at_least {
            return None;
        }
        let n = usize::try_from(*free).unwrap_or(0).min(pulls::LARGEST);
        *free -= i64::try_from(n).unwrap_or(0);
        Some(n)
    }

    pub(super) fn release(&self, n: usize) {
        *self.free() += i64::try_from(n).unwrap_or(0);
        self.released.notify_one();
    }

    /// Takes a slot that may not be free, for a call that nobody asked for any more.
    pub(super) fn borrow(&self) {
        *self.free() -= 1;
    }
}
