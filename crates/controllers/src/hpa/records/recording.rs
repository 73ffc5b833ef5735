//! The recording: every pass in files, for longer than memory keeps them.
//!
//! Reconciles never wait for the disk: the bytes of a pass are appended to a bounded buffer, which a thread writes twice a second.
//! After `kill -9`, the files have all but the last second. When writing fails, as on a full disk, recording ends, which the log and a
//! metric report; the controller goes on.

mod pending;
mod reader;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use locks::MutexExt as _;

pub(super) use pending::{PendingPasses, RecordedPlace};
pub(super) use reader::for_each_pass_since;
pub use reader::{RecordingError, for_each_pass};

use pending::PendingBytes;

/// How long a pass may stay in memory before it is written: less than a second, with the time that writing takes.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// How long dropping the recording waits for the last passes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How much later than the present another process may have begun a file, because passes wait before they are written.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(1);
/// How file names end.
const RECORDING_FILE_SUFFIX: &str = ".passes";

/// When a new file begins and when old ones are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimits {
    /// The size of one file.
    pub segment_bytes: u64,
    /// The time of one file.
    pub segment_age: SignedDuration,
    /// The size of all files; the oldest are removed above it.
    pub total_bytes: u64,
    /// Files whose newest pass is older are removed.
    pub total_age: SignedDuration,
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            segment_age: SignedDuration::from_hours(1),
            total_bytes: 1 << 30,
            total_age: SignedDuration::from_hours(7 * 24),
        }
    }
}

/// Writes passes to files. Cheap to clone; the last clone waits until everything is written.
#[derive(Clone, Debug)]
pub struct Recording(Arc<RecordingState>);

#[derive(Debug)]
struct RecordingState {
    shared: Arc<SharedPasses>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// The passes that the reconciles add and the thread writes.
#[derive(Debug)]
struct SharedPasses {
    pending: Mutex<PendingPasses>,
    closed: Condvar,
}

impl SharedPasses {
    fn lock(&self) -> MutexGuard<'_, PendingPasses> {
        self.pending.locked()
    }
}

impl Recording {
    /// Records into a folder, which is created if it does not exist. Files of earlier recordings are kept.
    pub fn start(folder: &Path, limits: RecordingLimits) -> io::Result<Self> {
        let mut writer = RecordingWriter::open(folder, limits)?;
        let pending = Mutex::new(PendingPasses::new(limits));
        let shared = Arc::new(SharedPasses { pending, closed: Condvar::new() });
        let (end, ended) = sync_channel(0);
        let passes = shared.clone();
        std::thread::Builder::new().name("recording".into()).spawn(move || {
            // Dropped when the thread ends, also by a panic.
            let _end: SyncSender<()> = end;
            let _guard = StopOnPanic(&passes);
            if let Err(error) = write_all(&mut writer, &passes) {
                passes.lock().stop();
                let folder = writer.folder.display();
                tracing::error!(%folder, %error, "recording of passes has ended: failed to write; restart to record again");
            }
        })?;
        Ok(Self(Arc::new(RecordingState { shared, ended: Mutex::new(ended) })))
    }

    /// The passes that are not written yet, to add one.
    pub(super) fn pending(&self) -> MutexGuard<'_, PendingPasses> {
        self.0.shared.lock()
    }

    /// Whether recording has ended because of an error.
    pub fn is_stopped(&self) -> bool {
        self.pending().is_stopped()
    }

    /// The approximate memory in bytes.
    pub(super) fn approximate_bytes(&self) -> usize {
        self.pending().approximate_bytes()
    }

    /// The number of passes that were not written, because of an error or because the disk is too slow.
    pub fn lost(&self) -> u64 {
        self.pending().lost()
    }
}

impl Drop for RecordingState {
    fn drop(&mut self) {
        self.shared.lock().close();
        self.shared.closed.notify_all();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing is sent on this channel: receiving returns when the thread has ended.
        let _ = ended.recv_timeout(CLOSE_TIMEOUT);
    }
}

/// Marks the recording as ended if the thread panics.
struct StopOnPanic<'a>(&'a SharedPasses);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().stop();
        }
    }
}

/// Writes passes until the recording is closed.
fn write_all(writer: &mut RecordingWriter, passes: &SharedPasses) -> io::Result<()> {
    loop {
        let waited =
            passes.closed.wait_timeout_while(passes.lock(), FLUSH_INTERVAL, |pending| !pending.is_closed());
        let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (parts, is_closed) = (pending.take(), pending.is_closed());
        drop(pending);
        for part in parts {
            writer.write(&part)?;
            // One by one, so that only parts that were not written count as lost when a later one fails.
            passes.lock().written(part);
        }
        if is_closed {
            return Ok(());
        }
    }
}

/// The state of the thread.
#[derive(Debug)]
struct RecordingWriter {
    folder: PathBuf,
    limits: RecordingLimits,
    file: Option<File>,
}

impl RecordingWriter {
    fn open(folder: &Path, limits: RecordingLimits) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        // An unwritable folder is reported at the start and not at the first pass.
        let probe = folder.join(".plimsoll-probe");
        File::create(&probe)?;
        std::fs::remove_file(&probe)?;
        Ok(Self { folder: folder.to_owned(), limits, file: None })
    }

    fn write(&mut self, part: &PendingBytes) -> io::Result<()> {
        if let Some(at) = part.begins_file {
            self.file = Some(self.begin(at)?);
        }
        match &mut self.file {
            Some(file) => file.write_all(&part.bytes),
            None => Ok(()),
        }
    }

    /// Begins a file, and removes old ones.
    fn begin(&self, at: Timestamp) -> io::Result<File> {
        self.remove_old(at)?;
        let stamp = at.strftime("%Y%m%dT%H%M%SZ");
        // A second process, or a clock that was set back, must not overwrite a file.
        let mut number = 0;
        loop {
            let path = self.folder.join(format!("{stamp}-{number:03}{RECORDING_FILE_SUFFIX}"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 999 => number += 1,
                other => return other,
            }
        }
    }

    /// Removes the oldest files until the rest is within the limits.
    fn remove_old(&self, at: Timestamp) -> io::Result<()> {
        let files = reader::segments(&self.folder)?;
        let limit = at.checked_sub(self.limits.total_age).unwrap_or(Timestamp::MIN);
        let mut kept = Vec::new();
        for (place, file) in files.iter().enumerate() {
            // The passes of a file are older than the next file.
            let ended = files.get(place + 1).and_then(|next| reader::began(next));
            if ended.is_some_and(|ended| ended < limit) {
                std::fs::remove_file(file)?;
            } else {
                kept.push((file, std::fs::metadata(file).map_or(0, |meta| meta.len())));
            }
        }
        // Files of the future were written before the clock was set back, so they are older than those of the present.
        let present = at.checked_add(MAX_CLOCK_DIFFERENCE).unwrap_or(Timestamp::MAX);
        let future =
            kept.partition_point(|(file, _)| reader::began(file).is_none_or(|began| began <= present));
        kept.rotate_left(future);
        let mut total: u64 = kept.iter().map(|(_, size)| size).sum();
        for (file, size) in kept {
            if total + self.limits.segment_bytes <= self.limits.total_bytes {
                break;
            }
            std::fs::remove_file(file)?;
            total -= size;
        }
        Ok(())
    }
}
