//! Recorded views in a file, one JSON object per line, which can be compared again without a cluster.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use super::classify::{ReportedDifferences, StepViews};
use super::mutation::MutationResult;
use super::report::KedaOutcome;

pub(crate) fn write(file: &Path, record: &[StepViews]) -> anyhow::Result<()> {
    let mut text = String::new();
    for seen in record {
        text += &serde_json::to_string(seen)?;
        text.push('\n');
    }
    std::fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))
}

/// The result of a recorded run, and whether mutated copies of it are detected.
pub(crate) fn compare_again(file: &Path, seed: u64) -> anyhow::Result<(KedaOutcome, MutationResult)> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let (mut outcome, mut reported) =
        (KedaOutcome::default(), BTreeMap::<String, ReportedDifferences>::new());
    let mut mutated = MutationResult::default();
    for line in text.lines() {
        let seen: StepViews = serde_json::from_str(line).context("failed to read what was recorded")?;
        let reported = reported.entry(seen.scenario.clone()).or_default();
        mutated.try_all(&seen, reported);
        outcome.take(seed, seen, reported);
    }
    outcome.scenarios = reported.len();
    Ok((outcome, mutated))
}
