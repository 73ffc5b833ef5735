#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use api::decisions::{DecisionMode, DecisionRecord};
use cluster::AutoscalerKey;
use runtime::exported_metrics::MetricsWriter;

use super::{DecisionLog, DecisionLogState, Line, LogWriter};
use crate::hpa::records::Records;
use crate::hpa::records::tests::{PERIOD, mk_spec, once};

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-decision-log-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn lines(file: &std::path::Path) -> Vec<DecisionRecord> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(second: i64) -> Line {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    let key = AutoscalerKey::hpa("shop", "web");
    records.add(&key, DecisionMode::Active, PERIOD, &spec, &once(second, &spec, Some(250)));
    Arc::new(records.latest(None).remove(0))
}

/// A line for each run; with `all`, for each decision. What was written is there when the writer ends.
#[test]
fn runs_become_lines() {
    let scratch = Scratch::new("runs");
    let spec = Arc::new(mk_spec("web"));
    for (all, expected) in [(false, vec![1, 1]), (true, vec![1, 2, 1])] {
        let file = scratch.file(&format!("{all}.jsonl"));
        let records = Records::default().with_log(&file, all).unwrap();
        for (second, milli) in [(0, 250), (15, 250), (30, 400)] {
            let decision = once(second, &spec, Some(milli));
            records.clone().add(
                &AutoscalerKey::hpa("shop", "web"),
                DecisionMode::Active,
                PERIOD,
                &spec,
                &decision,
            );
        }
        assert_eq!(records.log.as_ref().unwrap().lost(), 0);
        drop(records);
        let times: Vec<_> = lines(&file).iter().map(|record| record.times).collect();
        assert_eq!(times, expected, "all: {all}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let scratch = Scratch::new("nowhere");
    let file = scratch.file("missing/decisions.jsonl");
    assert!(Records::default().with_log(&file, false).is_err());
}

#[test]
fn lines_go_on_in_a_new_file_when_the_old_one_was_renamed() {
    let scratch = Scratch::new("rotated");
    let (file, old) = (scratch.file("now.jsonl"), scratch.file("old.jsonl"));
    let mut writer = LogWriter::open(&file, Arc::default()).unwrap();
    writer.write(&[line(0), line(15)]);
    std::fs::rename(&file, &old).unwrap();
    writer.write(&[line(30)]);
    assert_eq!((lines(&old).len(), lines(&file).len()), (2, 1));
    std::fs::remove_file(&file).unwrap();
    writer.write(&[line(45)]);
    assert_eq!(lines(&file).len(), 1);
}

/// A directory in the place of the file stands for any failure: lines are lost and counted until it is gone.
#[test]
fn lines_lost_by_failed_writes_are_counted() {
    let scratch = Scratch::new("lost-lines");
    let file = scratch.file("decisions.jsonl");
    let lost = Arc::new(AtomicU64::new(0));
    let mut writer = LogWriter::open(&file, lost.clone()).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    writer.write(&[line(0), line(15)]);
    writer.write(&[line(30)]);
    assert_eq!(lost.load(std::sync::atomic::Ordering::Relaxed), 3);
    assert!(writer.is_failure_logged);
    std::fs::remove_dir(&file).unwrap();
    writer.write(&[line(45)]);
    assert_eq!(lines(&file).len(), 1);
    assert!(!writer.is_failure_logged, "the next failure is logged again");
}

/// Half a line that a full disk left does not spoil the next one.
#[test]
fn a_torn_line_is_ended() {
    let scratch = Scratch::new("torn");
    let file = scratch.file("decisions.jsonl");
    std::fs::write(&file, "{\"half\":").unwrap();
    let mut writer = LogWriter::open(&file, Arc::default()).unwrap();
    writer.torn = true;
    writer.write(&[line(0)]);
    writer.write(&[line(15)]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().skip(1).all(|line| serde_json::from_str::<DecisionRecord>(line).is_ok()));
}

#[test]
fn full_queue_does_not_block_callers() {
    let (queue, _waiting) = sync_channel(2);
    let (_, ended) = sync_channel(0);
    let inner =
        DecisionLogState { all: true, lost: Arc::default(), queue: Some(queue), ended: Mutex::new(ended) };
    let log = DecisionLog(Arc::new(inner));
    for second in 0..5 {
        log.write(&line(second));
    }
    assert_eq!(log.lost(), 3);
    let mut writer = MetricsWriter::default();
    Records { log: Some(log), ..Records::default() }.export(&mut writer);
    let text = writer.finish();
    assert!(text.contains("plimsoll_decision_log_lost_lines_total 3\n"), "{text}");
}
