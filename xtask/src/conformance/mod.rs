//! `cargo xtask conformance`: compares Plimsoll with recorded results of the programs that it replaces.

mod adapter_config;
mod adapter_query;
mod adapter_result;
mod conversion;
mod cron;
mod custom_api;
mod hpa_for_scaledobject;
mod improvements;
mod kubelet;
mod metric_specs;
mod modifiers;
mod printing;
mod quantity;
mod read;
mod resource_api;
mod rounds;
mod scaledjob;
mod scenario;
mod selector;
#[cfg(test)]
mod tests;
mod validation;
mod webhook;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::provider::Compat;
use serde_json::Value;

/// Files or folders in the vectors' format (`.jsonl`, or compressed as `.jsonl.zst`).
#[derive(clap::Args)]
pub(crate) struct ConformanceArgs {
    /// What to replay.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Only records whose id contains this.
    #[arg(long)]
    only: Option<String>,
    /// How many differing records to print in full.
    #[arg(long, default_value_t = 20)]
    show: usize,
    /// Fail also where we answer otherwise without `--compat=strict` and it is not listed as an improvement, and where an
    /// improvement is listed that makes no difference.
    #[arg(long)]
    improvements: bool,
}

/// One place where we differ from the recording.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Step and field.
    pub(crate) at: String,
    /// The recorded value.
    pub(crate) expected: String,
    /// Our value.
    pub(crate) got: String,
}

impl Difference {
    /// Both sides as JSON.
    pub(crate) fn json(at: impl Into<String>, expected: &Value, got: &Value) -> Self {
        Self { at: at.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

/// The result of the replay of one record.
pub(crate) struct Outcome {
    /// The record's id.
    pub(crate) id: String,
    /// Whether the record is informative: the recorded value is not binding.
    pub(crate) free: bool,
    /// The differences with `--compat=strict`.
    pub(crate) strict: Vec<Difference>,
    /// The differences without `--compat=strict`.
    pub(crate) better: Vec<Difference>,
}

impl Outcome {
    /// Replays a record both ways.
    pub(crate) fn of<E: Display>(
        record: &Value,
        replay: impl Fn(Compat) -> Result<Vec<Difference>, E>,
    ) -> Self {
        let (strict, better) = (replay(Compat::Strict), replay(Compat::Better));
        let id = record.get("id").and_then(Value::as_str).unwrap_or("a record without id").to_owned();
        let free = strict.is_ok() && is_informative(record);
        // A record that cannot be replayed fails once.
        let better = if strict.is_ok() { reported(better) } else { Vec::new() };
        Self { id, free, strict: reported(strict), better }
    }
}

/// A record that cannot be replayed counts as a difference.
fn reported<E: Display>(replayed: Result<Vec<Difference>, E>) -> Vec<Difference> {
    replayed.unwrap_or_else(|error| {
        let expected = "a record that can be replayed".to_owned();
        vec![Difference { at: "record".to_owned(), expected, got: format!("{error:#}") }]
    })
}

/// Replays all records of a file; the first record, or another file in the folder, may be the fixture of the others.
type Whole = fn(&Path, &[Value]) -> anyhow::Result<Vec<Outcome>>;

/// The kind of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VectorKind {
    Scenario,
    Validation,
    Conversion,
    Printing,
    Quantity,
    Selector,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Records that differ, or may, and are marked in the vectors as not binding.
    pub(crate) informative: usize,
    /// Records with another result without `--compat=strict`.
    pub(crate) better: usize,
    /// Those among them that no improvement explains.
    pub(crate) unlisted: usize,
}

pub(crate) fn run(args: &ConformanceArgs) -> anyhow::Result<ExitCode> {
    let mut tally = Tally::default();
    for file in read::vector_files(&args.paths)? {
        let before = (tally.passed, tally.failed);
        replay(&file, args, &mut tally)?;
        let (passed, failed) = (tally.passed - before.0, tally.failed - before.1);
        println!("{:<60} {passed} ok, {failed} differ", file.display());
    }
    if tally.informative > 0 {
        println!(
            "{} differ where the recorded value binds nobody (docs/compatibility.md)",
            tally.informative
        );
    }
    if tally.better > 0 {
        let see = if args.improvements { "" } else { ": run with --improvements to see them" };
        let Tally { better, unlisted, .. } = tally;
        println!(
            "{better} records are answered better without --compat=strict, {unlisted} of them not listed{see}"
        );
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Files whose records belong together, or have different answers with and without `--compat=strict`.
fn whole(file: &Path) -> Option<Whole> {
    match stem(file) {
        "adapter_config" => Some(adapter_config::replay),
        "adapter_query" => Some(adapter_query::replay),
        "adapter_result" => Some(adapter_result::replay),
        "cron" => Some(|_, records| Ok(cron::replay(records))),
        "custom_api" => Some(|_, records| custom_api::replay(records)),
        "hpa_for_scaledobject" => Some(|_, records| hpa_for_scaledobject::replay(records)),
        "kubelet" => Some(|_, records| Ok(kubelet::replay(records))),
        "metric_specs" => Some(metric_specs::replay),
        "modifiers" => Some(|_, records| Ok(modifiers::replay(records))),
        "resource_api" => Some(|_, records| resource_api::replay(records)),
        "scaledjob" => Some(|_, records| Ok(scaledjob::replay(records))),
        "executor" => Some(|_, records| Ok(rounds::executor(records))),
        "fallback" => Some(|_, records| Ok(rounds::fallback(records))),
        "poll" => Some(|_, records| Ok(rounds::poll(records))),
        "webhook" => Some(|_, records| Ok(webhook::replay(records))),
        _ => None,
    }
}

/// The file's name without its endings.
fn stem(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// Replays one file, printing differences.
pub(crate) fn replay(file: &Path, args: &ConformanceArgs, tally: &mut Tally) -> anyhow::Result<()> {
    let is_wanted = |id: &str| args.only.as_deref().is_none_or(|only| id.contains(only));
    if let Some(whole) = whole(file) {
        let records: Vec<Value> = read::records(file)?.collect::<anyhow::Result<_>>()?;
        let mut met = BTreeMap::new();
        for outcome in whole(file, &records)?.into_iter().filter(|outcome| is_wanted(&outcome.id)) {
            tally.take(file, args, outcome, &mut met);
        }
        if args.improvements {
            tally.report(file, args, &met);
        }
        return Ok(());
    }
    for (number, record) in read::records(file)?.enumerate() {
        let record = record?;
        let id = record
            .get("id")
            .and_then(Value::as_str)
            .map_or_else(|| format!("line {}", number + 1), str::to_owned);
        if !is_wanted(&id) {
            continue;
        }
        let replayed = match kind(file, &record) {
            Some(kind) => check(kind, &record),
            None => Err(anyhow::anyhow!("unknown kind of record with fields {:?}", field_names(&record))),
        };
        let free = replayed.as_ref().is_ok_and(|differences| {
            is_informative(&record) || selector::differs_in_accidental_order(&record, differences)
        });
        let outcome = Outcome { id, free, strict: reported(replayed), better: Vec::new() };
        tally.take(file, args, outcome, &mut BTreeMap::new());
    }
    Ok(())
}

/// The number of records that show each improvement.
type Met = BTreeMap<&'static str, usize>;

impl Tally {
    /// Counts a record. What is better when we do not imitate is judged only if asked: others' recordings are not listed.
    fn take(&mut self, file: &Path, args: &ConformanceArgs, mut outcome: Outcome, met: &mut Met) {
        let verdict = improvements::judge(stem(file), &mut outcome);
        for improvement in &verdict.improvements {
            *met.entry(improvement.reason).or_default() += 1;
        }
        self.better += usize::from(!verdict.improvements.is_empty() || !verdict.unlisted.is_empty());
        self.unlisted += usize::from(!verdict.unlisted.is_empty());
        let Outcome { id, free, mut strict, .. } = outcome;
        if free && !strict.is_empty() {
            self.informative += 1;
            strict.clear();
        }
        if args.improvements {
            strict.extend(verdict.unlisted);
            strict.extend(verdict.vain);
        }
        if strict.is_empty() {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        if self.failed <= args.show {
            print_differences(file, &id, &strict);
        }
    }

    /// Prints the improvements of a file, and fails if the whole file does not show one of them.
    fn report(&mut self, file: &Path, args: &ConformanceArgs, met: &Met) {
        for improvement in improvements::upon(stem(file)) {
            match met.get(improvement.reason) {
                Some(count) => println!("  {count} answered better: {}", improvement.reason),
                None if args.only.is_some() || !improvement.is_required() => {}
                None => {
                    self.failed += 1;
                    println!("✗ no record is answered better: {}", improvement.reason);
                }
            }
        }
    }
}

fn check(kind: VectorKind, record: &Value) -> anyhow::Result<Vec<Difference>> {
    match kind {
        VectorKind::Scenario => scenario::check(record),
        VectorKind::Validation => validation::check(record),
        VectorKind::Conversion => conversion::check(record),
        VectorKind::Printing => printing::check(record),
        VectorKind::Quantity => quantity::check(record),
        VectorKind::Selector => selector::check(record),
    }
}

/// The kind of a record, from its fields, else from the name of the file.
fn kind(file: &Path, record: &Value) -> Option<VectorKind> {
    let has = |name: &str| record.get(name).is_some();
    if has("steps") {
        return Some(VectorKind::Scenario);
    }
    if has("operation") && has("object") {
        return Some(VectorKind::Validation);
    }
    if has("from") && has("to") && has("object") {
        return Some(VectorKind::Conversion);
    }
    if has("cells") && has("columns") {
        return Some(VectorKind::Printing);
    }
    match stem(file) {
        "quantity" => Some(VectorKind::Quantity),
        "selector" => Some(VectorKind::Selector),
        _ => None,
    }
}

/// Whether the vectors are not binding here: values outside of the integer ranges, NaN, crashes, missing labels, random results.
fn is_informative(record: &Value) -> bool {
    const NOT_BINDING: [&str; 7] =
        ["overflow", "float-conversion", "zero-prev", "crash", "missing-label", "label-substring", "random"];
    let is_free = |tag: &Value| tag.as_str().is_some_and(|tag| NOT_BINDING.contains(&tag));
    record.get("tags").and_then(Value::as_array).is_some_and(|tags| tags.iter().any(is_free))
}

fn field_names(record: &Value) -> Vec<&str> {
    record.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn print_differences(file: &Path, id: &str, differences: &[Difference]) {
    println!("✗ {id} ({})", file.display());
    for difference in differences.iter().take(12) {
        println!("    {}", difference.at);
        println!("      expected {}", difference.expected);
        println!("      got      {}", difference.got);
    }
    if differences.len() > 12 {
        println!("    … and {} more", differences.len() - 12);
    }
}
