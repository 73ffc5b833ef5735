//! `plimsoll shadow`: differences between shadow mode and the active controller.

use std::path::PathBuf;

use api::decisions::{DifferenceList, DifferenceRecord};
use api::table::Table;
use engine::explain::zone_name;
use jiff::Timestamp;

use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::live::decisions::MissingDecision;
use crate::live::moment::{stamp, zoned};
use crate::live::page::Page;
use crate::live::{ClusterArgs, ClusterClient, Scope};
use crate::output::{self, Format};

/// Show what shadow mode found
#[derive(clap::Args)]
pub(crate) struct ShadowArgs {
    #[command(subcommand)]
    command: ShadowCommand,
}

#[derive(clap::Subcommand)]
enum ShadowCommand {
    Report(Report),
}

/// Report differences between shadow mode and the active controller
///
/// A controller that runs with `--mode shadow` decides in parallel with the active one, scales nothing, and records every
/// difference. It decides again with the readings that the active controller wrote into its status: only a difference
/// that remains is one of logic; the others are of timing, and only counted. Without -n the report is about all
/// namespaces.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll shadow report
  plimsoll shadow report -n shop --html shadow.html
  plimsoll shadow report -o json

Exit codes: 0 decisions were compared and there are no differences, 3 there are some, 4 nothing was
compared, 1 the cluster cannot be read, 2 the input was wrong.")]
struct Report {
    /// Also write one self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

pub(crate) fn run(args: &ShadowArgs) -> CommandResult {
    let ShadowCommand::Report(report) = &args.command;
    if let Some(path) = &report.html {
        files::check_writable(path)?;
    }
    crate::live::run(async move {
        let client = ClusterClient::open(&report.place).await?;
        let scope = report.place.namespace.as_deref().map_or(Scope::All, Scope::Namespace);
        let found = client.differences(scope).await.map_err(|missing| {
            let (cause, remedy) = match missing {
                MissingDecision::NoRecord => (
                    "the controller does not serve differences".to_owned(),
                    "use a controller of this version".to_owned(),
                ),
                MissingDecision::Unavailable(why) => (why.cause, why.remedy),
            };
            Failure::Outside(format!("differences cannot be read: {cause}\n  remedy: {remedy}"))
        })?;
        print(report, &found)
    })
}

fn print(report: &Report, found: &DifferenceList) -> CommandResult {
    let now = Timestamp::now();
    match report.output {
        Format::Json | Format::Yaml => output::value(report.output, found)?,
        Format::Table | Format::Wide => output::text_out(&text(found, Page::stdout(), now))?,
    }
    if let Some(path) = &report.html {
        files::write(path, &controllers::hpa::shadow::page(found, now))?;
        eprintln!("report: {}", path.display());
    }
    outcome(found)
}

/// No difference among no comparisons is not success: a script would take it for agreement.
fn outcome(found: &DifferenceList) -> CommandResult {
    match (found.items.is_empty(), found.compared) {
        (false, _) => Err(Failure::DifferencesFound),
        (true, 0) => Err(Failure::NothingCompared),
        (true, _) => Ok(()),
    }
}

fn text(found: &DifferenceList, page: Page, now: Timestamp) -> String {
    let mut text = format!("{}\n", summary(found, now));
    if !found.items.is_empty() {
        text.push('\n');
        text += &page.table(&table(&found.items, now));
    }
    text
}

/// The compared objects and the result.
fn summary(found: &DifferenceList, now: Timestamp) -> String {
    let plural = |n: u64, noun: &str| if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") };
    if found.autoscalers == 0 && found.items.is_empty() {
        return "nothing was compared: no autoscaler is in shadow mode; start the controller with --mode shadow"
            .to_owned();
    }
    if found.compared == 0 && found.items.is_empty() {
        let autoscalers = plural(found.autoscalers, "autoscaler");
        return format!(
            "nothing was compared yet of {autoscalers} in shadow mode; a comparison needs a status that another controller has written"
        );
    }
    let since = found.since.map(|since| format!(" since {}", zoned(since, now))).unwrap_or_default();
    let lasting = found.items.iter().filter(|item| !item.over).count();
    let what = match (found.items.len() as u64, lasting) {
        (0, _) => "no difference".to_owned(),
        (n, 0) => format!("{}, all over", plural(n, "difference")),
        (n, lasting) => format!("{}, {lasting} still there", plural(n, "difference")),
    };
    let compared = plural(found.compared, "decision");
    let timing = match found.timing {
        0 => String::new(),
        n => format!(
            "; {} of timing, gone when decided again with the readings of the active controller",
            plural(n, "difference")
        ),
    };
    format!("compared {compared} of {}{since}: {what}{timing}", plural(found.autoscalers, "autoscaler"))
}

fn table(items: &[DifferenceRecord], now: Timestamp) -> Table {
    let since = format!("Since ({})", zone_name(now));
    let mut table = Table::new(["Object", "Field", "Theirs", "Ours", since.as_str(), "For", "Over", "Why"]);
    for item in items {
        let until = if item.over { item.last } else { now };
        table.rows.push(vec![
            format!("{}/{}", item.metadata.namespace, item.metadata.name.replacen('.', "/", 1)),
            item.field.clone(),
            item.theirs.clone(),
            item.ours.clone(),
            stamp(item.since, now),
            api::age::since(Some(item.since), until),
            if item.over { "yes" } else { "no" }.to_owned(),
            item.why.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::decisions::{API_VERSION, DecisionMeta};

    fn difference(field: &str, over: bool) -> DifferenceRecord {
        DifferenceRecord {
            api_version: API_VERSION.into(),
            kind: "Difference".into(),
            metadata: DecisionMeta { name: "hpa.web".into(), namespace: "shop".into() },
            since: "2026-01-05T09:00:00Z".parse().unwrap(),
            last: "2026-01-05T09:01:30Z".parse().unwrap(),
            over,
            field: field.into(),
            theirs: "4".into(),
            ours: "5".into(),
            why: "we saw a pod sooner".into(),
        }
    }

    #[test]
    fn report_starts_with_the_number_of_compared_objects() {
        let now = "2026-01-05T10:00:00Z".parse().unwrap();
        let page = Page { width: None, colour: false };
        let mut found = DifferenceList { autoscalers: 12, compared: 1204, ..DifferenceList::default() };
        found.since = Some("2026-01-04T10:00:00Z".parse().unwrap());
        assert_eq!(
            text(&found, page, now),
            "compared 1204 decisions of 12 autoscalers since 2026-01-04 10:00:00 UTC: no difference\n"
        );
        found.items = vec![difference("desiredReplicas", false), difference("ScalingLimited", true)];
        assert_eq!(
            text(&found, page, now),
            "\
compared 1204 decisions of 12 autoscalers since 2026-01-04 10:00:00 UTC: 2 differences, 1 still there

OBJECT         FIELD             THEIRS   OURS   SINCE (UTC)   FOR   OVER   WHY
shop/hpa/web   desiredReplicas   4        5      09:00:00      60m   no     we saw a pod sooner
shop/hpa/web   ScalingLimited    4        5      09:00:00      90s   yes    we saw a pod sooner
"
        );
        let timing = DifferenceList { timing: 28, items: Vec::new(), ..found };
        assert_eq!(
            text(&timing, page, now),
            "compared 1204 decisions of 12 autoscalers since 2026-01-04 10:00:00 UTC: no difference; 28 differences of timing, \
             gone when decided again with the readings of the active controller\n"
        );
        assert_eq!(
            text(&DifferenceList::default(), page, now),
            "nothing was compared: no autoscaler is in shadow mode; start the controller with --mode shadow\n"
        );
        let none_yet = DifferenceList { autoscalers: 1, ..DifferenceList::default() };
        assert!(
            text(&none_yet, page, now).starts_with("nothing was compared yet of 1 autoscaler in shadow mode")
        );
    }

    #[test]
    fn exit_code_tells_agreement_from_no_comparison() {
        let found = |compared, items: &[DifferenceRecord]| {
            outcome(&DifferenceList { compared, items: items.to_vec(), ..DifferenceList::default() })
        };
        assert!(matches!(found(0, &[]), Err(Failure::NothingCompared)));
        assert!(matches!(found(7, &[]), Ok(())));
        assert!(matches!(found(7, &[difference("desiredReplicas", true)]), Err(Failure::DifferencesFound)));
    }
}
