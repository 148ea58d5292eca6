use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::arguments;
use crate::call::Call;
use crate::engine::{Code, Registered};
use crate::error::Error;
use crate::handler;
use crate::output::{IntoOutput, Output};
use crate::policy::{Backoff, Effects, OnUncertain, Policy};
use crate::verdict::Verdict;
use crate::wire::requests::Definition;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A function that an executor serves, and how it wants to be run. Operators may overrule the policy.
#[derive(Clone)]
pub struct Function {
    pub(crate) name: String,
    description: Option<String>,
    parameters: Value,
    policy: Policy,
    run: Code<Output>,
    verify: Option<Code<Verdict>>,
}

impl Function {
    /// A function with an async handler. Arguments that do not fit `I` go back to the model with the name of the member, and
    /// the JSON Schema for the model is that of `I`, which has to be an object.
    ///
    /// A handler that computes or blocks holds up a thread of the runtime, and with it other handlers, though never a lease
    /// or a timeout: see [`blocking`](Self::blocking).
    pub fn new<I, O, F>(name: impl Into<String>, handler: impl Fn(I, Call) -> F + Send + Sync + 'static) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: IntoOutput,
        F: Future<Output = Result<O, Error>> + Send + 'static,
    {
        Self::made(name, arguments::schema::<I>(), handler::typed(handler, IntoOutput::into_output))
    }

    /// A function with a handler that blocks or computes. It runs on a thread for that, as `tokio::task::spawn_blocking`
    /// gives, and cannot be interrupted: let it look at [`Call::is_cancelled`].
    pub fn blocking<I, O>(name: impl Into<String>, handler: impl Fn(I, Call) -> Result<O, Error> + Send + Sync + 'static) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: IntoOutput,
    {
        Self::made(name, arguments::schema::<I>(), handler::blocking(handler, IntoOutput::into_output))
    }

    /// A function whose handler reads the very bytes of [`Call::arguments`] itself. Nothing is checked here. `parameters` is
    /// the JSON Schema of the arguments.
    pub fn raw<O, F>(name: impl Into<String>, parameters: Value, handler: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        O: IntoOutput,
        F: Future<Output = Result<O, Error>> + Send + 'static,
    {
        Self::made(name, parameters, handler::raw(handler, IntoOutput::into_output))
    }

    fn made(name: impl Into<String>, parameters: Value, run: Code<Output>) -> Self {
        Self { name: name.into(), description: None, parameters, policy: Policy::default(), run, verify: None }
    }

    /// Tells the model what the function does.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// The JSON Schema of the arguments, an object schema, in place of the one of the handler's type.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }

    /// Finds out whether an earlier run took effect, before a call that may have run is run again.
    #[must_use]
    pub fn verify<I, F>(mut self, handler: impl Fn(I, Call) -> F + Send + Sync + 'static) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        F: Future<Output = Result<Verdict, Error>> + Send + 'static,
    {
        self.verify = Some(handler::typed(handler, Ok));
        self
    }

    /// What running it twice does. Without it a function has side effects.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.policy.effects = Some(effects);
        self
    }

    /// Bounds one run of the handler. Default 30 s.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.policy.timeout = Some(time);
        self
    }

    /// Bounds the wait for an executor. Default 60 s.
    #[must_use]
    pub fn queue_timeout(mut self, time: Duration) -> Self {
        self.policy.queue_timeout = Some(time);
        self
    }

    /// Bounds the time from the claim to the answer, all attempts included. Default 15 min.
    #[must_use]
    pub fn total_deadline(mut self, time: Duration) -> Self {
        self.policy.total_deadline = Some(time);
        self
    }

    /// How often a technical failure lets the call run, 1 to 1000. Default 3, with side effects 1.
    #[must_use]
    pub fn attempts(mut self, most: u32) -> Self {
        self.policy.attempts = Some(most);
        self
    }

    /// The wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.policy.backoff = Some(backoff);
        self
    }

    /// What happens to a call that may have run. Default: see [`OnUncertain`].
    #[must_use]
    pub fn on_uncertain(mut self, choice: OnUncertain) -> Self {
        self.policy.on_uncertain = Some(choice);
        self
    }

    /// The definition as it is registered, JSON.
    #[must_use]
    pub fn definition(&self) -> Value {
        let mut wire = json!({"name": self.name, "parameters": self.parameters, "policy": self.policy.json()});
        if let Some(description) = &self.description {
            wire["description"] = json!(description);
        }
        if self.verify.is_some() {
            wire["verifies"] = json!(true);
        }
        wire
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("a function has an empty name".into());
        }
        let object = self.parameters.as_object().is_some_and(|schema| schema.get("type").is_none_or(|t| t == "object"));
        let checked = if !object {
            Err("the parameters are no JSON Schema of an object; let the handler take a struct".into())
        } else if self.policy.on_uncertain == Some(OnUncertain::Verify) && self.verify.is_none() {
            Err("on_uncertain is Verify, and there is no verify handler; give one by verify()".into())
        } else {
            self.policy.check()
        };
        checked.map_err(|what: String| format!("function {:?}: {what}", self.name))
    }

    fn choice(&self) -> OnUncertain {
        match (self.policy.on_uncertain, self.policy.effects.unwrap_or_default(), &self.verify) {
            (Some(choice), ..) => choice,
            (None, Effects::None | Effects::Idempotent, _) => OnUncertain::Rerun,
            (None, Effects::SideEffects, Some(_)) => OnUncertain::Verify,
            (None, Effects::SideEffects, None) => OnUncertain::Fail,
        }
    }

    pub(crate) fn registered(&self) -> Registered {
        Registered {
            definition: Definition { name: self.name.clone(), json: self.definition() },
            timeout: self.policy.timeout.filter(|time| !time.is_zero()).unwrap_or(DEFAULT_TIMEOUT).max(Duration::from_millis(1)),
            effects: self.policy.effects.unwrap_or_default(),
            on_uncertain: self.choice(),
            run: Arc::clone(&self.run),
            verify: self.verify.clone(),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}
