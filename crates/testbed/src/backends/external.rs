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
use crate::program::{Program, Restartable, TempFolder};
use crate::progress::Progress;

/// A running external scaler. It returns the values that the trigger has as parameters: `value`, `target` and `active`.
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
        let temp_folder = TempFolder::new()?;
        if let Some(identity) = tls {
            write_identity(&temp_folder, identity)?;
        }
        let mut server =
            Self { program, port, control, tls: tls.is_some(), process: Restartable::new(temp_folder) };
        server.resume().await?;
        Ok(server)
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the server.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts the server again after [`GoScaler::stop`], and returns when it is ready.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(temp_folder) = self.process.take_idle() else { return Ok(()) };
        let mut arguments =
            vec![format!("-listen=127.0.0.1:{}", self.port), format!("-control=127.0.0.1:{}", self.control)];
        if self.tls {
            arguments.push(format!("-certificate={}", temp_folder.path("server.crt").display()));
            arguments.push(format!("-key={}", temp_folder.path("server.key").display()));
        }
        let mut program = Program::start("external-scaler", &self.program, &arguments, temp_folder)?;
        let port = self.port;
        program
            .until(DEADLINE, async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await?;
        self.process.started(program);
        Ok(())
    }

    /// Sends "active" to all streams of this object (`namespace/name`), and returns their number.
    pub async fn push_active(&self, object: &str) -> Result<usize, Error> {
        self.control("tell", object).await
    }

    /// Ends all streams of this object, and returns their number.
    pub async fn end_streams(&self, object: &str) -> Result<usize, Error> {
        self.control("end", object).await
    }

    async fn control(&self, word: &str, object: &str) -> Result<usize, Error> {
        let url = format!("{}/{word}?object={object}", local("http", self.control));
        let page = plain::get(&url).await.attempt(|| "ask the external scaler".into())?;
        Ok(String::from_utf8_lossy(page.body()).trim().parse().unwrap_or_default())
    }
}
