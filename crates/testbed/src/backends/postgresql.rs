//! PostgreSQL.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{DEADLINE, write_identity};
use crate::cache::Cache;
use crate::error::{Attempt as _, Error};
use crate::parts::POSTGRESQL;
use crate::pki::Identity;
use crate::ports;
use crate::program::{Program, Restartable, TempFolder};
use crate::progress::Progress;

/// A running PostgreSQL; user and database are `plimsoll`.
pub struct Postgresql {
    programs: PathBuf,
    port: u16,
    password: String,
    tls: bool,
    process: Restartable,
}

/// The command that runs PostgreSQL in a user namespace. PostgreSQL refuses to run as root; in the namespace it has another user id and can
/// still read root's files.
const OTHER_USER: [&str; 4] = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];

impl Postgresql {
    /// Starts the server with this password; with a certificate it also serves TLS.
    pub async fn start(password: &str, tls: Option<&Identity>) -> Result<Self, Error> {
        let programs = Cache::of_user()?.ensure(&POSTGRESQL, &mut Progress::stderr())?;
        let [port] = ports::several()?;
        let temp_folder = TempFolder::new()?;
        if let Some(identity) = tls {
            write_identity(&temp_folder, identity)?;
        }
        let secret = temp_folder.write("password", password)?;
        let initdb = [
            programs.join("initdb").display().to_string(),
            format!("--pgdata={}", temp_folder.path("data").display()),
            "--username=plimsoll".to_owned(),
            "--auth=scram-sha-256".to_owned(),
            format!("--pwfile={}", secret.display()),
            "--no-sync".to_owned(),
            "--locale=C".to_owned(),
            "--encoding=UTF8".to_owned(),
        ];
        let words = as_other_user(&initdb);
        let mut command = Command::new(words.first().map_or("initdb", |word| word));
        command.args(words.get(1..).unwrap_or_default()).current_dir(temp_folder.root());
        run(command).await.attempt(|| "make a database".into())?;
        let mut server = Self {
            programs,
            port,
            password: password.to_owned(),
            tls: tls.is_some(),
            process: Restartable::new(temp_folder),
        };
        server.resume().await?;
        server.sql_in("postgres", "CREATE DATABASE plimsoll").await?;
        Ok(server)
    }

    /// The port of the server on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server. Its data are kept.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts the server again after [`Postgresql::stop`], and returns when it is ready.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(temp_folder) = self.process.take_idle() else { return Ok(()) };
        // The child processes keep the shared memory until they notice that the server was killed.
        let deadline = Instant::now() + DEADLINE;
        while is_folder_in_use(&temp_folder.path("data")) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // A killed server leaves its pid file, with which a new one does not start.
        let _ = std::fs::remove_file(temp_folder.path("data/postmaster.pid"));
        let folder = temp_folder.root().display().to_string();
        let setting = |name: &str, value: &str| ["-c".to_owned(), format!("{name}={value}")];
        let mut words = vec![
            self.programs.join("postgres").display().to_string(),
            "-D".to_owned(),
            temp_folder.path("data").display().to_string(),
        ];
        words.extend(setting("port", &self.port.to_string()));
        words.extend(setting("listen_addresses", "127.0.0.1"));
        words.extend(setting("unix_socket_directories", ""));
        words.extend(setting("fsync", "off"));
        if self.tls {
            words.extend(setting("ssl", "on"));
            words.extend(setting("ssl_cert_file", &format!("{folder}/server.crt")));
            words.extend(setting("ssl_key_file", &format!("{folder}/server.key")));
        }
        let words = as_other_user(&words);
        let mut program = Program::start(
            "postgresql",
            Path::new("/usr/bin/env"),
            &[&["--".to_owned()][..], &words].concat(),
            temp_folder,
        )?;
        program.until(DEADLINE, async || self.sql_in("postgres", "SELECT 1").await.is_ok()).await?;
        self.process.started(program);
        Ok(())
    }

    /// Runs statements, and returns their output.
    pub async fn sql(&self, text: &str) -> Result<String, Error> {
        self.sql_in("plimsoll", text).await
    }

    async fn sql_in(&self, database: &str, text: &str) -> Result<String, Error> {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "plimsoll"])
            .args(["-p", &self.port.to_string(), "-d", database, "-c", text])
            .env("PGPASSWORD", &self.password)
            .env("PGCONNECT_TIMEOUT", "5");
        run(command).await.attempt(|| format!("run {text}"))
    }
}

fn is_folder_in_use(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|process| std::fs::read_link(process.path().join("cwd")))
        .any(|at| at.is_ok_and(|at| at == folder))
}

/// A command that runs as a user other than root.
fn as_other_user(words: &[String]) -> Vec<String> {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let before: &[&str] = if root { &OTHER_USER } else { &[] };
    before.iter().map(|word| (*word).to_owned()).chain(words.iter().cloned()).collect()
}

async fn run(mut command: Command) -> io::Result<String> {
    let output = tokio::task::spawn_blocking(move || command.output()).await.map_err(io::Error::other)??;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(io::Error::other(String::from_utf8_lossy(&said).trim().to_owned()))
}
