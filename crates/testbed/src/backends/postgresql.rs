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
use crate::program::{Program, Restartable, Room};
use crate::progress::Progress;

/// A running PostgreSQL; user and database are `plimsoll`.
pub struct Postgresql {
    programs: PathBuf,
    port: u16,
    password: String,
    tls: bool,
    process: Restartable,
}

/// PostgreSQL refuses to run as root. In a user namespace it has another user id, and can still read root's files.
const SOMEBODY: [&str; 4] = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];

impl Postgresql {
    /// Starts the server with this password; with a certificate it also serves TLS.
    pub async fn start(password: &str, tls: Option<&Identity>) -> Result<Self, Error> {
        let programs = Cache::of_user()?.ensure(&POSTGRESQL, &mut Progress::stderr())?;
        let [port] = ports::several()?;
        let room = Room::new()?;
        if let Some(identity) = tls {
            write_identity(&room, identity)?;
        }
        let secret = room.write("password", password)?;
        let initdb = [
            programs.join("initdb").display().to_string(),
            format!("--pgdata={}", room.path("data").display()),
            "--username=plimsoll".to_owned(),
            "--auth=scram-sha-256".to_owned(),
            format!("--pwfile={}", secret.display()),
            "--no-sync".to_owned(),
            "--locale=C".to_owned(),
            "--encoding=UTF8".to_owned(),
        ];
        let words = as_somebody(&initdb);
        let mut command = Command::new(words.first().map_or("initdb", |word| word));
        command.args(words.get(1..).unwrap_or_default()).current_dir(room.folder());
        run(command).await.attempt(|| "make a database".into())?;
        let mut server = Self {
            programs,
            port,
            password: password.to_owned(),
            tls: tls.is_some(),
            process: Restartable::new(room),
        };
        server.resume().await?;
        server.sql_in("postgres", "CREATE DATABASE plimsoll").await?;
        Ok(server)
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it. Its data stay.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts it again after [`Postgresql::stop`], and returns when it answers.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(room) = self.process.take_idle() else { return Ok(()) };
        // Its children notice that it was killed, and hold its memory until then.
        let patience = Instant::now() + DEADLINE;
        while somebody_works_in(&room.path("data")) && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Left by one that was killed.
        let _ = std::fs::remove_file(room.path("data/postmaster.pid"));
        let folder = room.folder().display().to_string();
        let setting = |name: &str, value: &str| ["-c".to_owned(), format!("{name}={value}")];
        let mut words = vec![
            self.programs.join("postgres").display().to_string(),
            "-D".to_owned(),
            room.path("data").display().to_string(),
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
        let words = as_somebody(&words);
        let mut program = Program::start(
            "postgresql",
            Path::new("/usr/bin/env"),
            &[&["--".to_owned()][..], &words].concat(),
            room,
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

fn somebody_works_in(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|process| std::fs::read_link(process.path().join("cwd")))
        .any(|at| at.is_ok_and(|at| at == folder))
}

/// A command that runs as a user other than root.
fn as_somebody(words: &[String]) -> Vec<String> {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let before: &[&str] = if root { &SOMEBODY } else { &[] };
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
