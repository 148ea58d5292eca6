use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::transit::Transit;
use crate::engine::LinkError;
use crate::wire::pulls::heartbeat;

/// A subscription on which the messages of pulls arrive, one pull after the other.
pub(super) struct Line {
    connection: Connection,
    inbox: String,
    subscriber: Subscriber,
    down: CancellationToken,
    pulls: u64,
    transit: Transit,
}

/// What arrived on a line.
pub(super) enum Arrival {
    /// A call, and the longest that it may have been on its way.
    Call(Message, Duration),
    /// A status of the pull with that reply subject.
    Status { reply: String, code: u16, description: String, pending: Option<String> },
    /// A sign of life.
    Other,
}

impl Line {
    pub(super) async fn new(connection: &Connection) -> Result<Self, LinkError> {
        if !connection.is_connected() {
            return Err(LinkError::PullAgain("not connected to NATS".into()));
        }
        let down = connection.down();
        let inbox = connection.client().new_inbox();
        let subscriber = connection.client().subscribe(format!("{inbox}.*")).await.map_err(|e| LinkError::PullAgain(e.to_string()))?;
        Ok(Self { connection: connection.clone(), inbox, subscriber, down, pulls: 0, transit: Transit::new(Instant::now()) })
    }

    pub(super) fn wildcard(&self) -> String {
        format!("{}.*", self.inbox)
    }

    /// Is cancelled when the connection is lost, and with it what was under way.
    pub(super) fn down(&self) -> &CancellationToken {
        &self.down
    }

    /// The reply subject of a pull that is sent now.
    pub(super) fn next_reply(&mut self, ack_wait: Duration) -> String {
        self.pulls += 1;
        self.transit.asked(Instant::now(), heartbeat(ack_wait) * 5 / 2);
        format!("{}.{}", self.inbox, self.pulls)
    }

    /// Waits for what arrives next; none when the subscription has ended. `info` is a subject on which the server answers.
    pub(super) async fn next(&mut self, info: &str) -> Option<Arrival> {
        let message = self.subscriber.next().await?;
        let (longest, question) = self.transit.read(Instant::now());
        if let Some(number) = question {
            // What is behind the answer was sent after the question: both go through the consumer's server, in order.
            let reply = format!("{}.q{number}", self.inbox);
            self.connection.client().publish_with_reply(info.to_owned(), reply, Bytes::new()).await.ok();
        }
        if let Some(number) = message.subject.strip_prefix(self.inbox.as_str()).and_then(|rest| rest.strip_prefix(".q")) {
            self.transit.answered(number.parse().unwrap_or(0));
            return Some(Arrival::Other);
        }
        let Some(status) = message.status.filter(|_| message.payload.is_empty()) else {
            return Some(Arrival::Call(message, longest));
        };
        Some(Arrival::Status {
            code: status.as_u16(),
            pending: message.headers.as_ref().and_then(|headers| headers.get("Nats-Pending-Messages")).map(ToString::to_string),
            reply: message.subject.into_string(),
            description: message.description.unwrap_or_default(),
        })
    }
}
