//! Holds Plimsoll against recorded answers of the real thing.

mod adapter_config;
mod adapter_query;
mod adapter_result;
mod conversion;
mod custom_api;
mod kubelet;
mod printing;
mod quantity;
mod read;
mod resource_api;
mod scenario;
mod selector;
#[cfg(test)]
mod tests;
mod validation;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

/// Files or folders in the vectors' format (`.jsonl`, or compressed as `.jsonl.zst`).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to replay.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Only records whose id contains this.
    #[arg(long)]
    only: Option<String>,
    /// How many differing records to print in full.
    #[arg(long, default_value_t = 20)]
    show: usize,
}

/// One place where we differ from the recording.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Step and field.
    pub(crate) at: String,
    /// What was recorded.
    pub(crate) expected: String,
    /// What we say.
    pub(crate) got: String,
}

impl Difference {
    /// Both sides as JSON.
    pub(crate) fn json(at: impl Into<String>, expected: &Value, got: &Value) -> Self {
        Self { at: at.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

/// How the replay of one record of a whole file went.
pub(crate) struct Outcome {
    /// The record's id.
    pub(crate) id: String,
    /// Where we differ.
    pub(crate) differences: Vec<Difference>,
}

/// Replays all records of a file; the first, or a file beside it, may be what the others rest on.
type Whole = fn(&Path, &[Value]) -> anyhow::Result<Vec<Outcome>>;

/// What kind of record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scenario,
    Validation,
    Conversion,
    Printing,
    Quantity,
    Selector,
    Kubelet,
}

/// How a replay went.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Records that differ, or may, and are marked in the vectors as not binding.
    pub(crate) informative: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut tally = Tally::default();
    for file in read::vector_files(&args.paths)? {
        let before = (tally.passed, tally.failed);
        replay(&file, args.only.as_deref(), args.show, &mut tally)?;
        let (passed, failed) = (tally.passed - before.0, tally.failed - before.1);
        println!("{:<60} {passed} ok, {failed} differ", file.display());
    }
    if tally.informative > 0 {
        println!(
            "{} differ where the recorded value binds nobody (docs/compatibility.md)",
            tally.informative
        );
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Files whose records belong together.
fn whole(file: &Path) -> Option<Whole> {
    match file.file_name()?.to_str()?.split('.').next()? {
        "adapter_config" => Some(adapter_config::replay),
        "adapter_query" => Some(adapter_query::replay),
        "adapter_result" => Some(adapter_result::replay),
        "custom_api" => Some(|_, records| custom_api::replay(records)),
        "resource_api" => Some(|_, records| resource_api::replay(records)),
        _ => None,
    }
}

/// Replays one file, printing differences.
pub(crate) fn replay(file: &Path, only: Option<&str>, show: usize, tally: &mut Tally) -> anyhow::Result<()> {
    if let Some(whole) = whole(file) {
        let records: Vec<Value> = read::records(file)?.collect::<anyhow::Result<_>>()?;
        for Outcome { id, differences } in whole(file, &records)? {
            if only.is_some_and(|only| !id.contains(only)) {
                continue;
            }
            if differences.is_empty() {
                tally.passed += 1;
                continue;
            }
            tally.failed += 1;
            if tally.failed <= show {
                print_differences(file, &id, &differences);
            }
        }
        return Ok(());
    }
    for (number, record) in read::records(file)?.enumerate() {
        let record = record?;
        let id = record
            .get("id")
            .and_then(Value::as_str)
            .map_or_else(|| format!("line {}", number + 1), str::to_owned);
        if only.is_some_and(|only| !id.contains(only)) {
            continue;
        }
        let differences = match kind(file, &record) {
            Some(kind) => check(kind, &record),
            None => Err(format!("unknown kind of record with fields {:?}", field_names(&record))),
        };
        let shown = match differences {
            Ok(differences) if differences.is_empty() => {
                tally.passed += 1;
                continue;
            }
            Ok(differences)
                if is_informative(&record)
                    || selector::differs_in_accidental_order(&record, &differences) =>
            {
                tally.informative += 1;
                tally.passed += 1;
                continue;
            }
            Ok(differences) => differences,
            Err(text) => vec![Difference {
                at: "record".into(),
                expected: "a record that can be replayed".into(),
                got: text,
            }],
        };
        tally.failed += 1;
        if tally.failed <= show {
            print_differences(file, &id, &shown);
        }
    }
    Ok(())
}

fn check(kind: Kind, record: &Value) -> Result<Vec<Difference>, String> {
    match kind {
        Kind::Scenario => scenario::check(record),
        Kind::Validation => validation::check(record),
        Kind::Conversion => conversion::check(record),
        Kind::Printing => printing::check(record),
        Kind::Quantity => quantity::check(record),
        Kind::Selector => selector::check(record),
        Kind::Kubelet => kubelet::check(record),
    }
}

/// Told by the record's shape, else by the file's name.
fn kind(file: &Path, record: &Value) -> Option<Kind> {
    let has = |name: &str| record.get(name).is_some();
    if has("steps") {
        return Some(Kind::Scenario);
    }
    if has("operation") && has("object") {
        return Some(Kind::Validation);
    }
    if has("from") && has("to") && has("object") {
        return Some(Kind::Conversion);
    }
    if has("cells") && has("columns") {
        return Some(Kind::Printing);
    }
    let name = file.file_name()?.to_str()?;
    match name.split('.').next()? {
        "quantity" => Some(Kind::Quantity),
        "selector" => Some(Kind::Selector),
        "kubelet" => Some(Kind::Kubelet),
        _ => None,
    }
}

/// Whether the vectors bind nobody here: values outside the integer ranges, numbers that are none, crashes, labels that are
/// not there, chance.
fn is_informative(record: &Value) -> bool {
    const FREE: [&str; 7] = [
        "overflow",
        "float-conversion",
        "zero-prev",
        "crash",
        "missing-label",
        "label-substring",
        "random",
    ];
    let is_free = |tag: &Value| tag.as_str().is_some_and(|tag| FREE.contains(&tag));
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
