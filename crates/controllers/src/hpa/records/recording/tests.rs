#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::decisions::passes::{PassDetail, PassQuery};
use api::decisions::{DecisionMeta, DecisionMode, DecisionRecord};
use cluster::AutoscalerKey;
use engine::Decision;
use jiff::{SignedDuration, Timestamp};

use super::{Recording, RecordingError, RecordingLimits, RecordingWriter, reader};
use crate::hpa::records::tests::{PERIOD, at, json, mk_spec, once};
use crate::hpa::records::{HistoryLimits, PassAt, Records};

/// A folder that goes with the test.
struct RecordingFolder(PathBuf);

impl RecordingFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-recording-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for RecordingFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn decisions(count: i64) -> Vec<Decision> {
    (0..count).map(|n| once(n * 15, &mk_spec("web"), Some(240 + n % 20))).collect()
}

/// The passes of a recording that `wanted` selects, oldest first, and whether each equals the one before.
fn read_recording(
    path: &Path,
    wanted: impl Fn(&DecisionMeta, Timestamp) -> bool,
) -> Result<Vec<(DecisionRecord, bool)>, RecordingError> {
    let mut found = Vec::new();
    reader::for_each_pass(path, wanted, |record, continues| found.push((record, continues)))?;
    Ok(found)
}

/// Records decisions of one autoscaler, and waits until all is written.
fn record(folder: &RecordingFolder, limits: RecordingLimits, decisions: &[Decision]) {
    let recording = Recording::start(&folder.0, limits).unwrap();
    let records = Records::default().with_recording(recording);
    let spec = Arc::new(mk_spec("web"));
    for decision in decisions {
        records.add(&AutoscalerKey::hpa("shop", "web"), DecisionMode::Active, PERIOD, &spec, decision);
    }
}

#[test]
fn recording_has_every_pass_also_those_that_memory_lost() {
    let folder = RecordingFolder::new("all");
    let limits = HistoryLimits { age: SignedDuration::from_mins(1), bytes: 0 };
    let recording = Recording::start(&folder.0, RecordingLimits::default()).unwrap();
    let records = Records::new(limits).with_recording(recording);
    let (spec, decisions) = (Arc::new(mk_spec("web")), decisions(500));
    for decision in &decisions {
        records.add(&AutoscalerKey::hpa("shop", "web"), DecisionMode::Active, PERIOD, &spec, decision);
        records.add(&AutoscalerKey::hpa("shop", "other"), DecisionMode::Active, PERIOD, &spec, decision);
    }
    // Dropping waits until all is written.
    drop(records);
    let found = read_recording(&folder.0, |meta, _| meta.name == "hpa.web").unwrap();
    assert_eq!(found.len(), 500);
    for ((record, _), decision) in found.iter().zip(&decisions) {
        assert_eq!(json(&record.decision), json(decision));
    }
    let late = read_recording(&folder.0, |_, time| time >= at(499 * 15)).unwrap();
    assert_eq!(late.len(), 2);
}

#[test]
fn files_rotate_by_size_and_age_and_old_ones_go() {
    let folder = RecordingFolder::new("rotation");
    let limits = RecordingLimits {
        segment_bytes: 16 * 1024,
        segment_age: SignedDuration::from_mins(10),
        total_bytes: 64 * 1024,
        total_age: SignedDuration::from_hours(1),
    };
    record(&folder, limits, &decisions(600));
    // Forty passes in ten minutes; an hour and the file in which it began.
    let files = reader::segments(&folder.0).unwrap();
    assert!((6..=8).contains(&files.len()), "{files:?}");
    let found = read_recording(&folder.0, |_, _| true).unwrap();
    assert_eq!(found.last().unwrap().0.decision.at, at(599 * 15));
    let mut late = 0;
    let since = at(550 * 15);
    reader::for_each_pass_since(&folder.0, since, |_, _| true, |_, _| late += 1).unwrap();
    assert!((50..100).contains(&late), "{late}: files that ended before are not read");
    assert!(found.len() >= 240, "{}", found.len());

    let small = RecordingLimits { segment_bytes: 4096, total_bytes: 12 * 1024, ..limits };
    record(&folder, small, &decisions(600));
    let size = |file: &PathBuf| std::fs::metadata(file).unwrap().len();
    let total: u64 = reader::segments(&folder.0).unwrap().iter().map(size).sum();
    assert!(total <= 16 * 1024, "{total}");
}

#[test]
fn clock_that_is_set_back_begins_a_file() {
    let folder = RecordingFolder::new("clock");
    let limits = RecordingLimits { segment_age: SignedDuration::from_mins(10), ..RecordingLimits::default() };
    let times = [3600, 3615, 15, 30];
    let decisions: Vec<_> = times.iter().map(|second| once(*second, &mk_spec("web"), Some(250))).collect();
    record(&folder, limits, &decisions);
    assert_eq!(reader::segments(&folder.0).unwrap().len(), 2);
    assert_eq!(read_recording(&folder.0, |_, _| true).unwrap().len(), 4);
}

#[test]
fn full_folder_loses_files_of_the_future_first() {
    let folder = RecordingFolder::new("future");
    let limits = RecordingLimits { segment_bytes: 10, total_bytes: 40, ..RecordingLimits::default() };
    let writer = RecordingWriter::open(&folder.0, limits).unwrap();
    let path = |time: &str| folder.0.join(format!("20260105T{time}Z-000.passes"));
    for time in ["090000", "091500", "120000", "130000"] {
        std::fs::write(path(time), [0_u8; 10]).unwrap();
    }
    // The clock was set back from after 13:00.
    let now: Timestamp = "2026-01-05T09:30:00Z".parse().unwrap();
    drop(writer.begin(now).unwrap());
    let expected = ["090000", "091500", "093000", "130000"].map(path);
    assert_eq!(reader::segments(&folder.0).unwrap(), expected);
}

/// Passes that are not recorded, as those of another leader, end a chunk: what follows does not refer to them.
#[test]
fn passes_between_recorded_ones_are_not_missed() {
    let folder = RecordingFolder::new("between");
    let recording = Recording::start(&folder.0, RecordingLimits::default()).unwrap();
    let (spec, key) = (Arc::new(mk_spec("web")), AutoscalerKey::hpa("shop", "web"));
    let (other, own) = (Records::default(), Records::default().with_recording(recording));
    let decisions = decisions(30);
    for (n, decision) in decisions.iter().enumerate() {
        let records = if (n / 5) % 2 == 0 { &own } else { &other };
        records.add(&key, DecisionMode::Active, PERIOD, &spec, decision);
        if n % 10 == 9 {
            let query = PassQuery { detail: PassDetail::Full, ..PassQuery::default() };
            own.copy(None, other.passes(&query).unwrap(), false);
        }
    }
    assert_eq!(own.between("shop", "hpa.web", Timestamp::MIN, Timestamp::MAX).unwrap().len(), 30);
    drop(own);
    let found = read_recording(&folder.0, |_, _| true).unwrap();
    let expected: Vec<_> =
        decisions.iter().enumerate().filter(|(n, _)| (n / 5) % 2 == 0).map(|(_, made)| json(made)).collect();
    assert_eq!(found.iter().map(|(pass, _)| json(&pass.decision)).collect::<Vec<_>>(), expected);
    // The first pass and those after a gap continue no pass of the recording.
    let begin: Vec<usize> =
        found.iter().enumerate().filter(|(_, (_, continues))| !continues).map(|(n, _)| n).collect();
    assert!([0, 5, 10].iter().all(|n| begin.contains(n)), "{begin:?}");
}

/// A folder that is gone stands for a full disk: recording ends, the rest goes on.
#[test]
fn recording_that_cannot_write_ends_and_nothing_else() {
    let folder = RecordingFolder::new("full");
    let limits = RecordingLimits { segment_bytes: 1, ..RecordingLimits::default() };
    let recording = Recording::start(&folder.0, limits).unwrap();
    std::fs::remove_dir_all(&folder.0).unwrap();
    let records = Records::default().with_recording(recording.clone());
    let spec = Arc::new(mk_spec("web"));
    let key = AutoscalerKey::hpa("shop", "web");
    let decision = once(0, &spec, Some(250));
    let mut added = 0;
    while !recording.is_stopped() {
        records.add(&key, DecisionMode::Active, PERIOD, &spec, &decision);
        added += 1;
        std::thread::yield_now();
    }
    records.add(&key, DecisionMode::Active, PERIOD, &spec, &decision);
    assert_eq!(records.latest(None)[0].times, added + 1);
    assert_eq!(recording.lost(), added + 1);
    assert!(Recording::start(Path::new("/proc/nowhere"), limits).is_err());
}

#[test]
fn cut_file_has_what_was_written_before() {
    let folder = RecordingFolder::new("cut");
    record(&folder, RecordingLimits::default(), &decisions(50));
    let file = reader::segments(&folder.0).unwrap().remove(0);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(read_recording(&file, |_, _| true).unwrap().len(), 49);
    // A later version wrote another file: it is named and skipped.
    let other = folder.0.join("20260101T000000Z-000.passes");
    std::fs::write(&other, "plimsoll recording 3\nand more").unwrap();
    let mut count = 0;
    let skipped = reader::for_each_pass(&folder.0, |_, _| true, |_, _| count += 1).unwrap();
    let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
    assert_eq!(count, 49);
    assert_eq!(
        skipped,
        [format!(
            "{}: not a recording of passes of version 1 or 2; a newer plimsoll may have written it",
            other.display()
        )]
    );
    // Nothing else can be read.
    std::fs::remove_file(&file).unwrap();
    assert!(read_recording(&folder.0, |_, _| true).is_err());
}

#[test]
fn file_that_is_removed_during_reading_is_skipped() {
    let folder = RecordingFolder::new("removed");
    let limits = RecordingLimits { segment_age: SignedDuration::from_mins(10), ..RecordingLimits::default() };
    record(&folder, limits, &decisions(100));
    let files = reader::segments(&folder.0).unwrap();
    assert!(files.len() > 2, "{files:?}");
    let removed = read_recording(&files[1], |_, _| true).unwrap().len();
    let remove_next = |_: &DecisionMeta, _: Timestamp| {
        drop(std::fs::remove_file(&files[1]));
        true
    };
    let mut count = 0;
    let skipped = reader::for_each_pass(&folder.0, remove_next, |_, _| count += 1).unwrap();
    assert!(skipped.is_empty(), "{skipped:?}");
    assert_eq!(count, 100 - removed);
    assert!(read_recording(&files[1], |_, _| true).is_err(), "a file that is named must exist");
}

#[test]
fn recording_of_version_0_1_0_is_read() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stored/v0.1.0/controller.passes");
    let found = read_recording(Path::new(file), |meta, _| meta.name == "hpa.php-apache").unwrap();
    let desired: Vec<i32> = found.iter().map(|(pass, _)| pass.decision.desired.get()).collect();
    assert_eq!(desired, [3, 5, 5, 6, 6, 8]);
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Whatever happens to memory and files, each answer is the decision that was made at that time, or none.
#[test]
fn pass_of_every_time_is_the_decision_of_that_time() {
    let spec = Arc::new(mk_spec("web"));
    let key = AutoscalerKey::hpa("shop", "web");
    for seed in 0..6 {
        let mut numbers = Numbers(seed);
        let folder = RecordingFolder::new(&format!("random-{seed}"));
        let limits = HistoryLimits {
            age: SignedDuration::from_secs(60 + numbers.below(3600) as i64),
            bytes: if numbers.below(3) == 0 { 12_000 } else { 100 << 20 },
        };
        let (mut second, mut made): (i64, Vec<Decision>) = (0, Vec::new());
        for life in 0..3 {
            // A restart: the past is read from the recording, which may be cut.
            let lost = if life > 0 { cut(&folder, &mut numbers) } else { 0 };
            made.truncate(made.len() - lost);
            let records = Records::new(limits);
            records.restore(&folder.0, at(second)).unwrap();
            check(&records, &made, at(second), limits, &mut numbers);
            let recording = Recording::start(&folder.0, RecordingLimits::default()).unwrap();
            let records = records.with_recording(recording);
            for _ in 0..numbers.below(300) {
                second += 1 + numbers.below(30) as i64;
                let milli = match numbers.below(8) {
                    0 => None,
                    1 => Some(100 + numbers.below(900) as i64),
                    _ => Some(245 + numbers.below(10) as i64),
                };
                let decision = once(second, &spec, milli);
                records.add(&key, DecisionMode::Active, PERIOD, &spec, &decision);
                made.push(decision);
            }
            check(&records, &made, at(second), limits, &mut numbers);
        }
    }
}

/// Every pass of the history is the one that was made, and the answer to any time is the pass before it. Only for want of room or
/// because of its age a pass is not kept.
fn check(records: &Records, made: &[Decision], now: Timestamp, limits: HistoryLimits, numbers: &mut Numbers) {
    let kept = records.between("shop", "hpa.web", Timestamp::MIN, Timestamp::MAX).unwrap_or_default();
    let evicted = made.len() - kept.len();
    for (found, decision) in kept.iter().zip(&made[evicted..]) {
        assert_eq!(json(&found.decision), json(decision));
    }
    let roomy = limits.bytes > 1 << 20;
    assert!(!roomy || made[..evicted].iter().all(|decision| decision.at < now - limits.age), "{evicted}");
    for _ in 0..made.len().min(40) {
        let n = numbers.below(made.len() as u64) as usize;
        let next = made.get(n + 1).map_or(now, |next| next.at - SignedDuration::from_millis(1));
        for time in [made[n].at, next] {
            match records.at("shop", "hpa.web", time) {
                Some(PassAt::Kept(found)) => {
                    assert_eq!(json(&found.decision), json(&made[n]), "pass {n} at {time}");
                }
                other => assert!(n < evicted, "pass {n} at {time}: {other:?}"),
            }
        }
    }
}

/// Cuts the newest file and returns how many passes are lost.
fn cut(folder: &RecordingFolder, numbers: &mut Numbers) -> usize {
    let count = || read_recording(&folder.0, |_, _| true).map_or(0, |passes| passes.len());
    let before = count();
    if let Some(file) = reader::segments(&folder.0).unwrap().pop() {
        let bytes = std::fs::read(&file).unwrap();
        let end = bytes.len() - (numbers.below(200) as usize).min(bytes.len());
        std::fs::write(&file, &bytes[..end]).unwrap();
    }
    before - count()
}
