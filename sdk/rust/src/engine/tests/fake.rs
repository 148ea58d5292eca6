//! A queue that is none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::engine::{Deliver, Delivered, Link, LinkError, Settings, Taken, Worker};
use crate::error::RunError;
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;
use crate::wire::requests::{Binding, Definition, Standing};
use crate::{CallKey, Function};

/// A call of the function `f`.
pub(super) fn dispatch(call_id: &str) -> Dispatch {
    Dispatch {
        key: CallKey { session_id: "sess_1".into(), turn_id: "turn_1".into(), call_id: call_id.into() },
        function: "f".into(),
        arguments: Bytes::from_static(b"{}"),
        attempt: 1,
        handover: 1,
        nonce: "1-n".into(),
        result_subject: "fn.result.f.p07".into(),
        idempotency_key: "call_1".into(),
        timeout_ms: None,
        deadline_ms: None,
        traceparent: None,
        tracestate: None,
        uncertain: false,
        on_uncertain: None,
    }
}

pub(super) async fn eventually(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "waited in vain");
        sleep(Duration::from_millis(2)).await;
    }
}

/// A delivered message. Clones are the same message.
#[derive(Clone)]
pub(super) struct FakeMessage {
    call: Dispatch,
    deliveries: u64,
    transit: Duration,
    said: Arc<Said>,
}

#[derive(Default)]
struct Said {
    acked: AtomicBool,
}

impl FakeMessage {
    pub(super) fn new(call: Dispatch) -> Self {
        Self { call, deliveries: 1, transit: Duration::ZERO, said: Arc::default() }
    }

    pub(super) fn deliveries(mut self, deliveries: u64) -> Self {
        self.deliveries = deliveries;
        self
    }

    pub(super) fn transit(mut self, transit: Duration) -> Self {
        self.transit = transit;
        self
    }

    pub(super) fn acked(&self) -> bool {
        self.said.acked.load(Ordering::Relaxed)
    }

    fn taken(self) -> Taken {
        Taken { call: Ok(self.call), deliveries: self.deliveries, transit: self.transit, message: self.said }
    }
}

impl Delivered for Said {
    fn in_progress(&self) {}

    fn ack(&self) {
        self.acked.store(true, Ordering::Relaxed);
    }

    fn term(&self, _: &str) {}
}

type Notice = Arc<dyn Fn(CallKey, String) + Send + Sync>;

struct FakeLink {
    standing: Standing,
    lookups: AtomicUsize,
    reports: Mutex<Vec<Outcome>>,
    queue: Mutex<VecDeque<FakeMessage>>,
    notice: OnceLock<Notice>,
    failing: AtomicUsize,
    too_large: AtomicBool,
}

impl Link for FakeLink {
    async fn register(&self, _: &[Definition], _: &CancellationToken) -> Result<Option<Binding>, RunError> {
        let (calls_stream, consumer, result_prefix) = ("FN_CALLS".into(), "pool_test".into(), "fn.result.".into());
        Ok(Some(Binding { calls_stream, consumer, ack_wait_ms: 30_000, max_payload: 1 << 20, result_prefix, refresh_ms: 0 }))
    }

    async fn pull(&self, _: &Binding, n: usize, until: &CancellationToken, deliver: Deliver) -> Result<(), LinkError> {
        let mut left = n;
        while left > 0 && !until.is_cancelled() {
            let next = self.queue.lock().unwrap().pop_front();
            match next {
                Some(message) => {
                    deliver(message.taken());
                    left -= 1;
                }
                None => sleep(Duration::from_millis(2)).await,
            }
        }
        Ok(())
    }

    async fn lookup(&self, _: &Dispatch, _: &CancellationToken) -> Result<Standing, LinkError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        Ok(self.standing)
    }

    async fn report(&self, _: &Dispatch, outcome: &Outcome, _: &CancellationToken) -> Result<(), LinkError> {
        if self.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            let too_large = self.too_large.load(Ordering::Relaxed);
            return Err(if too_large { LinkError::TooLarge { size: 7, limit: 5 } } else { LinkError::NotConnected });
        }
        self.reports.lock().unwrap().push(outcome.clone());
        Ok(())
    }

    async fn on_cancel(&self, _: &[String], cancelled: Notice) {
        self.notice.set(cancelled).ok();
    }

    async fn close(&self) {}
}

/// An executor of one function over that queue.
pub(super) struct Bench {
    link: Arc<FakeLink>,
    worker: Arc<Worker<FakeLink>>,
    soft: CancellationToken,
    impatient: CancellationToken,
}

impl Bench {
    pub(super) fn new(function: &Function, standing: Standing) -> Self {
        let link = Arc::new(FakeLink {
            standing,
            lookups: AtomicUsize::default(),
            reports: Mutex::default(),
            queue: Mutex::default(),
            notice: OnceLock::new(),
            failing: AtomicUsize::default(),
            too_large: AtomicBool::default(),
        });
        let settings = Settings { pool: "test".into(), executor_id: "test-1".into(), concurrency: 4, stop_timeout: Duration::from_secs(20) };
        let (soft, impatient) = (CancellationToken::new(), CancellationToken::new());
        let tokens = (soft.clone(), impatient.clone());
        let worker = Worker::new(Arc::clone(&link), Handle::current(), vec![function.registered()], settings, tokens);
        Self { link, worker, soft, impatient }
    }

    /// Handles one message to its end.
    pub(super) async fn settle(&self, message: FakeMessage) {
        Arc::clone(&self.worker).handle(message.taken()).await;
    }

    pub(super) fn serve(&self) -> JoinHandle<()> {
        let worker = Arc::clone(&self.worker);
        tokio::spawn(async move { worker.serve().await.unwrap() })
    }

    pub(super) fn queue(&self, message: &FakeMessage) {
        self.link.queue.lock().unwrap().push_back(message.clone());
    }

    pub(super) fn queued(&self) -> usize {
        self.link.queue.lock().unwrap().len()
    }

    pub(super) fn hears_notices(&self) -> bool {
        self.link.notice.get().is_some()
    }

    /// Sends a cancel notice; true once nothing of it is left in the queue.
    pub(super) fn cancel(&self, call_id: &str) -> bool {
        let notice = self.link.notice.get().expect("somebody hears notices");
        notice(dispatch(call_id).key, "the turn has ended".into());
        self.queued() == 0
    }

    pub(super) fn reports(&self) -> Vec<Outcome> {
        self.link.reports.lock().unwrap().clone()
    }

    pub(super) fn lookups(&self) -> usize {
        self.link.lookups.load(Ordering::Relaxed)
    }

    /// Lets the next reports fail.
    pub(super) fn fail_reports(&self, times: usize, too_large: bool) {
        self.link.too_large.store(too_large, Ordering::Relaxed);
        self.link.failing.store(times, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.soft.cancel();
    }

    pub(super) fn interrupt(&self) {
        self.impatient.cancel();
    }
}
