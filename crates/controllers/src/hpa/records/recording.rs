//! The recording: every pass in files, for longer than memory keeps them.
//!
//! Reconciles never wait for the disk: passes go through a bounded queue to a thread, which packs what has arrived ten times a second
//! and writes it at least once a second.
//! After `kill -9`, the files have all but the last second. When writing fails, as on a full disk, recording ends, which the log and a
//! metric say; the controller goes on.

mod reader;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::decisions::DecisionMeta;
use api::history::{NewestPass, PassTime, SegmentWriter};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

pub use reader::{RecordingError, for_each_pass, read_recording};

/// How many passes may wait for the disk.
const MAX_QUEUED_PASSES: usize = 16_384;
/// How long a pass may stay in memory before it is written; with [`COLLECT_INTERVAL`], less than a second.
const FLUSH_INTERVAL: Duration = Duration::from_millis(800);
/// How long the thread lets passes arrive before it takes them: waking it for each would cost more than to pack it.
const COLLECT_INTERVAL: Duration = Duration::from_millis(100);
/// How many bytes are written with one call at most.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;
/// How long dropping the recording waits for the last passes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How file names end.
const SUFFIX: &str = ".passes";

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
    status: Arc<RecordingStatus>,
    /// None after the recording is closed.
    queue: Option<SyncSender<QueuedPass>>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// What is exported about a recording.
#[derive(Debug, Default)]
struct RecordingStatus {
    stopped: AtomicBool,
    lost: AtomicU64,
}

/// A pass on its way to the disk.
#[derive(Clone, Debug)]
pub(super) struct QueuedPass {
    pub(super) api_version: &'static str,
    pub(super) metadata: DecisionMeta,
    pub(super) time: PassTime,
    pub(super) pass: NewestPass,
}

impl Recording {
    /// Records into a folder, which is created if it does not exist. Files of earlier recordings are kept.
    pub fn start(folder: &Path, limits: RecordingLimits) -> io::Result<Self> {
        let mut writer = RecordingWriter::open(folder, limits)?;
        let status: Arc<RecordingStatus> = Arc::default();
        let (queue, passes) = sync_channel(MAX_QUEUED_PASSES);
        let (end, ended) = sync_channel(0);
        let shared = status.clone();
        std::thread::Builder::new().name("recording".into()).spawn(move || {
            // Dropped when the thread ends, also by a panic.
            let _end: SyncSender<()> = end;
            if let Err(error) = write_all(&mut writer, &passes) {
                shared.stopped.store(true, Ordering::Relaxed);
                let folder = writer.folder.display();
                tracing::error!(%folder, %error, "recording of passes has ended: failed to write; restart to record again");
            }
        })?;
        Ok(Self(Arc::new(RecordingState { status, queue: Some(queue), ended: Mutex::new(ended) })))
    }

    /// Adds a pass.
    pub(super) fn add(&self, pass: QueuedPass) {
        if self.0.queue.as_ref().is_none_or(|queue| queue.try_send(pass).is_err()) {
            self.0.status.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether recording has ended because of an error.
    pub fn is_stopped(&self) -> bool {
        self.0.status.stopped.load(Ordering::Relaxed)
    }

    /// The number of passes that were not written, because of an error or a full queue.
    pub fn lost(&self) -> u64 {
        self.0.status.lost.load(Ordering::Relaxed)
    }
}

impl Drop for RecordingState {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing is sent on this channel: receiving returns when the thread has ended.
        let _ = ended.recv_timeout(CLOSE_TIMEOUT);
    }
}

/// Writes passes until the queue is closed.
fn write_all(writer: &mut RecordingWriter, passes: &Receiver<QueuedPass>) -> io::Result<()> {
    let mut flushed = Instant::now();
    loop {
        match passes.recv_timeout(FLUSH_INTERVAL.saturating_sub(flushed.elapsed())) {
            Ok(pass) => writer.add(&pass)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return writer.flush(),
        }
        for pass in passes.try_iter() {
            writer.add(&pass)?;
            if writer.buffer.len() >= MAX_BUFFERED_BYTES {
                writer.flush()?;
            }
        }
        if flushed.elapsed() >= FLUSH_INTERVAL {
            writer.flush()?;
            flushed = Instant::now();
        }
        std::thread::sleep(COLLECT_INTERVAL);
    }
}

/// The state of the thread.
#[derive(Debug)]
struct RecordingWriter {
    folder: PathBuf,
    limits: RecordingLimits,
    segment: Option<OpenSegment>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct OpenSegment {
    file: File,
    writer: SegmentWriter,
    began: Timestamp,
    bytes: u64,
}

impl RecordingWriter {
    fn open(folder: &Path, limits: RecordingLimits) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        // An unwritable folder is reported at the start and not at the first pass.
        let probe = folder.join(".plimsoll-probe");
        File::create(&probe)?;
        std::fs::remove_file(&probe)?;
        Ok(Self { folder: folder.to_owned(), limits, segment: None, buffer: Vec::new() })
    }

    fn add(&mut self, pass: &QueuedPass) -> io::Result<()> {
        let at = pass.time.at;
        let is_full = |segment: &OpenSegment| {
            segment.bytes >= self.limits.segment_bytes
                || at.duration_since(segment.began) >= self.limits.segment_age
        };
        if self.segment.as_ref().is_none_or(is_full) {
            self.flush()?;
            self.segment = Some(self.begin(at)?);
        }
        let Some(segment) = &mut self.segment else { return Ok(()) };
        let before = self.buffer.len();
        let QueuedPass { api_version, metadata, time, pass } = pass;
        segment.writer.push(&mut self.buffer, api_version, metadata, *time, pass);
        segment.bytes += (self.buffer.len() - before) as u64;
        Ok(())
    }

    /// Begins a file, and removes old ones.
    fn begin(&mut self, at: Timestamp) -> io::Result<OpenSegment> {
        self.remove_old(at)?;
        let stamp = at.strftime("%Y%m%dT%H%M%SZ");
        // A second process, or a clock that was set back, must not overwrite a file.
        let mut number = 0;
        let file = loop {
            let path = self.folder.join(format!("{stamp}-{number:03}{SUFFIX}"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 999 => number += 1,
                other => break other?,
            }
        };
        let writer = SegmentWriter::new(&mut self.buffer);
        Ok(OpenSegment { file, writer, began: at, bytes: self.buffer.len() as u64 })
    }

    /// Removes the oldest files until the rest is within the limits.
    fn remove_old(&self, at: Timestamp) -> io::Result<()> {
        let files = reader::segments(&self.folder)?;
        let sizes: Vec<u64> =
            files.iter().map(|file| std::fs::metadata(file).map_or(0, |meta| meta.len())).collect();
        let mut total: u64 = sizes.iter().sum();
        let limit = at.checked_sub(self.limits.total_age).unwrap_or(Timestamp::MIN);
        for (place, (file, size)) in files.iter().zip(sizes).enumerate() {
            // The passes of a file are older than the next file.
            let ended = files.get(place + 1).and_then(|next| reader::began(next));
            let old = ended.is_some_and(|ended| ended < limit);
            if !old && total + self.limits.segment_bytes <= self.limits.total_bytes {
                break;
            }
            std::fs::remove_file(file)?;
            total -= size;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(segment) = &mut self.segment {
            segment.file.write_all(&self.buffer)?;
        }
        self.buffer.clear();
        Ok(())
    }
}
