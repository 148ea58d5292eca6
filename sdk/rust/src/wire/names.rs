//! Subjects and tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The version of the wire protocol that this crate speaks.
pub(crate) const PROTOCOL_VERSION: &str = "1";

/// The part of a subject that stands for a function's name; empty for the empty name.
pub(crate) fn token(name: &str) -> String {
    if name.len() <= 64 && name.bytes().all(is_word) {
        return name.to_owned();
    }
    if name.len() <= 128 {
        return format!("={}", base64(name.as_bytes()));
    }
    format!("~{}", base64(&Sha256::digest(name.as_bytes())))
}

/// Whether the byte is one of `[A-Za-z0-9_-]`.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The subjects of an installation.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    pub(crate) fn register(&self, function: &str) -> String {
        format!("{}.register.{}", self.prefix, token(function))
    }

    pub(crate) fn outcome(&self, function: &str) -> String {
        format!("{}.outcome.{}", self.prefix, token(function))
    }

    pub(crate) fn cancel(&self, function: &str) -> String {
        format!("{}.cancel.{}", self.prefix, token(function))
    }

    /// Whether `subject` is where the outcomes of the function with that token go.
    pub(crate) fn is_result(&self, subject: &str, token: &str) -> bool {
        subject
            .strip_prefix(self.prefix.as_str())
            .and_then(|rest| rest.strip_prefix(".result."))
            .and_then(|rest| rest.strip_prefix(token))
            .and_then(|rest| rest.strip_prefix(".p"))
            .is_some_and(is_partition)
    }
}

/// At least two digits, and no needless zeros.
fn is_partition(digits: &str) -> bool {
    let padded = digits.len() == 2 || !digits.starts_with('0');
    (2..=5).contains(&digits.len()) && padded && digits.bytes().all(|b| b.is_ascii_digit())
}

/// How often the message with that reply subject was handed out, from 1.
pub(crate) fn deliveries_of(reply: &str) -> u64 {
    let parts: Vec<&str> = reply.split('.').collect();
    let at = if parts.len() >= 11 { 6 } else { 4 };
    parts.get(at).and_then(|text| text.parse().ok()).filter(|&n| n > 0).unwrap_or(1)
}
