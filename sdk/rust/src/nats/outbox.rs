use std::time::{Duration, Instant};

use async_nats::Client;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::connection::Connection;

/// A lease that was not extended for so long is extended by the next beat.
const STALE: Duration = Duration::from_secs(1);

/// What is sent without an answer. Nothing here holds up who sends.
#[derive(Clone)]
pub(super) struct Outbox(mpsc::UnboundedSender<Letter>);

enum Letter {
    /// It is of use now only.
    Now(String, Bytes, Instant),
    /// It is sent as soon as there is a connection.
    Soon(String, Bytes),
    Flush(oneshot::Sender<()>),
}

impl Outbox {
    pub(super) fn new() -> (Self, Letters) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), Letters(receiver))
    }

    pub(super) fn now(&self, subject: String, payload: Bytes) {
        self.0.send(Letter::Now(subject, payload, Instant::now())).ok();
    }

    pub(super) fn soon(&self, subject: String, payload: Bytes) {
        self.0.send(Letter::Soon(subject, payload)).ok();
    }

    /// Waits until all that was sent before has left.
    pub(super) async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.0.send(Letter::Flush(done)).is_ok() {
            waiting.await.ok();
        }
    }
}

/// The other end of an outbox.
pub(super) struct Letters(mpsc::UnboundedReceiver<Letter>);

impl Letters {
    pub(super) async fn send_all(mut self, connection: Connection) {
        while let Some(letter) = self.0.recv().await {
            let client: &Client = connection.client();
            match letter {
                Letter::Now(subject, payload, at) => {
                    if connection.is_connected() && at.elapsed() < STALE {
                        client.publish(subject, payload).await.ok();
                    }
                }
                Letter::Soon(subject, payload) => {
                    connection.connected().await;
                    client.publish(subject, payload).await.ok();
                }
                Letter::Flush(done) => {
                    client.flush().await.ok();
                    done.send(()).ok();
                }
            }
        }
    }
}
