//! Handlers without servers: reading of arguments, timeout and encoding of the output are those of production.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::engine::{Registered, trial};
use crate::wire::calls::{Dispatch, idempotency_key};
use crate::wire::outcome::Outcome as WireOutcome;
use crate::{CallKey, Executor, OnUncertain};

/// A call that a test makes.
///
/// ```
/// # #[tokio::main]
/// # async fn main() {
/// use callfan::testing::Invocation;
/// use callfan::{Call, Error, Executor, Function};
/// use serde_json::{Map, Value, json};
///
/// async fn double(input: Map<String, Value>, _: Call) -> Result<i64, Error> {
///     Ok(2 * input["n"].as_i64().ok_or_else(|| Error::failure("n is no integer"))?)
/// }
///
/// let executor = Executor::new("numbers").function(Function::new("double", double));
/// let outcome = Invocation::of(&executor, "double").arguments(json!({"n": 21})).run().await;
/// assert_eq!(outcome.text(), "42");
/// # }
/// ```
#[must_use = "nothing happens before run()"]
pub struct Invocation {
    function: Registered,
    dispatch: Dispatch,
    cancel_after: Option<Duration>,
}

impl Invocation {
    /// A call of one of the executor's functions.
    ///
    /// # Panics
    ///
    /// When the executor has no function of that name.
    pub fn of(executor: &Executor, function: &str) -> Self {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        let found = executor.registered().into_iter().find(|f| f.definition.name == function);
        let registered = found.unwrap_or_else(|| panic!("the executor has no function {function:?}"));
        let call_id = format!("call_{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let key = CallKey { session_id: "sess_test".into(), turn_id: "turn_test".into(), call_id };
        let dispatch = Dispatch {
            idempotency_key: idempotency_key(&key),
            key,
            function: function.to_owned(),
            arguments: Bytes::from_static(b"{}"),
            attempt: 1,
            handover: 1,
            nonce: "1-test".into(),
            result_subject: String::new(),
            timeout_ms: None,
            deadline_ms: None,
            traceparent: None,
            tracestate: None,
            uncertain: false,
            on_uncertain: None,
        };
        Self { function: registered, dispatch, cancel_after: None }
    }

    /// The arguments. Default: an empty object.
    ///
    /// # Panics
    ///
    /// When they cannot be written as JSON.
    pub fn arguments(self, arguments: impl Serialize) -> Self {
        let bytes = serde_json::to_vec(&arguments).expect("these arguments cannot be written as JSON");
        self.raw_arguments(bytes)
    }

    /// The very bytes that a model would write.
    pub fn raw_arguments(mut self, json: impl Into<Vec<u8>>) -> Self {
        self.dispatch.arguments = json.into().into();
        self
    }

    /// The name of the call, from which its idempotency key comes. Default: a new one.
    pub fn key(mut self, key: CallKey) -> Self {
        self.dispatch.idempotency_key = idempotency_key(&key);
        self.dispatch.key = key;
        self
    }

    /// The number of the attempt. Default 1.
    pub fn attempt(mut self, number: u64) -> Self {
        self.dispatch.attempt = number;
        self
    }

    /// In place of the function's own timeout.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.dispatch.timeout_ms = Some(milliseconds(time).max(1));
        self
    }

    /// The call's deadline. Default: none.
    pub fn deadline(mut self, moment: SystemTime) -> Self {
        self.dispatch.deadline_ms = Some(milliseconds(moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()));
        self
    }

    /// The call may have run: it goes by the function's policy, and may be verified or not run at all.
    pub fn uncertain(mut self) -> Self {
        self.dispatch.uncertain = true;
        self
    }

    /// What the dispatcher says about a call that may have run. Default: the function's policy.
    pub fn on_uncertain(mut self, choice: OnUncertain) -> Self {
        self.dispatch.on_uncertain = Some(choice);
        self
    }

    /// The W3C trace context.
    pub fn traceparent(mut self, header: impl Into<String>) -> Self {
        self.dispatch.traceparent = Some(header.into());
        self
    }

    /// Cancels the call after a while.
    pub fn cancel_after(mut self, time: Duration) -> Self {
        self.cancel_after = Some(time);
        self
    }

    /// Runs it, and gives what would be reported.
    pub async fn run(self) -> Outcome {
        let cancelled = CancellationToken::new();
        if let Some(after) = self.cancel_after {
            let cancel = cancelled.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                cancel.cancel();
            });
        }
        Outcome::of(trial(&self.function, self.dispatch, cancelled).await)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What would be reported about a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The output as the wire carries it: a JSON string, an array of content parts, or null.
    Success(Value),
    /// The text for the model, and the cause, if there is one.
    Failure {
        /// The text for the model.
        error: String,
        /// None for a business failure without one.
        cause: Option<String>,
    },
    /// A technical failure.
    Retry {
        /// For operators.
        reason: String,
        /// Not before that time has passed; zero leaves it to the policy.
        after: Duration,
    },
    /// It may have run, and it could not be found out.
    Uncertain {
        /// For operators.
        reason: String,
    },
    /// Nothing would be reported, as for a call that was cancelled or that is left to another executor.
    Nothing,
}

impl Outcome {
    fn of(outcome: Option<WireOutcome>) -> Self {
        match outcome {
            Some(WireOutcome::Success { output }) => Self::Success(serde_json::from_str(&output).unwrap_or(Value::Null)),
            Some(WireOutcome::Failure { error, cause }) => Self::Failure { error, cause },
            Some(WireOutcome::Retry { reason, after }) => Self::Retry { reason, after },
            Some(WireOutcome::Uncertain { reason }) => Self::Uncertain { reason },
            Some(WireOutcome::Released) | None => Self::Nothing,
        }
    }

    /// The output, which has to be a text.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    #[track_caller]
    pub fn text(&self) -> &str {
        match self {
            Self::Success(Value::String(text)) => text,
            other => panic!("the call came to {other:?}, not to a text"),
        }
    }

    /// The output, which has to be the text of JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        let text = self.text();
        serde_json::from_str(text).unwrap_or_else(|e| panic!("the output {text:?} is not the JSON that was expected: {e}"))
    }

    /// The text of a failure for the model.
    ///
    /// # Panics
    ///
    /// When it is no failure.
    #[must_use]
    #[track_caller]
    pub fn error(&self) -> &str {
        match self {
            Self::Failure { error, .. } => error,
            other => panic!("the call came to {other:?}, not to a failure"),
        }
    }
}
