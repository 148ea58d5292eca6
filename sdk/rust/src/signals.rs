use std::io;

use tokio_util::sync::CancellationToken;

/// Listens for what stops a program: the first signal cancels `stop`, the second `impatient`.
#[cfg(unix)]
pub(crate) fn listen(stop: CancellationToken, impatient: CancellationToken) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        for token in [stop, impatient] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(())
}

/// Listens for what stops a program: the first one cancels `stop`, the second `impatient`.
#[cfg(not(unix))]
pub(crate) fn listen(stop: CancellationToken, impatient: CancellationToken) -> io::Result<()> {
    tokio::spawn(async move {
        for token in [stop, impatient] {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            token.cancel();
        }
    });
    Ok(())
}
