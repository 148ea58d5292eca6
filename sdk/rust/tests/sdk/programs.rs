//! Programs that tests start: their output goes to a file, and they end with the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is two levels up")
}

/// The program callfan.
pub(crate) fn callfan() -> String {
    let path = root().join("bin/callfan");
    assert!(path.exists(), "{} does not exist; remedy: run make test-rust, or make build first", path.display());
    path.display().to_string()
}

fn is_of_cargo(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| variable.starts_with(start))
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    /// Starts commands of the shell. Signals go to the last one.
    pub(crate) fn start(commands: &str, directory: &Path, environment: &[(&str, String)]) -> Self {
        let (before, last) = commands.trim().rsplit_once('\n').unwrap_or(("", commands.trim()));
        Self::shell(&format!("{before}\nexec {last}"), directory, environment)
    }

    fn shell(commands: &str, directory: &Path, environment: &[(&str, String)]) -> Self {
        let (file, output) = tempfile::NamedTempFile::new().expect("a file for the output").keep().expect("it stays");
        let errors: File = file.try_clone().expect("a second handle");
        let mut shell = Command::new("/bin/sh");
        // What cargo says to this test makes the cargo of the guide compile ring, and all that is above it, once more.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_cargo(&name.to_string_lossy())) {
            shell.env_remove(name);
        }
        let child = shell
            .args(["-euc", commands])
            .current_dir(directory)
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .expect("a shell");
        Self { child, output }
    }

    /// Runs commands to their end, and gives their output.
    pub(crate) fn run(commands: &str, directory: &Path, environment: &[(&str, String)]) -> String {
        let mut running = Self::shell(commands, directory, environment);
        running.ends(Duration::from_secs(600));
        running.text()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// Waits until it has printed that, and gives the word that follows.
    pub(crate) fn prints(&mut self, before: &str) -> String {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.text();
            if let Some((_, rest)) = text.split_once(before)
                && rest.contains('\n')
            {
                return rest.split_whitespace().next().unwrap_or_default().to_owned();
            }
            let ended = self.child.try_wait().expect("its status").is_some();
            assert!(!ended && Instant::now() < end, "it does not print {before}:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end, with status 0.
    fn ends(&mut self, within: Duration) {
        let end = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                assert!(status.success(), "it ended with {status}:\n{}", self.text());
                return;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it by SIGTERM.
    pub(crate) fn stops(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        self.ends(Duration::from_secs(60));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        std::fs::remove_file(&self.output).ok();
    }
}
