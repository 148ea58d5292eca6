//! Settings that are not given come from the environment.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::chance;
use crate::nats::{Credentials, Tls};
use crate::wire::names::is_word;
use crate::wire::texts::executor_name;

/// The variables of the environment.
pub(crate) struct Environment(HashMap<String, String>);

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from)
    }

    pub(crate) fn or(&self, given: Option<&String>, name: &str, otherwise: &str) -> String {
        given.cloned().or_else(|| self.variable(name)).unwrap_or_else(|| otherwise.to_owned())
    }

    pub(crate) fn credentials(&self) -> Result<Option<Credentials>, String> {
        if let Some(path) = self.path("NATS_CREDS") {
            return Ok(Some(Credentials::File(path)));
        }
        if let Some(path) = self.path("NATS_NKEY") {
            return Ok(Some(Credentials::NkeyFile(path)));
        }
        if let Some(user) = self.variable("NATS_USER") {
            return Ok(Some(Credentials::User(user, self.secret("NATS_PASSWORD")?.unwrap_or_default())));
        }
        Ok(self.secret("NATS_TOKEN")?.map(Credentials::Token))
    }

    /// The secret of a variable, or of the file that the variable with `_FILE` names.
    fn secret(&self, name: &str) -> Result<Option<String>, String> {
        let file = format!("{name}_FILE");
        match (self.variable(name), self.variable(&file)) {
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}, which {file} names, cannot be read: {e}"))?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
            }
            (given, _) => Ok(given),
        }
    }

    pub(crate) fn tls(&self, given: &Tls) -> Result<Tls, String> {
        let of_environment = match (self.path("NATS_CERT"), self.path("NATS_KEY")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("NATS_CERT and NATS_KEY belong together; set both".into()),
        };
        Ok(Tls { ca: given.ca.clone().or_else(|| self.path("NATS_CA")), certificate: given.certificate.clone().or(of_environment) })
    }
}

pub(crate) fn check(pool: &str, concurrency: usize, id: &str) -> Result<(), String> {
    if !(1..=64).contains(&pool.len()) || !pool.bytes().all(is_word) {
        return Err(format!("pool is {pool:?}; name the deployment with 1 to 64 of A-Z a-z 0-9 _ -"));
    }
    if concurrency == 0 {
        return Err("concurrency is 0; use a whole number from 1".into());
    }
    if id.is_empty() || executor_name(id) != id {
        return Err(format!("id is {id:?}; use at most 128 bytes of printable characters, or none"));
    }
    Ok(())
}

pub(crate) fn check_prefix(prefix: &str) -> Result<(), String> {
    if !(1..=32).contains(&prefix.len()) || !prefix.bytes().all(is_word) {
        return Err(format!("prefix is {prefix:?}; use 1 to 32 of A-Z a-z 0-9 _ -"));
    }
    Ok(())
}

pub(crate) fn host() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = kernel.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

pub(crate) fn default_id() -> String {
    let process = format!("-{}-{:04x}", std::process::id(), chance::number());
    let host: String = host().chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).take(128 - process.len()).collect();
    host + &process
}
