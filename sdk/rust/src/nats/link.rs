use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::connecting::Connecting;
use super::connection::Connection;
use super::outbox::Outbox;
use super::puller::Puller;
use crate::CallKey;
use crate::engine::{Deliver, Delivered, Link, LinkError, Taken};
use crate::error::RunError;
use crate::wire::calls::{self, Dispatch};
use crate::wire::names::{Names, deliveries_of};
use crate::wire::outcome::{Outcome, OutcomeMessage};
use crate::wire::requests::{self, Binding, Definition, ExecutorInfo, RegistrationReply, Standing};

const REGISTER: Duration = Duration::from_secs(10);
const LOOKUP: Duration = Duration::from_secs(2);
const PUBLISH: Duration = Duration::from_secs(5);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const REGISTER_LAST: Duration = Duration::from_secs(5);
const PULL_LAST: Duration = Duration::from_secs(2);
const REBIND: Duration = Duration::from_millis(500);
/// The error of JetStream about a message that is too large.
const TOO_LARGE: u64 = 10054;

/// What the link needs to know.
#[derive(Clone)]
pub(crate) struct LinkSettings {
    pub(crate) pool: String,
    pub(crate) prefix: String,
    pub(crate) api_prefix: String,
    pub(crate) connecting: Connecting,
    pub(crate) executor: ExecutorInfo,
}

/// The link over NATS.
pub(crate) struct NatsLink {
    settings: LinkSettings,
    names: Names,
    connection: Connection,
    puller: Puller,
    pull_wait_ms: AtomicU64,
    waiting: AtomicBool,
}

impl NatsLink {
    /// Begins to connect. It fails when the settings cannot be used.
    pub(crate) async fn open(settings: LinkSettings) -> Result<Self, String> {
        let connection = Connection::open(&settings.connecting).await?;
        Ok(Self {
            names: Names::new(&settings.prefix),
            puller: Puller::new(connection.clone(), settings.api_prefix.clone()),
            connection,
            settings,
            pull_wait_ms: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
        })
    }

    /// Waits for the connection; false when the token was cancelled first.
    async fn connected(&self, until: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = until.cancelled() => false,
            () = self.connection.connected() => true,
        }
    }

    /// Asks until somebody decides.
    async fn register_one(&self, definition: &Definition, functions: &[String], until: &CancellationToken) -> Result<Option<Binding>, RunError> {
        let Definition { name, .. } = definition;
        let body = Bytes::from(requests::registration(&self.settings.pool, definition, functions, &self.settings.executor));
        let subject = self.names.register(name);
        let mut wait = RETRY_FIRST;
        loop {
            if !self.connected(until).await {
                return Ok(None);
            }
            let why = match ask(&self.connection, &subject, body.clone(), None, REGISTER, until).await {
                Err(LinkError::Denied(denied)) => return Err(RunError::Denied(denied)),
                Err(e) => e.to_string(),
                Ok(answer) => match requests::registration_reply(&answer.payload) {
                    RegistrationReply::Accepted(binding) => return Ok(Some(binding)),
                    RegistrationReply::Refused { code, message } => return Err(RunError::Refused { function: name.clone(), code, message }),
                    RegistrationReply::Unclear(why) => why,
                },
            };
            if !until.is_cancelled() && !self.waiting.swap(true, Ordering::Relaxed) {
                tracing::warn!(function = name, subject, error = why, "no dispatcher takes the registration; asking until one does");
            }
            if pause(wait, until).await {
                return Ok(None);
            }
            wait = (2 * wait).min(REGISTER_LAST);
        }
    }

    /// Whether the consumer of the binding exists; asked until the server says so.
    async fn bound(&self, binding: &Binding, until: &CancellationToken) -> Result<bool, RunError> {
        let mut wait = RETRY_FIRST;
        while self.connected(until).await {
            match self.puller.exists(binding, until).await {
                Ok(()) => return Ok(true),
                Err(LinkError::Unbound(_)) => return Ok(false),
                Err(LinkError::Denied(denied)) => return Err(RunError::Denied(denied)),
                Err(_) => {}
            }
            pause(wait, until).await;
            wait = (2 * wait).min(PULL_LAST);
        }
        Ok(false)
    }
}

/// Waits; true when the token was cancelled first.
async fn pause(time: Duration, until: &CancellationToken) -> bool {
    timeout(time, until.cancelled()).await.is_ok()
}

impl Link for NatsLink {
    async fn register(&self, definitions: &[Definition], until: &CancellationToken) -> Result<Option<Binding>, RunError> {
        let functions: Vec<String> = definitions.iter().map(|definition| definition.name.clone()).collect();
        loop {
            let mut last = None;
            for definition in definitions {
                last = self.register_one(definition, &functions, until).await?;
                if last.is_none() {
                    return Ok(None);
                }
            }
            if self.waiting.swap(false, Ordering::Relaxed) {
                tracing::info!(pool = self.settings.pool, functions = functions.len(), "registered");
            }
            let Some(binding) = last else {
                return Ok(None);
            };
            if self.bound(&binding, until).await? {
                return Ok(Some(binding));
            }
            if pause(REBIND, until).await {
                return Ok(None);
            }
        }
    }

    async fn pull(&self, binding: &Binding, n: usize, until: &CancellationToken, deliver: Deliver) -> Result<(), LinkError> {
        let (names, outbox) = (self.names.clone(), self.connection.outbox().clone());
        let take = move |message: Message, transit: Duration| deliver(taken(&names, &outbox, message, transit));
        let result = self.puller.pull(binding, n, until, &take).await;
        match result {
            Err(LinkError::PullAgain(_)) => {
                let wait = Duration::from_millis(self.pull_wait_ms.load(Ordering::Relaxed)).max(RETRY_FIRST);
                let next = u64::try_from((2 * wait).min(PULL_LAST).as_millis()).unwrap_or(0);
                self.pull_wait_ms.store(next, Ordering::Relaxed);
                pause(wait, until).await;
            }
            _ => self.pull_wait_ms.store(0, Ordering::Relaxed),
        }
        result
    }

    async fn lookup(&self, d: &Dispatch, until: &CancellationToken) -> Result<Standing, LinkError> {
        timeout(LOOKUP, self.connected(until)).await.ok();
        let answer = ask(&self.connection, &self.names.outcome(&d.function), requests::lookup(d).into(), None, LOOKUP, until).await?;
        requests::standing(&answer.payload).ok_or_else(|| LinkError::Other("the dispatcher's answer has no standing".into()))
    }

    async fn report(&self, d: &Dispatch, outcome: &Outcome, until: &CancellationToken) -> Result<(), LinkError> {
        let message = OutcomeMessage::of(d, outcome, &self.settings.executor.id).map_err(LinkError::Invalid)?;
        timeout(PUBLISH, self.connected(until)).await.ok();
        let (size, limit) = (message.size(), self.connection.max_payload());
        if size > limit {
            return Err(LinkError::TooLarge { size, limit });
        }
        let mut headers = HeaderMap::new();
        for (name, value) in message.headers {
            headers.insert(name, value);
        }
        let answer = ask(&self.connection, &message.subject, message.payload, Some(headers), PUBLISH, until).await?;
        match requests::pub_ack(&answer.payload) {
            Ok(stream) if stream.is_empty() => Err(LinkError::Other("the stream did not confirm the outcome".into())),
            Ok(_) => Ok(()),
            Err((TOO_LARGE, _)) => Err(LinkError::TooLarge { size, limit }),
            Err((_, error)) => Err(LinkError::Other(format!("the stream refused the outcome: {error}"))),
        }
    }

    async fn on_cancel(&self, functions: &[String], cancelled: Arc<dyn Fn(CallKey, String) + Send + Sync>) {
        let mut subscribers = Vec::new();
        for function in functions {
            match self.connection.client().subscribe(self.names.cancel(function)).await {
                Ok(subscriber) => subscribers.push(subscriber),
                Err(error) => tracing::error!(function, %error, "cancel notices are not heard"),
            }
        }
        let mut notices = select_all(subscribers);
        tokio::spawn(async move {
            while let Some(message) = notices.next().await {
                if let Some((key, reason)) = requests::cancel(&message.payload) {
                    cancelled(key, reason);
                }
            }
        });
    }

    async fn close(&self) {
        self.connection.close().await;
    }
}

fn taken(names: &Names, outbox: &Outbox, message: Message, transit: Duration) -> Taken {
    let headers = headers_of(&message);
    let reply = message.reply.map(async_nats::Subject::into_string).unwrap_or_default();
    Taken {
        call: calls::decode(names, &message.subject, &headers, &message.payload),
        deliveries: deliveries_of(&reply),
        transit,
        message: Arc::new(Reply { outbox: outbox.clone(), subject: reply, headers }),
    }
}

fn headers_of(message: &Message) -> HashMap<String, String> {
    let all = message.headers.iter().flat_map(HeaderMap::iter);
    all.map(|(name, values)| (name.to_string(), values.first().map(ToString::to_string).unwrap_or_default())).collect()
}

/// Where a delivered message is answered.
struct Reply {
    outbox: Outbox,
    subject: String,
    headers: HashMap<String, String>,
}

impl Delivered for Reply {
    fn in_progress(&self) {
        self.outbox.now(self.subject.clone(), Bytes::from_static(b"+WPI"));
    }

    fn ack(&self) {
        // A lost one means one more delivery, which is found answered.
        self.outbox.soon(self.subject.clone(), Bytes::from_static(b"+ACK"));
    }

    fn term(&self, reason: &str) {
        self.outbox.soon(self.subject.clone(), requests::term(reason, &self.headers).into());
    }
}
