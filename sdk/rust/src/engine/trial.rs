use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::registered::Registered;
use super::running::{Running, Surroundings};
use super::uncertainty::{Resolution, resolve};
use super::{attempt, verification};
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;

/// One attempt without servers: what would be reported. `cancelled` cancels what runs.
pub(crate) async fn trial(f: &Registered, d: Dispatch, cancelled: CancellationToken) -> Option<Outcome> {
    let d = Arc::new(d);
    let at = Surroundings { handlers: Handle::current(), cancelled, hard: CancellationToken::new() };
    if d.uncertain {
        match resolve(f, &d) {
            Resolution::Run => {}
            Resolution::End(ending) => return ending.outcome,
            Resolution::Verify(code) => {
                let mut running = Running::enter(code, "verify", f, &d, true, &at);
                let ending = verification::ending(&mut running, &d, &at).await;
                running.straggler().leave().await;
                if let Some(ending) = ending {
                    return ending.outcome;
                }
            }
        }
    }
    let mut running = Running::enter(&f.run, "function", f, &d, d.uncertain, &at);
    let ending = attempt::ending(&mut running, f, &d, &at).await;
    running.straggler().leave().await;
    ending.outcome
}
