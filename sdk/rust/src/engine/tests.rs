//! The engine over a queue that is none: protocol/fixtures/decisions.json, and what time and stops do.

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::leases::Leases;
use crate::fixtures::{each, text};
use crate::wire::outcome::Outcome;
use crate::wire::requests::Standing;
use crate::{Call, Effects, Error, Function, OnUncertain, Verdict};
use fake::{Bench, FakeMessage, dispatch, eventually};

fn function<F>(handler: impl Fn(Call) -> F + Send + Sync + 'static) -> Function
where
    F: Future<Output = Result<&'static str, Error>> + Send + 'static,
{
    Function::raw("f", json!({"type": "object"}), handler)
}

fn success(text: &str) -> Outcome {
    Outcome::Success { output: format!("\"{text}\"") }
}

fn verdict(word: &str) -> Verdict {
    match word {
        "done" => Verdict::done("done before"),
        "not_done" => Verdict::not_done(),
        "cannot_tell" => Verdict::cannot_tell("the bank does not answer"),
        _ => panic!("no way to the bank"),
    }
}

#[test]
fn decisions() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    each("decisions.json", |c| {
        let (runs, verified) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (noting, asked, word) = (Arc::clone(&runs), Arc::clone(&verified), text(c, "verify").to_owned());
        let mut f = function(move |_| {
            noting.store(true, Ordering::Relaxed);
            async { Ok("ok") }
        });
        f = f.effects([Effects::None, Effects::Idempotent, Effects::SideEffects].into_iter().find(|e| e.wire() == text(c, "effects")).unwrap());
        if !word.is_empty() {
            f = f.verify(move |_: serde_json::Map<String, serde_json::Value>, _| {
                asked.store(true, Ordering::Relaxed);
                let word = word.clone();
                async move { Ok(verdict(&word)) }
            });
        }
        let standing = match text(c, "standing") {
            "answered" => Standing::Answered,
            "cancelled" => Standing::Cancelled,
            "unknown" => Standing::Unknown,
            _ => Standing::Pending,
        };
        let mut d = dispatch("call_1");
        d.uncertain = c["uncertain"] == true;
        d.on_uncertain = OnUncertain::of_wire(text(c, "on_uncertain"));
        runtime.block_on(async {
            let bench = Bench::new(&f, standing);
            bench.settle(FakeMessage::new(d).deliveries(c["deliveries"].as_u64().unwrap())).await;
            let want = &c["expect"];
            let outcome = bench.reports().pop();
            assert_eq!(bench.lookups() > 0, want["looked_up"] == true, "looked up");
            assert_eq!(verified.load(Ordering::Relaxed), want["verified"] == true, "verified");
            assert_eq!(runs.load(Ordering::Relaxed), want["runs"] == true, "runs");
            assert_eq!(outcome.as_ref().map_or("", Outcome::kind), text(want, "kind"));
            assert_eq!(outcome.as_ref().and_then(Outcome::cause).unwrap_or_default(), text(want, "cause"));
            if want["says_unknown"] == true {
                let Some(Outcome::Failure { error, .. }) = outcome else { panic!("no failure") };
                assert!(error.contains("the outcome of this call is unknown"), "{error}");
            }
        });
    });
}

#[tokio::test]
async fn a_call_that_is_delivered_again_while_it_runs_is_left_to_the_run_in_hand() {
    let entered = Arc::new(AtomicUsize::new(0));
    let release = CancellationToken::new();
    let (counting, waiting) = (Arc::clone(&entered), release.clone());
    let bench = Bench::new(
        &function(move |_| {
            counting.fetch_add(1, Ordering::Relaxed);
            let waiting = waiting.clone();
            async move {
                waiting.cancelled().await;
                Ok("once")
            }
        }),
        Standing::Pending,
    );
    let serving = bench.serve();
    let (first, second) = (FakeMessage::new(dispatch("call_1")), FakeMessage::new(dispatch("call_1")).deliveries(2));
    bench.queue(&first);
    eventually(|| entered.load(Ordering::Relaxed) == 1).await;
    bench.queue(&second);
    eventually(|| bench.queued() == 0).await;
    release.cancel();
    eventually(|| first.acked()).await;
    bench.stop();
    serving.await.unwrap();
    assert_eq!((entered.load(Ordering::Relaxed), bench.reports(), second.acked(), bench.lookups()), (1, vec![success("once")], false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_cancels_a_handler_and_overtakes_a_call() {
    let bench = Bench::new(
        &function(|call: Call| async move {
            call.cancelled().await;
            Ok("late")
        }),
        Standing::Cancelled,
    );
    let serving = bench.serve();
    let (running, overtaken) = (FakeMessage::new(dispatch("call_1")), FakeMessage::new(dispatch("call_2")));
    eventually(|| bench.hears_notices()).await;
    bench.queue(&running);
    eventually(|| bench.cancel("call_1")).await;
    eventually(|| running.acked()).await;
    bench.cancel("call_2");
    bench.queue(&overtaken);
    eventually(|| overtaken.acked()).await;
    bench.stop();
    serving.await.unwrap();
    assert_eq!(bench.reports(), vec![]);
    assert!(bench.lookups() >= 1);
}

/// What is reported about a call that the hard stop interrupts, and whether it is acked.
async fn interrupted(choice: OnUncertain, verifies: bool) -> (Vec<Outcome>, bool) {
    let entered = Arc::new(AtomicBool::new(false));
    let noting = Arc::clone(&entered);
    let mut f = function(move |_| {
        noting.store(true, Ordering::Relaxed);
        std::future::pending()
    });
    if verifies {
        f = f.verify(|_: serde_json::Map<String, serde_json::Value>, _| async { Ok(Verdict::not_done()) });
    }
    let bench = Bench::new(&f, Standing::Pending);
    let mut d = dispatch("call_1");
    d.on_uncertain = Some(choice);
    let message = FakeMessage::new(d);
    let serving = bench.serve();
    bench.queue(&message);
    eventually(|| entered.load(Ordering::Relaxed)).await;
    bench.stop();
    bench.interrupt();
    serving.await.unwrap();
    (bench.reports(), message.acked())
}

#[tokio::test]
async fn the_hard_stop() {
    let unknown = |outcomes: &[Outcome]| outcomes.len() == 1 && outcomes[0].cause() == Some("unknown_outcome");
    let (rerun, verify, park, fail) = tokio::join!(
        interrupted(OnUncertain::Rerun, false),
        interrupted(OnUncertain::Verify, true),
        interrupted(OnUncertain::Park, false),
        interrupted(OnUncertain::Fail, false),
    );
    assert_eq!(rerun, (vec![Outcome::Released], true));
    assert_eq!(verify, (vec![], false));
    assert_eq!((park.0[0].kind(), park.1), ("uncertain", true));
    assert!(unknown(&fail.0) && fail.1, "{fail:?}");
}

#[tokio::test]
async fn a_call_that_was_on_its_way_for_long_is_not_started() {
    for (choice, outcomes, acked) in [(OnUncertain::Rerun, 1, true), (OnUncertain::Verify, 0, false), (OnUncertain::Fail, 1, true)] {
        let runs = Arc::new(AtomicBool::new(false));
        let noting = Arc::clone(&runs);
        let bench = Bench::new(
            &function(move |_| {
                noting.store(true, Ordering::Relaxed);
                async { Ok("ran") }
            }),
            Standing::Pending,
        );
        let mut d = dispatch("call_1");
        d.on_uncertain = Some(choice);
        let message = FakeMessage::new(d).transit(Duration::from_secs(16)); // of a lease of 30 s
        bench.settle(message.clone()).await;
        assert_eq!((bench.reports().len(), message.acked()), (outcomes, acked), "{choice:?}");
        assert_eq!(runs.load(Ordering::Relaxed), choice == OnUncertain::Rerun, "{choice:?}");
    }
}

#[test]
fn a_process_that_stood_still_is_doubtful_for_a_second() {
    let leases = Leases::new();
    leases.set_ack_wait(10_000);
    let zero = Instant::now();
    let at = |ms: u64| zero + Duration::from_millis(ms);
    leases.beat(at(0));
    assert!(!leases.doubtful(at(8000)));
    assert!(leases.doubtful(at(17_100)));
    leases.beat(at(17_200));
    assert!(leases.doubtful(at(18_000)));
    assert!(!leases.doubtful(at(18_200)));
}

#[tokio::test]
async fn an_outcome_is_reported_again_until_it_is_stored_and_one_that_is_too_large_is_replaced() {
    let bench = Bench::new(&function(|_| async { Ok("ok") }), Standing::Pending);
    bench.fail_reports(2, false);
    let message = FakeMessage::new(dispatch("call_1"));
    bench.settle(message.clone()).await;
    assert_eq!((bench.reports(), message.acked()), (vec![success("ok")], true));
    let bench = Bench::new(&function(|_| async { Ok("ok") }), Standing::Pending);
    bench.fail_reports(1, true);
    bench.settle(FakeMessage::new(dispatch("call_1"))).await;
    let Some(Outcome::Failure { error, cause }) = bench.reports().pop() else { panic!("no failure") };
    assert_eq!((error.as_str(), cause.as_deref()), ("result too large (7 bytes, limit 5)", Some("too_large")));
}

#[test]
fn a_lost_run_goes_by_the_choice_for_uncertain_calls() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    each("lost-runs.json", |c| {
        let mut f = function(|_| async { Err(Error::uncertain("the bank hung up")) });
        if c["verifies"] == true {
            f = f.verify(|_: serde_json::Map<String, serde_json::Value>, _| async { Ok(Verdict::not_done()) });
        }
        let mut d = dispatch("call_1");
        d.on_uncertain = OnUncertain::of_wire(text(c, "on_uncertain"));
        let got = runtime.block_on(super::trial(&f.registered(), d, CancellationToken::new()));
        let reason = || text(&c["expect"], "reason").to_owned();
        match (text(&c["expect"], "kind"), got) {
            ("", got) => assert_eq!(got, None),
            ("failure", Some(Outcome::Failure { cause, .. })) => assert_eq!(cause.as_deref(), Some(text(&c["expect"], "cause"))),
            ("retry", got) => assert_eq!(got, Some(Outcome::Retry { reason: reason(), after: Duration::ZERO })),
            ("uncertain", got) => assert_eq!(got, Some(Outcome::Uncertain { reason: reason() })),
            (_, got) => panic!("{got:?}"),
        }
    });
}
