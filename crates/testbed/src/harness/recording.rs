//! Recorded transcripts of the real server, with which localkube is compared on machines without a real server.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use locks::MutexExt as _;

use super::transcript::{Transcript, sorted};

/// The environment variable that makes a run record the responses of the real server instead of comparing them with the recording.
pub const RECORD_VARIABLE: &str = "PLIMSOLL_RECORD";

/// A file of transcripts, one per line, compressed.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    transcripts: BTreeMap<String, Transcript>,
}

/// Serializes writes, because several tests of one process add to the same file.
static WRITING: Mutex<()> = Mutex::new(());

impl Recording {
    /// Reads a recording; a file that does not exist is an empty recording.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Ok(bytes) => zstd::decode_all(bytes.as_slice())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let transcripts = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
            let transcript: Transcript = serde_json::from_slice(line)?;
            Ok((transcript.case.clone(), transcript))
        });
        Ok(Self { path: path.to_owned(), transcripts: transcripts.collect::<io::Result<_>>()? })
    }

    /// A recording of these transcripts that is not stored in a file.
    pub(super) fn of(transcripts: &[Transcript]) -> Self {
        let transcripts = transcripts.iter().map(|transcript| (transcript.case.clone(), transcript.clone()));
        Self { path: PathBuf::new(), transcripts: transcripts.collect() }
    }

    /// The recorded transcript of a case.
    pub fn get(&self, case: &str) -> Option<&Transcript> {
        self.transcripts.get(case)
    }

    /// Adds transcripts to the file, and drops those of removed cases of the same topic.
    pub fn add(path: &Path, topic: &str, cases: &[&str], transcripts: Vec<Transcript>) -> io::Result<()> {
        let _writing = WRITING.locked();
        let mut recording = Self::read(path)?;
        let lives = |full: &String| match full.split_once('/') {
            Some((of, case)) => of != topic || cases.contains(&case),
            None => false,
        };
        recording.transcripts.retain(|case, _| lives(case));
        recording.transcripts.extend(transcripts.into_iter().map(|t| (t.case.clone(), t)));
        recording.write()
    }

    /// The same transcripts always give the same bytes.
    fn write(&self) -> io::Result<()> {
        let mut text = String::new();
        for transcript in self.transcripts.values() {
            text += &format!("{}\n", sorted(&serde_json::to_value(transcript)?));
        }
        let mut encoder = zstd::Encoder::new(Vec::new(), 21)?;
        encoder.window_log(27)?;
        io::copy(&mut text.as_bytes(), &mut encoder)?;
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let draft = self.path.with_extension("draft");
        fs::write(&draft, encoder.finish()?)?;
        fs::rename(draft, &self.path)
    }
}
