//! `plimsoll why`: a decision as arithmetic.

use std::io::IsTerminal;
use std::path::PathBuf;

use api::table::Table;
use engine::explain::{Explanation, clock, explain, sentence};
use engine::{Decision, Observation, Outcome as Became};
use serde::Serialize;
use sim::scenario::{AutoscalerPlan, Variation};
use sim::{Capture, Due, Millis, Observer, Scenario, Simulation};

use crate::failure::{Failure, Outcome, use_colour};
use crate::files;
use crate::output::{self, Format};
use crate::scenario;

/// Explain a decision as arithmetic a person can follow
///
/// Runs the scenario up to that moment and takes the decision in force there apart: pods counted and set aside and why,
/// ratio, tolerance, proposals, the winner, each limit, and what would change it next.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll why examples/php-apache.yaml --at 3m             # three minutes after the start
  plimsoll why examples/php-apache.yaml --at 09:03:00       # the scenario's own clock
  plimsoll why examples/php-apache.yaml --at 10m --since 5m # every decision of five minutes
  plimsoll why examples/multi-metric-outage.yaml --at 12m --pods
  plimsoll why examples/php-apache.yaml --at 3m -o json")]
pub(crate) struct Args {
    /// Files of one scenario, read together; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// When: from the start (3m, 1h30m), by the scenario's clock (09:03:00), or a full time. Without it, the end.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// A table of the decisions in so long before that moment, instead of one explained.
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// Which autoscaler, where there are several: NAME, hpa/NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "NAME")]
    autoscaler: Option<String>,
    /// Also list every pod that was looked at.
    #[arg(long)]
    pods: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// What `-o json` prints.
#[derive(Serialize)]
struct Record<'a> {
    autoscaler: String,
    explanation: &'a Explanation,
    decision: &'a Decision,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let sources = files::read_all(&args.files)?;
    let scenario = scenario::load(&sources, Variation::default())?;
    let chosen = scenario::choose(&scenario, args.autoscaler.as_deref())?;
    let at = scenario::moment(&scenario, args.at.as_deref())?;
    if let Some(since) = &args.since {
        return decisions(args, &scenario, &chosen, at, since);
    }
    let mut capture = Capture::new(at, scenario.autoscalers.len());
    Simulation::new(&scenario).run(&mut capture);
    let mut records = Vec::new();
    for index in chosen {
        let Some(plan) = scenario.autoscalers.get(index) else { continue };
        let Some((_, decision)) = capture.found.get(index).and_then(Option::as_ref) else {
            let first = clock(plan.period.after(scenario.start));
            let name = plan.object.short_name();
            return Err(Failure::input(format!(
                "{name} had not decided anything yet; its first decision is at {first}"
            )));
        };
        let kind = scenario::kind_of(plan);
        records.push((plan, explain(kind, &plan.spec, decision, plan.period.duration()), decision));
    }
    match args.output {
        Format::Json | Format::Yaml => {
            let all: Vec<Record<'_>> = records
                .iter()
                .map(|(plan, explanation, decision)| Record {
                    autoscaler: plan.object.short_name(),
                    explanation,
                    decision,
                })
                .collect();
            match all.as_slice() {
                [only] => output::value(args.output, only),
                all => output::value(args.output, &all),
            }
        }
        Format::Table | Format::Wide => {
            let colour = use_colour(&std::io::stdout()) && std::io::stdout().is_terminal();
            let pods = args.pods || args.output == Format::Wide;
            let texts: Vec<String> = records
                .iter()
                .map(|(plan, explanation, decision)| {
                    let pods = if pods { pod_table(plan, decision) } else { String::new() };
                    format!("{}{pods}", painted(explanation, colour))
                })
                .collect();
            output::text_out(&texts.join("\n"))
        }
    }
}

/// A headline that stands apart, and the line that decided.
fn painted(explanation: &Explanation, colour: bool) -> String {
    let text = explanation.to_string();
    let (headline, rest) = text.split_once('\n').unwrap_or((&text, ""));
    if !colour {
        return format!("{headline}\n\n{rest}");
    }
    let rows: String = rest
        .lines()
        .map(|line| {
            if line.ends_with("← this decided") {
                format!("\x1b[1m{line}\x1b[0m\n")
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    format!("\x1b[1m{headline}\x1b[0m\n\n{rows}")
}

/// Every pod that was looked at, by metric.
fn pod_table(plan: &AutoscalerPlan, decision: &Decision) -> String {
    let mut table = Table::new(["Metric", "Pod", "Counted", "Used", "Requested"]);
    let milli = |value: Option<i64>| {
        let shown = |v| quantity::Quantity::from_milli(v, quantity::Format::DecimalSi).to_string();
        value.map_or_else(|| "-".to_owned(), shown)
    };
    for (evaluation, metric) in decision.evaluations.iter().zip(&plan.spec.metrics) {
        let Ok(engine::evaluate::Proposal { sum: engine::evaluate::Arithmetic::PerPod(sum), .. }) =
            &evaluation.result
        else {
            continue;
        };
        for pod in sum.detail.iter().flatten() {
            let group = match pod.group {
                engine::evaluate::Group::Ready => "yes",
                engine::evaluate::Group::Unready => "no: not yet ready",
                engine::evaluate::Group::Missing => "no: without metrics",
                engine::evaluate::Group::Ignored => "no: ending",
            };
            table.rows.push(vec![
                engine::explain::short_name(metric),
                pod.name.to_string(),
                group.to_owned(),
                milli(pod.usage),
                milli(pod.request),
            ]);
        }
    }
    if table.rows.is_empty() { String::new() } else { format!("\n{table}") }
}

/// One line of the table of decisions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    at: jiff::Timestamp,
    autoscaler: String,
    from: i32,
    to: i32,
    recommended: Option<i32>,
    changed: bool,
    why: String,
}

/// Keeps the decisions of a span of time.
struct Span<'a> {
    scenario: &'a Scenario,
    chosen: &'a [usize],
    from: Millis,
    to: Millis,
    past: bool,
    lines: Vec<Line>,
}

impl Observer for Span<'_> {
    fn step(&mut self, due: &Due, _: &Observation, decision: &Decision) {
        self.past = due.elapsed > self.to;
        let Some(plan) = self.scenario.autoscalers.get(due.autoscaler) else { return };
        if self.past || due.elapsed < self.from || !self.chosen.contains(&due.autoscaler) {
            return;
        }
        self.lines.push(Line {
            at: due.at,
            autoscaler: plan.object.short_name(),
            from: decision.current(),
            to: decision.desired,
            recommended: decision.recommendation.as_ref().map(|r| r.replicas),
            changed: decision.outcome == Became::Scaled,
            why: sentence(&plan.spec, decision),
        });
    }

    fn keep_going(&self) -> bool {
        !self.past
    }
}

fn decisions(args: &Args, scenario: &Scenario, chosen: &[usize], at: Millis, since: &str) -> Outcome {
    let since: Millis = since.parse().map_err(|e| {
        Failure::input(format!("--since {since}: {e}; write a duration such as 10m or 1h30m"))
    })?;
    let mut span = Span { scenario, chosen, from: at - since, to: at, past: false, lines: Vec::new() };
    Simulation::new(scenario).run(&mut span);
    if matches!(args.output, Format::Json | Format::Yaml) {
        return output::value(args.output, &span.lines);
    }
    let mut table = Table::new(["Time", "Autoscaler", "Replicas", "Wanted", "Why"]);
    for line in &span.lines {
        let replicas = if line.from == line.to {
            line.from.to_string()
        } else {
            format!("{} → {}", line.from, line.to)
        };
        let wanted = line.recommended.map_or_else(|| "-".to_owned(), |n| n.to_string());
        table.rows.push(vec![clock(line.at), line.autoscaler.clone(), replicas, wanted, line.why.clone()]);
    }
    if table.rows.is_empty() {
        return output::text_out("no decision in that time\n");
    }
    output::text_out(&table.to_string())
}
