use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::{Link as _, Registered, Settings, Worker};
use crate::error::RunError;
use crate::function::Function;
use crate::nats::{Connecting, Credentials, Customize, LinkSettings, NatsLink, Tls};
use crate::settings::{self, Environment};
use crate::signals;
use crate::wire::requests::ExecutorInfo;

/// Serves functions: registers them, takes their calls, runs handlers and reports what they came to.
///
/// What is not set here comes from the environment, see [`run`](Self::run).
#[derive(Clone)]
pub struct Executor {
    pool: String,
    functions: Vec<Function>,
    servers: Option<String>,
    credentials: Option<Credentials>,
    tls: Tls,
    customize: Option<Customize>,
    prefix: Option<String>,
    inbox_prefix: Option<String>,
    api_prefix: Option<String>,
    concurrency: usize,
    id: Option<String>,
    version: Option<String>,
    stop_timeout: Duration,
}

impl Executor {
    /// An executor of the pool: the name of the deployment, 1 to 64 of `[A-Za-z0-9_-]`. All processes of a pool have to serve
    /// the same functions.
    pub fn new(pool: impl Into<String>) -> Self {
        Self {
            pool: pool.into(),
            functions: Vec::new(),
            servers: None,
            credentials: None,
            tls: Tls::default(),
            customize: None,
            prefix: None,
            inbox_prefix: None,
            api_prefix: None,
            concurrency: 32,
            id: None,
            version: None,
            stop_timeout: Duration::from_secs(25),
        }
    }

    /// Adds a function.
    #[must_use]
    pub fn function(mut self, function: Function) -> Self {
        self.functions.push(function);
        self
    }

    /// Addresses of NATS, separated by commas. Default `NATS_URL`, or `nats://127.0.0.1:4222`.
    #[must_use]
    pub fn servers(mut self, addresses: impl Into<String>) -> Self {
        self.servers = Some(addresses.into());
        self
    }

    /// Proves who this is by a file of credentials. Default for all such settings: `NATS_CREDS`, `NATS_NKEY`, `NATS_USER` with
    /// `NATS_PASSWORD`, or `NATS_TOKEN`; the last two secrets also from the files that `NATS_PASSWORD_FILE` and
    /// `NATS_TOKEN_FILE` name.
    #[must_use]
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials = Some(Credentials::File(path.into()));
        self
    }

    /// Proves who this is by the file of an nkey's seed.
    #[must_use]
    pub fn nkey_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials = Some(Credentials::NkeyFile(path.into()));
        self
    }

    /// Proves who this is.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials::User(name.into(), password.into()));
        self
    }

    /// Proves who this is.
    #[must_use]
    pub fn token(mut self, secret: impl Into<String>) -> Self {
        self.credentials = Some(Credentials::Token(secret.into()));
        self
    }

    /// The certificate authority of the servers, a file in PEM. TLS is required then. Default `NATS_CA`.
    #[must_use]
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(path.into());
        self
    }

    /// The certificate of this client and its key, files in PEM. TLS is required then. Default `NATS_CERT` and `NATS_KEY`.
    #[must_use]
    pub fn client_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// More options of the NATS client, which win over all others but the callback for events.
    #[must_use]
    pub fn nats_options(mut self, customize: impl Fn(ConnectOptions) -> ConnectOptions + Send + Sync + 'static) -> Self {
        self.customize = Some(Arc::new(customize));
        self
    }

    /// What the subjects of the installation begin with. Default `CALLFAN_PREFIX`, or `fn`.
    #[must_use]
    pub fn prefix(mut self, subjects: impl Into<String>) -> Self {
        self.prefix = Some(subjects.into());
        self
    }

    /// Where replies arrive. Default `CALLFAN_NATS_INBOX_PREFIX`, or `_INBOX`.
    #[must_use]
    pub fn inbox_prefix(mut self, subjects: impl Into<String>) -> Self {
        self.inbox_prefix = Some(subjects.into());
        self
    }

    /// The subject prefix of the JetStream API. Default `CALLFAN_NATS_API_PREFIX`, or `$JS.API`.
    #[must_use]
    pub fn api_prefix(mut self, subjects: impl Into<String>) -> Self {
        self.api_prefix = Some(subjects.into());
        self
    }

    /// How many calls run at once. Default 32.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls;
        self
    }

    /// Names this process for operators: at most 128 bytes of printable characters. Default: host, process and four characters.
    #[must_use]
    pub fn id(mut self, name: impl Into<String>) -> Self {
        self.id = Some(name.into());
        self
    }

    /// The version of the program, for operators and for changes of a definition: `env!("CARGO_PKG_VERSION")`, for example.
    #[must_use]
    pub fn version(mut self, text: impl Into<String>) -> Self {
        self.version = Some(text.into());
        self
    }

    /// How long running handlers may go on after a stop. Keep it below the time that the platform gives. Default 25 s.
    #[must_use]
    pub fn stop_timeout(mut self, time: Duration) -> Self {
        self.stop_timeout = time;
        self
    }

    /// Serves the functions until SIGTERM or SIGINT: finishes what runs, gives back what was not started. A second signal
    /// interrupts what runs. It waits for NATS and for a dispatcher for ever.
    ///
    /// Handlers run in the runtime that this is called in, everything else on a thread of its own.
    ///
    /// # Errors
    ///
    /// When a setting cannot be used, when a dispatcher refuses a function, and when the NATS server forbids to register.
    pub async fn run(self) -> Result<(), RunError> {
        let stop = CancellationToken::new();
        self.serve(stop, true).await
    }

    /// As [`run`](Self::run), in a program that has its own way to stop: by that token.
    ///
    /// # Errors
    ///
    /// See [`run`](Self::run).
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), RunError> {
        self.serve(stop.child_token(), false).await
    }

    /// Checks the settings and the functions, without a connection. [`run`](Self::run) does so first.
    ///
    /// # Errors
    ///
    /// [`RunError::Config`], whose text says what to change.
    pub fn check(&self) -> Result<(), RunError> {
        self.configured(&Environment::of_process()).map(|_| ())
    }

    async fn serve(self, stop: CancellationToken, signals: bool) -> Result<(), RunError> {
        let (link, settings) = self.configured(&Environment::of_process())?;
        let functions = self.registered();
        let handlers = Handle::current();
        let (done, ended) = oneshot::channel();
        let _stop_when_dropped = stop.clone().drop_guard();
        std::thread::Builder::new()
            .name("callfan-engine".into())
            .spawn(move || {
                done.send(engine(link, settings, functions, handlers, stop, signals)).ok();
            })
            .map_err(|e| RunError::Crashed(format!("no thread: {e}")))?;
        ended.await.map_err(|_| RunError::Crashed("its thread panicked".into()))?
    }

    fn configured(&self, env: &Environment) -> Result<(LinkSettings, Settings), RunError> {
        self.check_functions().map_err(RunError::Config)?;
        let id = self.id.clone().unwrap_or_else(settings::default_id);
        settings::check(&self.pool, self.concurrency, &id).map_err(RunError::Config)?;
        let prefix = env.or(self.prefix.as_ref(), "CALLFAN_PREFIX", "fn");
        settings::check_prefix(&prefix).map_err(RunError::Config)?;
        let connecting = Connecting {
            servers: env.or(self.servers.as_ref(), "NATS_URL", "nats://127.0.0.1:4222"),
            credentials: self.credentials.clone().map_or_else(|| env.credentials(), |given| Ok(Some(given))).map_err(RunError::Config)?,
            tls: env.tls(&self.tls).map_err(RunError::Config)?,
            inbox_prefix: env.or(self.inbox_prefix.as_ref(), "CALLFAN_NATS_INBOX_PREFIX", "_INBOX"),
            name: format!("executor {} {id}", self.pool),
            customize: self.customize.clone(),
        };
        let link = LinkSettings {
            pool: self.pool.clone(),
            prefix,
            api_prefix: env.or(self.api_prefix.as_ref(), "CALLFAN_NATS_API_PREFIX", "$JS.API"),
            connecting,
            executor: ExecutorInfo { id: id.clone(), version: self.version.clone(), host: settings::host() },
        };
        let worker = Settings { pool: self.pool.clone(), executor_id: id, concurrency: self.concurrency, stop_timeout: self.stop_timeout };
        Ok((link, worker))
    }

    fn check_functions(&self) -> Result<(), String> {
        if self.functions.is_empty() {
            return Err("there is no function; add one by function()".into());
        }
        for (at, function) in self.functions.iter().enumerate() {
            function.check()?;
            if self.functions[..at].iter().any(|other| other.name == function.name) {
                return Err(format!("there are two functions of the name {:?}", function.name));
            }
        }
        Ok(())
    }

    pub(crate) fn registered(&self) -> Vec<Registered> {
        self.functions.iter().map(Function::registered).collect()
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("pool", &self.pool).field("functions", &self.functions).finish_non_exhaustive()
    }
}

/// The life of an executor, on its own thread.
fn engine(
    link: LinkSettings,
    settings: Settings,
    functions: Vec<Registered>,
    handlers: Handle,
    stop: CancellationToken,
    signals: bool,
) -> Result<(), RunError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| RunError::Crashed(e.to_string()))?;
    runtime.block_on(async move {
        let impatient = CancellationToken::new();
        if signals {
            signals::listen(stop.clone(), impatient.clone()).map_err(|e| RunError::Crashed(format!("signals are not heard: {e}")))?;
        }
        let link = Arc::new(NatsLink::open(link).await.map_err(RunError::Config)?);
        let worker = Worker::new(Arc::clone(&link), handlers, functions, settings, (stop, impatient));
        let served = worker.serve().await;
        link.close().await;
        if worker.abandoned() > 0 {
            tracing::warn!(handlers = worker.abandoned(), "handlers did not return; their calls were settled");
        }
        served
    })
}
