use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;

use super::{Delivered, now_ms};

const DEFAULT_ACK_WAIT: Duration = Duration::from_secs(30);
/// How long it takes at most to read what arrived while the process stood still.
const DOUBT: Duration = Duration::from_secs(1);

/// Extends the leases of all held calls every third of the lease.
pub(super) struct Leases {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    held: HashMap<u64, (u64, Arc<dyn Delivered>)>,
    next: u64,
    ack_wait: Duration,
    beaten: Option<Instant>,
    doubt_until: Option<Instant>,
}

/// The hold on one delivered call, until it is dropped.
pub(super) struct Lease {
    leases: Arc<Leases>,
    id: u64,
}

impl Leases {
    pub(super) fn new() -> Self {
        let state = State { held: HashMap::new(), next: 0, ack_wait: DEFAULT_ACK_WAIT, beaten: None, doubt_until: None };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_ack_wait(&self, ms: u64) {
        let mut state = self.state();
        state.ack_wait = if ms > 0 { Duration::from_millis(ms) } else { DEFAULT_ACK_WAIT };
        // No call comes before this: a standstill that begins before the first beat shows, too.
        state.beaten.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_one();
    }

    /// Beats for ever.
    pub(super) async fn keep(&self) {
        loop {
            self.beat(Instant::now());
            let third = self.state().ack_wait / 3;
            tokio::select! {
                () = sleep(third.max(Duration::from_millis(1))) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Keeps extending until then, milliseconds since 1970, or until what is returned is dropped.
    pub(super) fn hold(self: &Arc<Self>, message: &Arc<dyn Delivered>, until_ms: u64) -> Lease {
        let mut state = self.state();
        state.next += 1;
        let id = state.next;
        state.held.insert(id, (until_ms, Arc::clone(message)));
        Lease { leases: Arc::clone(self), id }
    }

    /// Whether a call that is about to be started may be with another executor: this process stood still for most of a lease,
    /// and what was delivered before is only read now. Its delivery count was true when it was sent.
    pub(super) fn doubtful(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.alive(now);
        state.doubt_until.is_some_and(|until| now < until)
    }

    /// Whether a call that was on its way for so long may be with another executor: its lease began when the server sent it.
    /// Half a lease is left for what comes until the first renewal arrives.
    pub(super) fn late(&self, transit: Duration) -> bool {
        transit > self.state().ack_wait / 2
    }

    pub(super) fn beat(&self, now: Instant) {
        let mut state = self.state();
        state.alive(now);
        let now_ms = now_ms();
        for (until_ms, message) in state.held.values() {
            if now_ms < *until_ms {
                message.in_progress();
            }
        }
    }
}

impl State {
    fn alive(&mut self, now: Instant) {
        let still = self.beaten.map_or(Duration::ZERO, |beaten| now.saturating_duration_since(beaten));
        if still > self.ack_wait * 9 / 10 {
            self.doubt_until = Some(now + DOUBT);
        }
        if still > self.ack_wait / 2 {
            let still_ms = still.as_millis();
            tracing::warn!(still_ms, "the process stood still, or its machine is overloaded");
        }
        self.beaten = Some(now);
    }
}

impl Lease {
    /// Holds it until then, milliseconds since 1970, if that is later.
    pub(super) fn hold_until(&self, ms: u64) {
        if let Some((until_ms, _)) = self.leases.state().held.get_mut(&self.id) {
            *until_ms = ms.max(*until_ms);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.state().held.remove(&self.id);
    }
}
