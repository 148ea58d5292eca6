use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::delivery::{CRASH_LIMIT, Delivery};
use super::inflight::Inflight;
use super::leases::Leases;
use super::registered::Registered;
use super::running::RETURN_GRACE;
use super::slots::Slots;
use super::{Link, LinkError, Taken, about, now_ms, report};
use crate::chance;
use crate::error::RunError;
use crate::wire::requests::{Binding, Definition};

/// How often to register again when the binding does not say, and the least time between two registrations.
const DEFAULT_REFRESH: Duration = Duration::from_secs(30);
const REBIND_PAUSE: Duration = Duration::from_secs(1);
/// How long outcomes may still be reported after the hard stop.
const REPORT_GRACE: Duration = Duration::from_secs(5);
/// The waits after a pull that failed, doubling.
const PULL_RETRY_FIRST: Duration = Duration::from_millis(100);
const PULL_RETRY_LAST: Duration = Duration::from_secs(5);

/// How a worker runs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) pool: String,
    pub(crate) executor_id: String,
    pub(crate) concurrency: usize,
    pub(crate) stop_timeout: Duration,
}

/// One run of an executor over a link.
pub(crate) struct Worker<L> {
    /// No more calls are started.
    pub(super) soft: CancellationToken,
    /// Handlers are interrupted.
    pub(super) hard: CancellationToken,
    /// Outcomes are given up.
    pub(super) reporting: CancellationToken,
    /// Running handlers are not waited for.
    impatient: CancellationToken,
    /// How many handlers did not return.
    pub(super) abandoned: AtomicUsize,
    pub(super) leases: Arc<Leases>,
    pub(super) link: Arc<L>,
    /// The user's runtime.
    pub(super) handlers: Handle,
    functions: HashMap<String, Registered>,
    settings: Settings,
    inflight: Arc<Inflight>,
    slots: Slots,
    tasks: TaskTracker,
    failures: AtomicU32,
    rebind: Notify,
    binding: Mutex<Option<Binding>>,
}

impl<L: Link> Worker<L> {
    /// `soft` begins the stop; `impatient` interrupts running handlers then.
    pub(crate) fn new(
        link: Arc<L>,
        handlers: Handle,
        functions: Vec<Registered>,
        settings: Settings,
        (soft, impatient): (CancellationToken, CancellationToken),
    ) -> Arc<Self> {
        Arc::new(Self {
            soft,
            impatient,
            hard: CancellationToken::new(),
            reporting: CancellationToken::new(),
            abandoned: AtomicUsize::new(0),
            leases: Arc::new(Leases::new()),
            link,
            handlers,
            functions: functions.into_iter().map(|f| (f.definition.name.clone(), f)).collect(),
            slots: Slots::new(settings.concurrency),
            settings,
            inflight: Arc::default(),
            tasks: TaskTracker::new(),
            failures: AtomicU32::new(0),
            rebind: Notify::new(),
            binding: Mutex::new(None),
        })
    }

    /// How many handlers did not return.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Registers, runs calls until the soft stop, and stops in order. It fails when the functions are refused.
    pub(crate) async fn serve(self: &Arc<Self>) -> Result<(), RunError> {
        if !self.register().await? {
            return Ok(()); // stopped before anything began
        }
        let worker = Arc::clone(self);
        let names: Vec<String> = self.definitions().into_iter().map(|definition| definition.name).collect();
        let cancelled = Arc::new(move |key: crate::CallKey, reason: String| {
            if worker.inflight.cancel(&key) {
                tracing::info!(session_id = key.session_id, turn_id = key.turn_id, call_id = key.call_id, reason, "call cancelled");
            }
        });
        self.link.on_cancel(&names, cancelled).await;
        let Settings { pool, executor_id, concurrency, .. } = &self.settings;
        tracing::info!(pool, executor_id, concurrency, functions = self.functions.len(), "executor serves");
        let leases = Arc::clone(&self.leases);
        let beats = tokio::spawn(async move { leases.keep().await });
        tokio::join!(self.keep_registered(), self.keep_pulling(), self.finish());
        beats.abort();
        Ok(())
    }

    /// Waits for the stop and for the calls in hand, and interrupts them after the stop timeout.
    async fn finish(&self) {
        self.soft.cancelled().await;
        let (pool, wait) = (&self.settings.pool, self.settings.stop_timeout);
        tracing::info!(pool, stop_timeout_ms = wait.as_millis(), "executor stops");
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => return,
            () = sleep(wait) => {}
            () = self.impatient.cancelled() => {}
        }
        tracing::warn!(stop_timeout_over = !self.impatient.is_cancelled(), "running handlers are interrupted");
        self.hard.cancel();
        if timeout(RETURN_GRACE + REPORT_GRACE, self.tasks.wait()).await.is_ok() {
            return;
        }
        self.reporting.cancel();
        timeout(RETURN_GRACE + REPORT_GRACE, self.tasks.wait()).await.ok();
    }

    fn definitions(&self) -> Vec<Definition> {
        self.functions.values().map(|f| f.definition.clone()).collect()
    }

    fn binding(&self) -> Option<Binding> {
        self.binding.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn register(&self) -> Result<bool, RunError> {
        let Some(got) = self.link.register(&self.definitions(), &self.soft).await? else {
            return Ok(false);
        };
        if self.binding().is_none_or(|before| before.ack_wait_ms != got.ack_wait_ms) {
            self.leases.set_ack_wait(got.ack_wait_ms);
        }
        *self.binding.lock().unwrap_or_else(PoisonError::into_inner) = Some(got);
        Ok(true)
    }

    /// Registers again as often as the binding says, and when pulls fail.
    async fn keep_registered(&self) {
        while !self.soft.is_cancelled() {
            let refresh = self.binding().map(|b| Duration::from_millis(b.refresh_ms)).filter(|d| !d.is_zero()).unwrap_or(DEFAULT_REFRESH);
            tokio::select! {
                () = self.soft.cancelled() => return,
                () = self.rebind.notified() => {}
                () = sleep(refresh.mul_f64(0.9 + 0.2 * chance::fraction())) => {}
            }
            if let Err(error) = self.register().await {
                tracing::error!(%error, "functions could not be registered again; the earlier registration is used on");
            }
            tokio::select! {
                () = self.soft.cancelled() => return,
                () = sleep(REBIND_PAUSE) => {}
            }
        }
    }

    async fn keep_pulling(self: &Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.soft.cancelled() => return,
                n = self.slots.take() => {
                    let worker = Arc::clone(self);
                    self.tasks.spawn(async move { worker.pull(n).await });
                }
            }
        }
    }

    async fn pull(self: Arc<Self>, n: usize) {
        let Some(binding) = self.binding() else {
            return;
        };
        let pulled = Arc::new(Pulled::default());
        let (worker, counting) = (Arc::clone(&self), Arc::clone(&pulled));
        let deliver = Arc::new(move |taken: Taken| {
            if !counting.count() {
                worker.slots.borrow(); // it came after its pull was given up
            }
            let handling = Arc::clone(&worker);
            let slot = Slot(Arc::clone(&worker));
            worker.tasks.spawn(async move {
                let _slot = slot;
                handling.handle(taken).await;
            });
        });
        match self.link.pull(&binding, n, &self.soft, deliver).await {
            Ok(()) => {
                if self.failures.swap(0, Ordering::Relaxed) > 0 && !self.soft.is_cancelled() {
                    tracing::info!("calls are pulled again");
                }
            }
            Err(_) if self.soft.is_cancelled() => {}
            Err(e) => self.pull_failed(&e).await,
        }
        self.slots.release(n.saturating_sub(pulled.close()));
    }

    /// Waits, longer with every failure in a row, and has the functions registered again: the consumer may be gone.
    async fn pull_failed(&self, error: &LinkError) {
        self.rebind.notify_one();
        if matches!(error, LinkError::PullAgain(_)) {
            return;
        }
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            tracing::warn!(%error, "calls cannot be pulled; trying on");
        }
        let wait = PULL_RETRY_FIRST * 2u32.pow(before.min(10));
        tokio::select! {
            () = self.soft.cancelled() => {}
            () = sleep(wait.min(PULL_RETRY_LAST)) => {}
        }
    }

    pub(super) async fn handle(self: Arc<Self>, taken: Taken) {
        let Taken { call, deliveries, transit, message } = taken;
        let mut d = match call {
            Ok(d) => d,
            Err(fault) => {
                // A newer executor may understand it, so it is left to its lease until the crash limit.
                let removed = deliveries > CRASH_LIMIT;
                tracing::error!(error = fault.0, deliveries, removed, "message is not a call");
                if removed {
                    message.term(&fault.0);
                }
                return;
            }
        };
        let Some(held) = self.inflight.add(&d) else {
            // The run in hand extends this delivery's lease as well, and its ack removes it.
            about!(warn, d, deliveries, "call delivered again while it runs here");
            return;
        };
        let f = self.functions.get(&d.function);
        let timeout_ms = d.timeout_ms.unwrap_or_else(|| f.map_or(0, |f| u64::try_from(f.timeout.as_millis()).unwrap_or(0)));
        let longest = u64::try_from(report::FOR.as_millis()).unwrap_or(0).saturating_add(timeout_ms);
        d.deadline_ms = d.deadline_ms.or_else(|| Some(now_ms().saturating_add(longest)));
        let lease = self.leases.hold(&message, d.deadline_ms.unwrap_or(0));
        Delivery::new(&self, message, (deliveries, transit), d, held, lease).handle(f).await;
    }
}

/// A slot, given back when it is dropped.
struct Slot<L: Link>(Arc<Worker<L>>);

impl<L: Link> Drop for Slot<L> {
    fn drop(&mut self) {
        self.0.slots.release(1);
    }
}

/// Counts the calls of one pull.
#[derive(Default)]
struct Pulled {
    calls: AtomicUsize,
    closed: AtomicBool,
}

impl Pulled {
    /// False when the pull is over. Calls are counted and pulls closed by one thread, that of the engine.
    fn count(&self) -> bool {
        let open = !self.closed.load(Ordering::Acquire);
        if open {
            self.calls.fetch_add(1, Ordering::AcqRel);
        }
        open
    }

    fn close(&self) -> usize {
        self.closed.store(true, Ordering::Release);
        self.calls.load(Ordering::Acquire)
    }
}
