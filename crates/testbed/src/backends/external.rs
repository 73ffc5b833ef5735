//! An external scaler written in Go.

use std::path::PathBuf;

use super::{DEADLINE, write_identity};
use crate::cache::Cache;
use crate::components::local;
use crate::error::{Attempt as _, Error};
use crate::parts::EXTERNAL_SCALER;
use crate::pki::Identity;
use crate::plain;
use crate::ports;
use crate::program::{Program, Restartable, Room};
use crate::progress::Progress;

/// A running external scaler. What it answers stands in the trigger: `value`, `target` and `active`.
pub struct GoScaler {
    program: PathBuf,
    port: u16,
    control: u16,
    tls: bool,
    process: Restartable,
}

impl GoScaler {
    /// Starts the scaler; with a certificate it serves only TLS.
    pub async fn start(tls: Option<&Identity>) -> Result<Self, Error> {
        let program =
            Cache::of_user()?.ensure(&EXTERNAL_SCALER, &mut Progress::stderr())?.join("external-scaler");
        let [port, control] = ports::several()?;
        let room = Room::new()?;
        if let Some(identity) = tls {
            write_identity(&room, identity)?;
        }
        let mut server = Self { program, port, control, tls: tls.is_some(), process: Restartable::new(room) };
        server.resume().await?;
        Ok(server)
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts it again after [`GoScaler::stop`], and returns when it answers.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(room) = self.process.take_idle() else { return Ok(()) };
        let mut arguments =
            vec![format!("-listen=127.0.0.1:{}", self.port), format!("-control=127.0.0.1:{}", self.control)];
        if self.tls {
            arguments.push(format!("-certificate={}", room.path("server.crt").display()));
            arguments.push(format!("-key={}", room.path("server.key").display()));
        }
        let mut program = Program::start("external-scaler", &self.program, &arguments, room)?;
        let port = self.port;
        program
            .until(DEADLINE, async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await?;
        self.process.started(program);
        Ok(())
    }

    /// Sends "active" to all streams of this object (`namespace/name`), and returns their number.
    pub async fn tell(&self, object: &str) -> Result<usize, Error> {
        self.control("tell", object).await
    }

    /// Ends all streams of this object; how many there were.
    pub async fn end_streams(&self, object: &str) -> Result<usize, Error> {
        self.control("end", object).await
    }

    async fn control(&self, word: &str, object: &str) -> Result<usize, Error> {
        let url = format!("{}/{word}?object={object}", local("http", self.control));
        let page = plain::get(&url).await.attempt(|| "ask the external scaler".into())?;
        Ok(String::from_utf8_lossy(page.body()).trim().parse().unwrap_or_default())
    }
}
