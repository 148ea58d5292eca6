use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};

use crate::chance;

/// More options of the NATS client, which win over all others.
pub(crate) type Customize = Arc<dyn Fn(ConnectOptions) -> ConnectOptions + Send + Sync>;

/// Who this is.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    File(PathBuf),
    NkeyFile(PathBuf),
    User(String, String),
    Token(String),
}

/// Files in PEM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
}

/// How to reach NATS.
#[derive(Clone)]
pub(crate) struct Connecting {
    pub(crate) servers: String,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) tls: Tls,
    pub(crate) inbox_prefix: String,
    pub(crate) name: String,
    pub(crate) customize: Option<Customize>,
}

impl Connecting {
    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>, String> {
        let texts: Vec<&str> = self.servers.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Err("there is no address of NATS; give one, such as nats://127.0.0.1:4222".into());
        }
        let read = |text: &str| text.parse().map_err(|e| format!("the address {text:?} of NATS cannot be used: {e}; use nats:// or tls://"));
        texts.into_iter().map(read).collect()
    }

    pub(super) fn options(&self) -> Result<ConnectOptions, String> {
        let mut options = ConnectOptions::new()
            .name(&self.name)
            .custom_inbox_prefix(&self.inbox_prefix)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(Duration::from_secs(5))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::ZERO,
                _ => Duration::from_millis(250) + Duration::from_millis(500).mul_f64(chance::fraction()),
            });
        options = match &self.credentials {
            None => options,
            Some(Credentials::File(path)) => {
                options.credentials(&read(path)?).map_err(|e| format!("the credentials in {} cannot be used: {e}", path.display()))?
            }
            Some(Credentials::NkeyFile(path)) => options.nkey(read(path)?.trim().to_owned()),
            Some(Credentials::User(user, password)) => options.user_and_password(user.clone(), password.clone()),
            Some(Credentials::Token(token)) => options.token(token.clone()),
        };
        if let Some(ca) = &self.tls.ca {
            read(ca)?;
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.tls.certificate {
            read(certificate)?;
            read(key)?;
            options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
        }
        Ok(match &self.customize {
            Some(customize) => customize(options),
            None => options,
        })
    }
}

fn read(path: &PathBuf) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}
