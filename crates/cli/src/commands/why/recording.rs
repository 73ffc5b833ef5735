//! Decisions of a recording (`--record`), without a cluster.

use std::path::Path;

use api::decisions::DecisionRecord;
use controllers::hpa::records::{RecordingError, for_each_pass};
use jiff::Timestamp;

use super::{WhyArgs, history, live};
use crate::failure::{CommandResult, Failure};
use crate::live::AutoscalerName;
use crate::live::moment::{length, moment, zoned};
use crate::output::Format;

/// Explains what a recording has about autoscalers.
pub(super) fn run(args: &WhyArgs, path: &Path, names: &[AutoscalerName]) -> CommandResult {
    if names.is_empty() {
        return Err(Failure::input("which one? Write hpa/NAME or so/NAME"));
    }
    args.place.use_zone();
    let now = Timestamp::now();
    let at = args.at.as_deref().map(|text| moment(text, now)).transpose()?;
    let since = args.since.as_deref().map(|text| length("--since", text)).transpose()?;
    let (mut lines, mut explained, mut end) = (Vec::new(), Vec::new(), None);
    for named in names {
        let passes = passes(args, path, named)?;
        end = end.max(passes.last().map(|(pass, _)| pass.last));
        if since.is_some() {
            lines.extend(if args.output == Format::Wide {
                passes.into_iter().map(|(pass, _)| pass).collect()
            } else {
                runs(passes)
            });
            continue;
        }
        let found = match at {
            None => passes.last(),
            Some(at) => passes.iter().rfind(|(pass, _)| pass.last <= at),
        };
        let (pass, _) = found.ok_or_else(|| {
            let first = passes.first().map_or_else(String::new, |(pass, _)| zoned(pass.first, now));
            Failure::Outside(format!("{named}: {} begins at {first}", path.display()))
        })?;
        explained.push(live::explained(named, pass, None, Some(at.unwrap_or(pass.last)), now));
    }
    match since {
        // The end of a recording is its present.
        Some(since) => history::print(args, &lines, at.or(end).unwrap_or(now), since, now),
        None => live::print(args, &explained),
    }
}

/// The passes of one autoscaler, and of each whether it equals the one before.
fn passes(
    args: &WhyArgs,
    path: &Path,
    named: &AutoscalerName,
) -> Result<Vec<(DecisionRecord, bool)>, Failure> {
    let (name, namespace) = (named.record(), args.place.namespace.as_deref());
    let mut found = Vec::new();
    let skipped = for_each_pass(
        path,
        |meta, _| meta.name == name && namespace.is_none_or(|namespace| meta.namespace == namespace),
        |record, continues| found.push((record, continues)),
    );
    let failed = |error: RecordingError| {
        Failure::input(format!(
            "{error}\n  remedy: name a folder that `plimsoll controller --record FOLDER` wrote, or a file of it"
        ))
    };
    for error in skipped.map_err(failed)? {
        eprintln!("warning: {error}; it is skipped");
    }
    let Some((first, _)) = found.first() else {
        let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        return Err(Failure::Outside(format!("{named}{place}: {} has no pass of it", path.display())));
    };
    let own = &first.metadata.namespace;
    match found.iter().find(|(pass, _)| pass.metadata.namespace != *own) {
        Some((other, _)) => Err(Failure::input(format!(
            "{named} is in several namespaces of {} ({own}, {}): choose one with -n",
            path.display(),
            other.metadata.namespace
        ))),
        None => Ok(found),
    }
}

/// Equal passes in a row as one record.
fn runs(passes: Vec<(DecisionRecord, bool)>) -> Vec<DecisionRecord> {
    let mut runs: Vec<DecisionRecord> = Vec::new();
    for (mut pass, continues) in passes {
        match runs.last_mut() {
            Some(run) if continues => {
                (pass.first, pass.times) = (run.first, run.times + 1);
                *run = pass;
            }
            _ => runs.push(pass),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::record;

    #[test]
    fn equal_passes_are_one_line() {
        let pass = |time: &str, continues| (record(time, 4, &[100; 4]), continues);
        let lines = runs(vec![
            pass("2026-01-05T09:15:00Z", false),
            pass("2026-01-05T09:15:15Z", true),
            pass("2026-01-05T09:15:30Z", false),
        ]);
        assert_eq!(lines.iter().map(|line| line.times).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(lines.first().map(|line| line.last.to_string()).unwrap(), "2026-01-05T09:15:15Z");
        assert_eq!(lines.first().map(|line| line.first.to_string()).unwrap(), "2026-01-05T09:15:00Z");
    }
}
