use std::fmt;
use std::time::Duration;

/// Causes of failures that the executor decides.
pub(crate) mod causes {
    pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";
    pub(crate) const INVALID_OUTPUT: &str = "invalid_output";
}

/// Why a handler did not succeed: a business failure, which the model is told, a technical one, after which the call may
/// be run again, or the loss of a run that may have taken effect.
///
/// Any error of the standard kind becomes a business failure with its text, so that `?` works in handlers. What the model
/// must not read has to be replaced before that.
pub struct Error {
    pub(crate) kind: ErrorKind,
}

#[derive(Debug)]
pub(crate) enum ErrorKind {
    Failure { error: String, cause: Option<String> },
    Retry { reason: String, after: Duration },
    Uncertain { reason: String },
}

impl Error {
    /// A business failure: the text goes to the model, and the call is over.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failure { error: text.into(), cause: None } }
    }

    /// A technical failure: the call is run again as the policy of the function says. The reason is for operators, and for
    /// the model when the last attempt failed.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Retry { reason: reason.into(), after: Duration::ZERO } }
    }

    /// The run was lost and may have taken effect, as when a downstream went away before it answered. What follows is the
    /// function's choice, [`Function::on_uncertain`](crate::Function::on_uncertain): a function that may be run again has a
    /// technical failure; one that can be verified has its verify handler asked after the lease; of any other the model is
    /// told that the outcome is unknown, or an operator decides. The reason is for operators.
    pub fn uncertain(reason: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Uncertain { reason: reason.into() } }
    }

    /// A word for counters, 1 to 32 of `a-z _`: few and distinct ones. Nothing happens to other errors.
    #[must_use]
    pub fn with_cause(mut self, word: impl Into<String>) -> Self {
        if let ErrorKind::Failure { cause, .. } = &mut self.kind {
            *cause = Some(word.into());
        }
        self
    }

    /// Not before that time has passed, seven days at most. Zero leaves it to the policy. Nothing happens to other
    /// errors.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        if let ErrorKind::Retry { after, .. } = &mut self.kind {
            *after = time;
        }
        self
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::failure(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Failure { error, .. } => f.write_str(error),
            ErrorKind::Retry { reason, .. } | ErrorKind::Uncertain { reason } => f.write_str(reason),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// Why an executor ended without being told to.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// A setting or a function cannot be as it is. The text says what to change.
    Config(String),
    /// A dispatcher refused a function for good.
    Refused {
        /// The function.
        function: String,
        /// The word of the protocol, such as `function_taken`.
        code: String,
        /// What the dispatcher says.
        message: String,
    },
    /// The NATS server forbids what is needed to register.
    Denied(PermissionDenied),
    /// The executor's own thread ended by a panic, or could not be started.
    Crashed(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(text) => f.write_str(text),
            Self::Refused { function, code, message } => write!(f, "function {function:?} was refused ({code}): {message}"),
            Self::Denied(denied) => denied.fmt(f),
            Self::Crashed(text) => write!(f, "the executor has a fault, please report it: {text}"),
        }
    }
}

impl std::error::Error for RunError {}

/// The NATS server denies a subject to this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionDenied {
    /// `publish` or `subscribe`.
    pub operation: &'static str,
    /// The subject.
    pub subject: String,
}

impl fmt::Display for PermissionDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, subject } = self;
        write!(f, "the NATS server denies this user to {operation} {subject:?}; allow it in the user's permissions")
    }
}

impl std::error::Error for PermissionDenied {}
