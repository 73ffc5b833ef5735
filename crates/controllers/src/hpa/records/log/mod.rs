//! Decisions as lines of JSON in a file. Deciding never waits for the disk: lines go through a bounded queue to a thread,
//! and those that do not fit are counted.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster::AutoscalerKey;

use super::run::Run;

/// Lines that may wait.
const WAITING: usize = 4096;
/// Lines written at once.
const AT_ONCE: usize = 256;
/// How long the last lines may take when nobody needs the log any more.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Writes decisions to a file. Cheap to clone; the last clone waits until everything is written.
#[derive(Clone, Debug)]
pub struct DecisionLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: bool,
    lost: Arc<AtomicU64>,
    /// None once the log is closed.
    queue: Option<SyncSender<Line>>,
    /// Disconnected once the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// What becomes a line: put into words by the thread, not by whoever decides.
type Line = (AutoscalerKey, Arc<Run>);

impl DecisionLog {
    /// Appends to `file`, which is opened again when it was renamed or removed.
    pub fn open(file: &Path, all: bool) -> io::Result<Self> {
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = Writer::open(file, lost.clone())?;
        let (queue, lines) = sync_channel::<Line>(WAITING);
        let (end, ended) = sync_channel(0);
        std::thread::Builder::new().name("decision-log".into()).spawn(move || {
            // Dropped with the thread, whichever way it ends.
            let _end: SyncSender<()> = end;
            while let Ok(first) = lines.recv() {
                let more = lines.try_iter().take(AT_ONCE - 1);
                let batch: Vec<Line> = std::iter::once(first).chain(more).collect();
                writer.write(&batch);
            }
        })?;
        Ok(Self(Arc::new(Inner { all, lost, queue: Some(queue), ended: Mutex::new(ended) })))
    }

    /// Whether every decision is wanted, not only those that differ from the one before.
    pub(super) fn wants_all(&self) -> bool {
        self.0.all
    }

    /// Lines that were not written.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, key: &AutoscalerKey, run: &Arc<Run>) {
        let sent =
            self.0.queue.as_ref().is_some_and(|queue| queue.try_send((key.clone(), run.clone())).is_ok());
        if !sent {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: this returns when the thread has ended.
        let _ = ended.recv_timeout(LAST_LINES);
    }
}

/// The thread's end of it.
struct Writer {
    path: PathBuf,
    lost: Arc<AtomicU64>,
    /// None after an error.
    file: Option<Opened>,
    /// Whether the trouble has been told.
    told: bool,
    /// Whether the last write may have left half a line.
    torn: bool,
}

struct Opened {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
}

impl Opened {
    fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let meta = file.metadata()?;
        Ok(Self { file, identity: (meta.dev(), meta.ino()) })
    }

    /// Whether the path still leads to this file.
    fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity)
    }
}

impl Writer {
    fn open(path: &Path, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = Some(Opened::at(path)?);
        Ok(Self { path: path.to_owned(), lost, file, told: false, torn: false })
    }

    fn write(&mut self, batch: &[Line]) {
        let mut text = Vec::new();
        for (key, run) in batch {
            // Numbers and strings only: this cannot fail.
            if serde_json::to_writer(&mut text, &run.record(key)).is_ok() {
                text.push(b'\n');
            }
        }
        match self.append(&text) {
            Ok(()) => self.told = false,
            Err(error) => {
                self.file = None;
                self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !std::mem::replace(&mut self.told, true) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "failed to write the decision log; trying again, lines are lost until then");
                }
            }
        }
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let opened = match self.file.take().filter(|opened| opened.is_at(&self.path)) {
            Some(opened) => opened,
            None => Opened::at(&self.path)?,
        };
        let file = &mut self.file.insert(opened).file;
        if std::mem::replace(&mut self.torn, true) {
            file.write_all(b"\n")?;
        }
        file.write_all(text)?;
        self.torn = false;
        Ok(())
    }
}
