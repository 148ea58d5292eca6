use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::wire::texts::duration;

/// What running a function twice does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effects {
    /// It only reads.
    None,
    /// Nothing more than running it once, with the same idempotency key.
    Idempotent,
    /// It may do harm. A call that may have run is not run again, unless a verify handler says that it was not done.
    #[default]
    SideEffects,
}

impl Effects {
    pub(crate) fn wire(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Idempotent => "idempotent",
            Self::SideEffects => "side_effects",
        }
    }
}

/// What happens to a call that may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUncertain {
    /// It is run again. The default without side effects.
    Rerun,
    /// The verify handler is asked. The default with side effects and a verify handler.
    Verify,
    /// The model is told that the outcome is unknown. The default with side effects and without a verify handler.
    Fail,
    /// The verify handler is asked, if there is one, and an operator decides about what it cannot tell.
    Park,
}

impl OnUncertain {
    pub(crate) fn wire(self) -> &'static str {
        match self {
            Self::Rerun => "rerun",
            Self::Verify => "verify",
            Self::Fail => "fail",
            Self::Park => "park",
        }
    }

    pub(crate) fn of_wire(word: &str) -> Option<Self> {
        [Self::Rerun, Self::Verify, Self::Fail, Self::Park].into_iter().find(|choice| choice.wire() == word)
    }
}

/// The wait between attempts. What is `None` is left to the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Backoff {
    /// The first wait. Default 1 s.
    pub initial: Option<Duration>,
    /// The longest wait. Default 1 min.
    pub max: Option<Duration>,
    /// By how much the wait grows, 1 or more. Default 2.
    pub multiplier: Option<f64>,
    /// The part of the wait that is left to chance, 0 to 1. Default 0.2.
    pub jitter: Option<f64>,
}

/// How a function wants to be run. What is `None` is left to the defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) timeout: Option<Duration>,
    pub(crate) queue_timeout: Option<Duration>,
    pub(crate) total_deadline: Option<Duration>,
    pub(crate) attempts: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) effects: Option<Effects>,
    pub(crate) on_uncertain: Option<OnUncertain>,
}

impl Policy {
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(attempts) = self.attempts.filter(|n| !(1..=1000).contains(n)) {
            return Err(format!("attempts is {attempts}; use 1 to 1000"));
        }
        let Backoff { multiplier, jitter, .. } = self.backoff.unwrap_or_default();
        if let Some(multiplier) = multiplier.filter(|m| !(*m >= 1.0 && m.is_finite())) {
            return Err(format!("the multiplier of the backoff is {multiplier}; use 1 or more"));
        }
        if let Some(jitter) = jitter.filter(|j| !(0.0..=1.0).contains(j)) {
            return Err(format!("the jitter of the backoff is {jitter}; use 0 to 1"));
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> Value {
        let mut wire = Map::new();
        put(&mut wire, "timeout", time(self.timeout));
        put(&mut wire, "queue_timeout", time(self.queue_timeout));
        put(&mut wire, "total_deadline", time(self.total_deadline));
        put(&mut wire, "attempts", self.attempts.map(|n| json!(n)));
        put(&mut wire, "backoff", self.backoff.map(Backoff::json));
        put(&mut wire, "effects", self.effects.map(|effects| json!(effects.wire())));
        put(&mut wire, "on_uncertain", self.on_uncertain.map(|choice| json!(choice.wire())));
        Value::Object(wire)
    }
}

impl Backoff {
    fn json(self) -> Value {
        let mut wire = Map::new();
        put(&mut wire, "initial", time(self.initial));
        put(&mut wire, "max", time(self.max));
        put(&mut wire, "multiplier", self.multiplier.map(|m| json!(m)));
        put(&mut wire, "jitter", self.jitter.map(|j| json!(j)));
        Value::Object(wire)
    }
}

fn time(time: Option<Duration>) -> Option<Value> {
    time.filter(|time| !time.is_zero()).map(|time| json!(duration(time.max(Duration::from_millis(1)))))
}

fn put(wire: &mut Map<String, Value>, member: &str, value: Option<Value>) {
    if let Some(value) = value {
        wire.insert(member.to_owned(), value);
    }
}
