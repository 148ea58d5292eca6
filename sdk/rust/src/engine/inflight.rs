use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::CallKey;
use crate::wire::calls::Dispatch;

/// Knows the calls that this process holds, to find a repeated delivery and the target of a cancel notice.
#[derive(Default)]
pub(super) struct Inflight(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    handovers: HashSet<(CallKey, u64, u64)>,
    by_key: HashMap<CallKey, Vec<(u64, u64, CancellationToken)>>,
    notices: Notices,
}

/// One call in this process, from its delivery to its end.
pub(super) struct Held {
    /// A cancel notice about the call came before it.
    pub(super) noticed: bool,
    /// Nobody waits for it any more.
    pub(super) cancelled: CancellationToken,
    calls: Arc<Inflight>,
    id: (CallKey, u64, u64),
}

impl Inflight {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the call; none when this very hand-over is held already. It is held until what is returned is dropped.
    pub(super) fn add(self: &Arc<Self>, d: &Dispatch) -> Option<Held> {
        let id = d.handover_id();
        let mut calls = self.calls();
        if !calls.handovers.insert(id.clone()) {
            return None;
        }
        let cancelled = CancellationToken::new();
        calls.by_key.entry(d.key.clone()).or_default().push((id.1, id.2, cancelled.clone()));
        Some(Held { noticed: calls.notices.about(&d.key), cancelled, calls: Arc::clone(self), id })
    }

    /// Cancels all attempts of the call, and says whether there was one.
    pub(super) fn cancel(&self, key: &CallKey) -> bool {
        let mut calls = self.calls();
        let Some(held) = calls.by_key.get(key) else {
            calls.notices.note(key.clone());
            return false;
        };
        for (.., cancelled) in held {
            cancelled.cancel();
        }
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut calls = self.calls.calls();
        let (key, attempt, handover) = &self.id;
        calls.handovers.remove(&self.id);
        if let Some(held) = calls.by_key.get_mut(key) {
            held.retain(|(a, h, _)| (a, h) != (attempt, handover));
            if held.is_empty() {
                calls.by_key.remove(key);
            }
        }
    }
}

/// Remembers cancel notices about calls that are not here: a notice may overtake its call.
struct Notices {
    recent: HashSet<CallKey>,
    older: HashSet<CallKey>,
    since: Instant,
}

impl Default for Notices {
    fn default() -> Self {
        Self { recent: HashSet::new(), older: HashSet::new(), since: Instant::now() }
    }
}

impl Notices {
    /// How long, at least, a notice is remembered, and how many.
    const FOR: Duration = Duration::from_secs(30);
    const MOST: usize = 10_000;

    fn note(&mut self, key: CallKey) {
        if self.since.elapsed() > Self::FOR || self.recent.len() >= Self::MOST {
            self.older = std::mem::take(&mut self.recent);
            self.since = Instant::now();
        }
        self.recent.insert(key);
    }

    fn about(&self, key: &CallKey) -> bool {
        self.recent.contains(key) || self.older.contains(key)
    }
}
