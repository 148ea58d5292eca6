use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ending::Ending;
use super::inflight::Held;
use super::leases::Lease;
use super::registered::{Code, Registered};
use super::running::{Running, Straggler, Surroundings};
use super::uncertainty::{Resolution, resolve};
use super::worker::Worker;
use super::{Delivered, Link, LinkError, about, attempt, now_ms, report, until, verification, wording};
use crate::verdict::Verdict;
use crate::wire::calls::Dispatch;
use crate::wire::requests::Standing;
use crate::{Effects, OnUncertain};

/// How many deliveries of one hand-over may end without an outcome.
pub(super) const CRASH_LIMIT: u64 = 3;
/// Keeps a call that nobody here serves from going round at full speed.
const UNSERVED: Duration = Duration::from_millis(250);
/// The waits between look-ups that failed, doubling.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// One delivered call on its way through the executor.
pub(super) struct Delivery<'w, L> {
    worker: &'w Worker<L>,
    message: Arc<dyn Delivered>,
    deliveries: u64,
    transit: Duration,
    /// It has a deadline.
    d: Arc<Dispatch>,
    held: Held,
    lease: Lease,
    at: Surroundings,
    stragglers: Vec<Straggler>,
}

impl<'w, L: Link> Delivery<'w, L> {
    pub(super) fn new(
        worker: &'w Worker<L>,
        message: Arc<dyn Delivered>,
        (deliveries, transit): (u64, Duration),
        d: Dispatch,
        held: Held,
        lease: Lease,
    ) -> Self {
        let at = Surroundings { handlers: worker.handlers.clone(), cancelled: held.cancelled.clone(), hard: worker.hard.clone() };
        Self { worker, message, deliveries, transit, d: Arc::new(d), held, lease, at, stragglers: Vec::new() }
    }

    /// Takes the call to its end: run it, or answer it without, report, ack. The order of the last two is what loses no result.
    pub(super) async fn handle(mut self, f: Option<&Registered>) {
        let ending = self.decide(f).await;
        self.settle(ending).await;
        let Self { worker, stragglers, lease, held, .. } = self;
        drop((lease, held));
        for straggler in stragglers {
            if straggler.leave().await {
                worker.abandoned.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Runs the call, unless there is a reason to end it without.
    async fn decide(&mut self, f: Option<&Registered>) -> Ending {
        let Some(f) = f else {
            return self.unserved().await;
        };
        let end = if self.may_have_run() {
            self.again(f).await
        } else if self.held.noticed {
            self.wanted().await
        } else {
            None
        };
        if let Some(end) = end {
            return end;
        }
        if self.held.cancelled.is_cancelled() {
            return Ending::dropped("cancelled");
        }
        if self.worker.soft.is_cancelled() {
            return Ending::released();
        }
        if self.expired() {
            return Ending::failed("deadline", wording::EXPIRED);
        }
        let doubtful = self.worker.leases.doubtful(Instant::now()) || self.worker.leases.late(self.transit);
        if doubtful && f.choice(&self.d) != OnUncertain::Rerun {
            return self.stale(f);
        }
        let mut running = Running::enter(&f.run, "function", f, &self.d, self.may_have_run(), &self.at);
        let ending = attempt::ending(&mut running, f, &self.d, &self.at).await;
        self.stragglers.push(running.straggler());
        ending
    }

    fn may_have_run(&self) -> bool {
        self.deliveries > 1 || self.d.uncertain
    }

    fn expired(&self) -> bool {
        self.d.deadline_ms.is_some_and(|deadline| now_ms() >= deadline)
    }

    /// Ends a call that may be with another executor by now: the one that has it decides, or the next one after this lease.
    fn stale(&self, f: &Registered) -> Ending {
        let transit_ms = self.transit.as_millis();
        about!(
            warn,
            self.d,
            transit_ms,
            "the process or its connection stood still for about a lease; a call that may be with another executor is not started"
        );
        if f.choice(&self.d) == OnUncertain::Fail {
            return Ending::failed("unknown_outcome", wording::UNKNOWN_OUTCOME);
        }
        Ending::left_to_lease()
    }

    /// Gives back a call of a function that is not handled here, as after a half-done rollout.
    async fn unserved(&self) -> Ending {
        about!(warn, self.d, "call of a function that this executor does not serve; all processes of a pool must serve the same functions");
        tokio::select! {
            () = self.worker.soft.cancelled() => {}
            () = sleep(UNSERVED) => {}
        }
        if self.may_have_run() { Ending::left_to_lease() } else { Ending::released() }
    }

    /// Decides about a call that may have run already; none lets it run.
    async fn again(&mut self, f: &Registered) -> Option<Ending> {
        let standing = self.lookup().await;
        if standing == Some(Standing::Answered) {
            return Some(Ending::dropped("answered"));
        }
        if standing == Some(Standing::Cancelled) || self.held.cancelled.is_cancelled() {
            return Some(Ending::dropped("cancelled"));
        }
        if self.deliveries > CRASH_LIMIT {
            return Some(self.crashed(f));
        }
        if standing.is_none() {
            return Some(self.not_looked_up(f));
        }
        match resolve(f, &self.d) {
            Resolution::Run => None,
            Resolution::End(ending) => Some(ending),
            Resolution::Verify(code) => self.verify(f, code).await,
        }
    }

    /// Asks about a call that a cancel notice came before; none goes on with it.
    async fn wanted(&self) -> Option<Ending> {
        match self.lookup().await {
            Some(Standing::Answered) => Some(Ending::dropped("answered")),
            Some(Standing::Cancelled) => Some(Ending::dropped("cancelled")),
            Some(Standing::Pending | Standing::Unknown) => None,
            // A cancelled call and a stopping executor are seen next.
            None if self.held.cancelled.is_cancelled() || self.worker.soft.is_cancelled() => None,
            None => Some(Ending::failed("deadline", wording::EXPIRED)),
        }
    }

    /// Ends a call whose earlier deliveries all ended without an outcome.
    fn crashed(&self, f: &Registered) -> Ending {
        if f.effects == Effects::None {
            return Ending::failed("crashed", wording::CRASHED);
        }
        if f.choice(&self.d) == OnUncertain::Park {
            let times = self.deliveries - 1;
            return Ending::uncertain(format!("it crashed its executor, or its executor was lost, {times} times in a row"));
        }
        Ending::failed("crashed", format!("{}; {}", wording::CRASHED, wording::UNKNOWN_OUTCOME))
    }

    /// Ends a call about which no dispatcher answered before the executor stopped or the call's deadline passed.
    fn not_looked_up(&self, f: &Registered) -> Ending {
        let stopped = self.worker.soft.is_cancelled();
        if f.choice(&self.d) == OnUncertain::Rerun {
            return if stopped { Ending::released() } else { Ending::failed("deadline", wording::EXPIRED) };
        }
        if stopped && f.verifiable(&self.d) {
            return Ending::left_to_lease();
        }
        Ending::unknown_outcome(f, &self.d, wording::NOT_LOOKED_UP)
    }

    /// Asks the verify handler, with the lease kept; none lets the call run.
    async fn verify(&mut self, f: &Registered, code: &Code<Verdict>) -> Option<Ending> {
        if self.worker.soft.is_cancelled() {
            return Some(Ending::left_to_lease()); // a release would make the call look fresh
        }
        if self.expired() {
            return Some(Ending::unknown_outcome(f, &self.d, wording::NOT_VERIFIED));
        }
        let mut running = Running::enter(code, "verify", f, &self.d, true, &self.at);
        let ending = verification::ending(&mut running, &self.d, &self.at).await;
        self.stragglers.push(running.straggler());
        ending
    }

    /// Asks until a dispatcher answers; none when the call is cancelled, its deadline passes or the executor stops.
    async fn lookup(&self) -> Option<Standing> {
        tokio::select! {
            () = self.worker.soft.cancelled() => None,
            () = self.held.cancelled.cancelled() => None,
            () = sleep(until(self.d.deadline_ms.unwrap_or(u64::MAX))) => None,
            standing = self.ask() => Some(standing),
        }
    }

    async fn ask(&self) -> Standing {
        let never = CancellationToken::new();
        let mut wait = RETRY_FIRST;
        loop {
            let error: LinkError = match self.worker.link.lookup(&self.d, &never).await {
                Ok(standing) => return standing,
                Err(e) => e,
            };
            if wait == RETRY_FIRST {
                about!(warn, self.d, error = error.to_string(), "no dispatcher says whether a call is still wanted; asking on");
            }
            sleep(wait).await;
            wait = (2 * wait).min(RETRY_LAST);
        }
    }

    /// Reports and acks as the ending says.
    async fn settle(&self, ending: Ending) {
        let Ending { outcome, keep, reason } = ending;
        if let Some(outcome) = outcome
            && !report::store(&*self.worker.link, &self.d, &self.lease, outcome, &self.worker.reporting).await
        {
            return;
        }
        if !keep {
            self.message.ack();
        }
        about!(debug, self.d, reason, "call ended");
    }
}
