//! The file behind `--upstreams`, read again when it changes. One that cannot be used leaves everything as it is.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use api::text::Source;

use super::config::Config;
use super::router::Router;

/// How often it is looked at. It is small, and links that are exchanged do not change its time.
const LOOK: Duration = Duration::from_secs(5);
/// Bytes of the file at most.
const LARGEST: u64 = 1 << 20;

impl Router {
    /// Looks again and again what the file says, and does as it says; never ends. What is wrong with it is logged once and
    /// told by [`problem`](Self::problem).
    pub async fn follow(&self, path: &Path) {
        let mut last = None;
        loop {
            let found = read(path);
            if last.as_ref() != Some(&found) {
                let problem =
                    found.as_ref().map_err(String::clone).and_then(|bytes| self.obey(path, bytes)).err();
                if let Some(problem) = &problem {
                    tracing::error!("the upstreams stay as they are: {problem}");
                }
                self.set_problem(problem);
                last = Some(found);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn obey(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let name = path.display().to_string();
        let source = Source::from_bytes(name, bytes).map_err(|problem| problem.to_string())?;
        let config = Config::read(&source, self.own())
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        if config != self.config() {
            self.configure(config);
            tracing::info!(file = %path.display(), "new upstreams");
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limited =
        |bytes: &mut Vec<u8>| -> io::Result<usize> { File::open(path)?.take(LARGEST + 1).read_to_end(bytes) };
    match limited(&mut bytes) {
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(length) if length as u64 > LARGEST => {
            Err(format!("{}: more than {LARGEST} bytes", path.display()))
        }
        Ok(_) => Ok(bytes),
    }
}
