use std::time::Duration;

use async_nats::{HeaderMap, Message, Request, RequestErrorKind};
use bytes::Bytes;
use tokio::sync::broadcast;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use crate::engine::LinkError;
use crate::error::PermissionDenied;

/// Asks, and waits for the answer. It ends at once when the connection is lost or the server denies the subject.
pub(super) async fn ask(
    connection: &Connection,
    subject: &str,
    payload: Bytes,
    headers: Option<HeaderMap>,
    within: Duration,
    until: &CancellationToken,
) -> Result<Message, LinkError> {
    if !connection.is_connected() {
        return Err(LinkError::NotConnected);
    }
    if let Some(denied) = connection.inbox_denied() {
        return Err(LinkError::Denied(denied));
    }
    let mut denials = connection.denials();
    let down = connection.down();
    let mut request = Request::new().payload(payload).timeout(None);
    if let Some(headers) = headers {
        request = request.headers(headers);
    }
    tokio::select! {
        answer = connection.client().send_request(subject.to_owned(), request) => answer.map_err(|e| match e.kind() {
            RequestErrorKind::NoResponders => LinkError::Other(format!("nobody answers on {subject}")),
            _ => LinkError::Other(format!("no answer on {subject}: {e}")),
        }),
        denied = denial(&mut denials, |denied| denied.subject == subject || connection.inbox_denied().is_some()) => Err(LinkError::Denied(denied)),
        () = down.cancelled() => Err(LinkError::NotConnected),
        () = until.cancelled() => Err(LinkError::GivenUp),
        () = sleep(within) => Err(LinkError::NoAnswer { subject: subject.to_owned(), within }),
    }
}

/// Waits for a denial that matters.
pub(super) async fn denial(denials: &mut broadcast::Receiver<PermissionDenied>, matters: impl Fn(&PermissionDenied) -> bool) -> PermissionDenied {
    loop {
        match denials.recv().await {
            Ok(denied) if matters(&denied) => return denied,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
