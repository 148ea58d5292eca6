use crate::error::PermissionDenied;

/// What an error of the server says about a permission; none when it is about something else.
pub(super) fn denied(error: &str) -> Option<PermissionDenied> {
    let lower = error.to_ascii_lowercase();
    let (at, operation) = ["permissions violation for publish to ", "permissions violation for subscription to "]
        .iter()
        .zip(["publish", "subscribe"])
        .find_map(|(phrase, operation)| lower.find(phrase).map(|at| (at + phrase.len(), operation)))?;
    let subject = error[at..].trim_start_matches('"');
    let subject = subject.split(['"', ' ', '\t', '\'']).next().unwrap_or_default();
    (!subject.is_empty()).then(|| PermissionDenied { operation, subject: subject.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say() {
        let publish = denied("Permissions Violation for Publish to \"fn.result.a.p07\"").unwrap();
        assert_eq!((publish.operation, publish.subject.as_str()), ("publish", "fn.result.a.p07"));
        let subscribe = denied("Permissions Violation for Subscription to \"_INBOX.>\" using queue \"q\"").unwrap();
        assert_eq!((subscribe.operation, subscribe.subject.as_str()), ("subscribe", "_INBOX.>"));
        assert_eq!(denied("Stale Connection"), None);
    }
}
