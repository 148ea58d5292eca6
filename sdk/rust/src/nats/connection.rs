use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::connection::State as ClientState;
use async_nats::{Client, Event, ServerError};
use tokio::sync::{broadcast, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connecting::Connecting;
use super::denials::denied;
use super::outbox::Outbox;
use crate::error::PermissionDenied;

const DRAIN: Duration = Duration::from_secs(5);
/// How often the client is asked for its state, should an event be lost.
const LOOK: Duration = Duration::from_millis(250);

/// A connection to NATS that is made, and made again, for ever. Clones are the same connection.
#[derive(Clone)]
pub(super) struct Connection(Arc<Inner>);

struct Inner {
    client: OnceLock<Client>,
    outbox: Outbox,
    inbox_prefix: String,
    /// Counts what happened to the connection.
    events: watch::Sender<u64>,
    denials: broadcast::Sender<PermissionDenied>,
    state: Mutex<State>,
}

struct State {
    /// Is cancelled when the connection that stands now is lost.
    down: CancellationToken,
    /// Why no answer can arrive.
    inbox_denied: Option<PermissionDenied>,
    /// The last reason for which there is no connection, which is logged once.
    why: String,
    closed: bool,
}

impl Connection {
    /// Begins to connect. It fails when the settings cannot be used.
    pub(super) async fn open(connecting: &Connecting) -> Result<Self, String> {
        let (outbox, letters) = Outbox::new();
        let down = CancellationToken::new();
        let connection = Self(Arc::new(Inner {
            client: OnceLock::new(),
            outbox,
            inbox_prefix: connecting.inbox_prefix.clone(),
            events: watch::Sender::new(0),
            denials: broadcast::Sender::new(64),
            state: Mutex::new(State { down, inbox_denied: None, why: String::new(), closed: false }),
        }));
        let listening = connection.clone();
        let options = connecting.options()?.event_callback(move |event| {
            listening.happened(event);
            std::future::ready(())
        });
        let client = options.connect(connecting.addresses()?).await.map_err(|e| format!("NATS cannot be reached as configured: {e}"))?;
        connection.0.client.set(client).ok();
        tokio::spawn(letters.send_all(connection.clone()));
        Ok(connection)
    }

    pub(super) fn client(&self) -> &Client {
        self.0.client.get().expect("a connection is given out once it has its client")
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.0.client.get().is_some_and(|client| client.connection_state() == ClientState::Connected)
    }

    /// Waits until the connection stands.
    pub(super) async fn connected(&self) {
        let mut events = self.0.events.subscribe();
        while !self.is_connected() {
            tokio::select! {
                _ = events.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }

    /// What is cancelled when the connection that stands now is lost.
    pub(super) fn down(&self) -> CancellationToken {
        let connected = self.is_connected();
        let mut state = self.state();
        if connected && state.down.is_cancelled() {
            state.down = CancellationToken::new();
        }
        state.down.clone()
    }

    /// The subjects that the server denies, from now on.
    pub(super) fn denials(&self) -> broadcast::Receiver<PermissionDenied> {
        self.0.denials.subscribe()
    }

    /// Why no answer can arrive, if the server said so.
    pub(super) fn inbox_denied(&self) -> Option<PermissionDenied> {
        self.state().inbox_denied.clone()
    }

    /// The server's limit for a message with its headers.
    pub(super) fn max_payload(&self) -> usize {
        self.client().max_payload()
    }

    /// Ends the connection after what was sent has left.
    pub(super) async fn close(&self) {
        self.state().closed = true;
        if !self.is_connected() {
            return;
        }
        let mut events = self.0.events.subscribe();
        let drained = timeout(DRAIN, async {
            self.0.outbox.flush().await;
            self.client().flush().await.ok();
            self.client().drain().await.ok();
            while !self.state().down.is_cancelled() && events.changed().await.is_ok() {}
        });
        if drained.await.is_err() {
            tracing::debug!("connection was not drained");
        }
    }

    fn happened(&self, event: Event) {
        match event {
            Event::Connected => self.came_up(),
            Event::Disconnected => self.went_down("connection to NATS lost; connecting again until it stands"),
            Event::Closed => self.went_down("connection to NATS closed"),
            Event::ServerError(ServerError::Other(error)) => self.refused(error),
            Event::ServerError(error) => self.still_down(error.to_string()),
            Event::ClientError(error) => self.still_down(error.to_string()),
            Event::SlowConsumer(_) => tracing::warn!("messages from NATS are read too slowly"),
            Event::LameDuckMode | Event::Draining => {}
        }
        self.0.events.send_modify(|events| *events += 1);
    }

    fn came_up(&self) {
        {
            let mut state = self.state();
            state.down = CancellationToken::new();
            state.inbox_denied = None;
            state.why.clear();
        }
        if let Some(client) = self.0.client.get() {
            let info = client.server_info();
            tracing::info!(server = info.server_name, max_payload = client.max_payload(), "connected to NATS");
        }
    }

    fn went_down(&self, what: &str) {
        let state = self.state();
        if !state.closed {
            tracing::warn!("{what}");
        }
        state.down.cancel();
    }

    fn refused(&self, error: String) {
        let Some(denied) = denied(&error) else {
            return self.still_down(error);
        };
        let PermissionDenied { operation, subject } = &denied;
        tracing::error!(operation, subject, "the NATS server denied a subject; allow it in this user's permissions");
        if denied.operation == "subscribe" && denied.subject.starts_with(&self.0.inbox_prefix) {
            self.state().inbox_denied = Some(denied.clone());
        }
        self.0.denials.send(denied).ok();
    }

    /// Logs why connecting fails when the reason is a new one.
    fn still_down(&self, why: String) {
        let mut state = self.state();
        if why != state.why && !state.closed {
            tracing::warn!(error = why, "cannot connect to NATS; trying until it works");
            state.why = why;
        }
    }
}
