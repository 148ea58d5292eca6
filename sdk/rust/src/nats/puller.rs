use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::asking::{ask, denial};
use super::connection::Connection;
use super::line::{Arrival, Line};
use crate::engine::LinkError;
use crate::wire::pulls::{self, Action, SILENCE};
use crate::wire::requests::{Binding, api_error};

const INFO: Duration = Duration::from_secs(2);
/// How long calls of a pull that was given up are still waited for: it has expired at the server by then.
const LINGER: Duration = Duration::from_secs(3);

/// Takes a message that is no status, and the longest that it may have been on its way.
pub(super) type Take = dyn Fn(async_nats::Message, Duration) + Send + Sync;

/// Pulls calls from a pool's durable consumer. Pulls may run side by side.
pub(super) struct Puller {
    connection: Connection,
    api_prefix: String,
    idle: Mutex<Vec<Line>>,
}

impl Puller {
    pub(super) fn new(connection: Connection, api_prefix: String) -> Self {
        Self { connection, api_prefix, idle: Mutex::default() }
    }

    /// Asks for up to `n` calls. It returns once all came or the pull ended.
    pub(super) async fn pull(&self, binding: &Binding, n: usize, until: &CancellationToken, take: &Take) -> Result<(), LinkError> {
        tokio::select! {
            () = self.connection.connected() => {}
            () = until.cancelled() => return Ok(()),
        }
        let mut line = self.line().await?;
        match self.read(&mut line, binding, n, take).await {
            Ok(()) => {
                self.lines().push(line);
                Ok(())
            }
            // A pull that nobody has answered: is there a consumer?
            Err(LinkError::Unbound(consumer)) if consumer.is_empty() => {
                self.exists(binding, until).await?;
                Err(LinkError::PullAgain(format!("nobody answers for {} yet", binding.consumer)))
            }
            Err(e) => {
                self.linger(line, binding, take).await;
                Err(e)
            }
        }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn line(&self) -> Result<Line, LinkError> {
        loop {
            let idle = self.lines().pop();
            match idle {
                Some(line) if !line.down().is_cancelled() => return Ok(line),
                Some(_) => {}
                None => return Line::new(&self.connection).await,
            }
        }
    }

    fn info(&self, binding: &Binding) -> String {
        format!("{}.CONSUMER.INFO.{}.{}", self.api_prefix, binding.calls_stream, binding.consumer)
    }

    async fn read(&self, line: &mut Line, binding: &Binding, n: usize, take: &Take) -> Result<(), LinkError> {
        let request = format!("{}.CONSUMER.MSG.NEXT.{}.{}", self.api_prefix, binding.calls_stream, binding.consumer);
        let (info, wildcard, down) = (self.info(binding), line.wildcard(), line.down().clone());
        let mut denials = self.connection.denials();
        let ack_wait = Duration::from_millis(binding.ack_wait_ms);
        let reply = line.next_reply(ack_wait);
        let body = Bytes::from(pulls::request(n, self.connection.max_payload(), ack_wait));
        let sent = self.connection.client().publish_with_reply(request.clone(), reply.clone(), body).await;
        sent.map_err(|e| LinkError::PullAgain(e.to_string()))?;
        let mut left = n;
        let mut heard = Instant::now();
        while left > 0 {
            let arrival = tokio::select! {
                biased;
                arrival = line.next(&info) => arrival.ok_or_else(|| LinkError::PullAgain("the subscription ended".into()))?,
                denied = denial(&mut denials, |d| d.subject == request || d.subject == wildcard) => return Err(LinkError::Denied(denied)),
                () = down.cancelled() => return Err(LinkError::PullAgain("the connection changed".into())),
                () = sleep_until(heard + SILENCE) => return Err(LinkError::PullAgain("the server went silent".into())),
            };
            heard = Instant::now();
            match arrival {
                Arrival::Other => {}
                Arrival::Call(message, transit) => {
                    take(message, transit);
                    left -= 1;
                }
                Arrival::Status { reply: about, .. } if about != reply => {} // about an earlier pull
                Arrival::Status { code, description, pending, .. } => match pulls::action(code, &description) {
                    Action::Continue => {}
                    // Those that the server counts as sent may still be on their way.
                    Action::Ended => left = left.saturating_sub(pulls::pending(pending.as_deref())),
                    Action::Register => return Err(LinkError::Unbound(binding.consumer.clone())),
                    Action::PullAgain => return Err(LinkError::PullAgain(format!("{code} {description}"))),
                    Action::AskConsumerInfo => return Err(LinkError::Unbound(String::new())),
                    Action::Fault => {
                        let consumer = &binding.consumer;
                        return Err(LinkError::Other(format!("the server refused a pull from {consumer}: {description}")));
                    }
                },
            }
        }
        Ok(())
    }

    /// Takes the calls that still arrive for a pull that was given up.
    async fn linger(&self, mut line: Line, binding: &Binding, take: &Take) {
        let info = self.info(binding);
        let wait = if line.down().is_cancelled() { Duration::ZERO } else { LINGER };
        let reading = async {
            while let Some(arrival) = line.next(&info).await {
                if let Arrival::Call(message, transit) = arrival {
                    take(message, transit);
                }
            }
        };
        timeout(wait, reading).await.ok();
    }

    /// Looks whether the pool's consumer exists: an error says what is instead.
    pub(super) async fn exists(&self, binding: &Binding, until: &CancellationToken) -> Result<(), LinkError> {
        let answer = ask(&self.connection, &self.info(binding), Bytes::new(), None, INFO, until).await?;
        match api_error(&answer.payload) {
            0 => Ok(()),
            404 => Err(LinkError::Unbound(binding.consumer.clone())),
            code => Err(LinkError::PullAgain(format!("the server answers {code} about {}", binding.consumer))),
        }
    }
}
