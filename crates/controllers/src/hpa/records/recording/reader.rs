//! Reads the files of a recording.

use std::io;
use std::path::{Path, PathBuf};

use api::decisions::{DecisionMeta, DecisionRecord};
use api::history::{SegmentError, SegmentReader};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use super::RECORDING_FILE_SUFFIX;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file or folder cannot be read.
    #[error("failed to read {}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is something else, or its rest is not read.
    #[error("{}: {source}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: SegmentError,
    },
    /// Passes of a file have values that this version does not know.
    #[error("{}: {passes} passes cannot be decoded: another version of plimsoll wrote them, or the file is damaged", .path.display())]
    Passes {
        /// The file.
        path: PathBuf,
        /// How many passes have such values.
        passes: usize,
    },
    /// A folder without files.
    #[error("{} has no files of a recording (*.passes)", .path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// Calls `each` with the passes of a recording that `wanted` selects, oldest first, and with whether each equals the one before.
/// `path` is a file or the folder.
/// Passes are decoded one at a time: all passes of a long recording do not fit into memory. Returns what was skipped because another
/// version wrote it or it is damaged; a recording of which no file can be read is an error.
pub fn for_each_pass(
    path: &Path,
    wanted: impl FnMut(&DecisionMeta, Timestamp) -> bool,
    each: impl FnMut(DecisionRecord, bool),
) -> Result<Vec<RecordingError>, RecordingError> {
    for_each_pass_since(path, Timestamp::MIN, wanted, each)
}

/// The same for a recent part of a long recording: files that ended before `since` are not read.
pub(in crate::hpa::records) fn for_each_pass_since(
    path: &Path,
    since: Timestamp,
    mut wanted: impl FnMut(&DecisionMeta, Timestamp) -> bool,
    mut each: impl FnMut(DecisionRecord, bool),
) -> Result<Vec<RecordingError>, RecordingError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RecordingError::Io { path, source }
    };
    let is_folder = path.is_dir();
    let mut files = if is_folder { segments(path).map_err(failed(path))? } else { vec![path.to_owned()] };
    // The passes of a file are older than the next file, whose name has whole seconds.
    let is_before = |next: &&PathBuf| {
        let end = began(next).and_then(|began| began.checked_add(SignedDuration::from_secs(1)).ok());
        end.is_some_and(|end| end <= since)
    };
    let ended = files.iter().skip(1).take_while(is_before).count();
    files.drain(..ended);
    if files.is_empty() {
        return Err(RecordingError::Empty { path: path.to_owned() });
    }
    let mut skipped = Vec::new();
    let mut has_readable_file = false;
    for file in files {
        let bytes = match std::fs::read(&file) {
            // The controller that records removes its oldest files meanwhile.
            Err(error) if is_folder && error.kind() == io::ErrorKind::NotFound => continue,
            read => read.map_err(failed(&file))?,
        };
        let mut reader = match SegmentReader::new(&bytes) {
            Ok(reader) => reader,
            Err(source) => {
                skipped.push(RecordingError::Format { path: file, source });
                continue;
            }
        };
        has_readable_file = true;
        let mut undecodable = 0;
        while let Some(pass) = reader.advance() {
            if wanted(&pass.metadata, pass.time.at) {
                match reader.record() {
                    Some(record) => each(record, pass.time.continues),
                    None => undecodable += 1,
                }
            }
        }
        if undecodable > 0 {
            skipped.push(RecordingError::Passes { path: file.clone(), passes: undecodable });
        }
        if let Some(source) = reader.error() {
            skipped.push(RecordingError::Format { path: file, source });
        }
    }
    match skipped.pop() {
        Some(error) if !has_readable_file => Err(error),
        None if !has_readable_file => Err(RecordingError::Empty { path: path.to_owned() }),
        last => {
            skipped.extend(last);
            Ok(skipped)
        }
    }
}

/// The files of a recording, oldest first.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if began(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// When a file began, from its name. None for other files.
pub(super) fn began(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?.strip_suffix(RECORDING_FILE_SUFFIX)?;
    let (stamp, _) = name.split_once("Z-")?;
    Offset::UTC.to_timestamp(DateTime::strptime("%Y%m%dT%H%M%S", stamp).ok()?).ok()
}
