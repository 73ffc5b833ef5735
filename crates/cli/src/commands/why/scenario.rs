//! A decision of a scenario.

use api::decisions::DecisionMode;
use api::diagnosis::{DiagnosisFacts, with_causes};
use api::table::Table;
use engine::explain::{Explanation, clock, explain, sentence};
use engine::{Decision, Observation, ScaleOutcome as Became};
use serde::Serialize;
use sim::scenario::Variation;
use sim::{DecisionCapture, DueDecision, Millis, Observer, Scenario, Simulation};

use super::{WhyArgs, pods};
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::live::page::Page;
use crate::output::{self, Format};
use crate::scenario;

/// What `-o json` prints.
#[derive(Serialize)]
struct SimulatedRecord<'a> {
    autoscaler: String,
    explanation: &'a Explanation,
    decision: &'a Decision,
}

pub(crate) fn run(args: &WhyArgs) -> CommandResult {
    let sources = files::read_all(&args.files)?;
    let scenario = scenario::load(
        &sources,
        Variation { kubernetes: args.kubernetes.version(), ..Variation::default() },
    )?;
    let chosen = scenario::choose(&scenario, args.autoscaler.as_deref())?;
    let at = scenario::moment(&scenario, args.at.as_deref())?;
    if let Some(since) = &args.since {
        return decisions(args, &scenario, &chosen, at, since);
    }
    let mut capture = DecisionCapture::new(at, scenario.autoscalers.len());
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
        let explanation = explain(kind, &plan.spec, decision, plan.period.duration());
        let facts = DiagnosisFacts {
            spec: &plan.spec,
            decision,
            poll: None,
            mode: DecisionMode::Active,
            since: None,
            cluster: None,
        };
        records.push((plan, with_causes(explanation, &facts), decision));
    }
    match args.output {
        Format::Json | Format::Yaml => {
            let all: Vec<SimulatedRecord<'_>> = records
                .iter()
                .map(|(plan, explanation, decision)| SimulatedRecord {
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
            let page = Page::stdout();
            let pods = args.pods || args.output == Format::Wide;
            let texts: Vec<String> = records
                .iter()
                .map(|(plan, explanation, decision)| {
                    let pods = if pods { pods::table(page, &plan.spec, decision) } else { String::new() };
                    format!("{}{pods}", page.explanation(explanation))
                })
                .collect();
            output::text_out(&texts.join("\n"))
        }
    }
}

/// One line of the table of decisions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulatedDecisionLine {
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
    lines: Vec<SimulatedDecisionLine>,
}

impl Observer for Span<'_> {
    fn step(&mut self, due: &DueDecision, _: &Observation, decision: &Decision) {
        self.past = due.elapsed > self.to;
        let Some(plan) = self.scenario.autoscalers.get(due.autoscaler) else { return };
        if self.past || due.elapsed < self.from || !self.chosen.contains(&due.autoscaler) {
            return;
        }
        self.lines.push(SimulatedDecisionLine {
            at: due.at,
            autoscaler: plan.object.short_name(),
            from: decision.current().get(),
            to: decision.desired.get(),
            recommended: decision.recommendation.as_ref().map(|r| r.replicas.get()),
            changed: decision.outcome == Became::Scaled,
            why: sentence(&plan.spec, decision),
        });
    }

    fn keep_going(&self) -> bool {
        !self.past
    }
}

fn decisions(
    args: &WhyArgs,
    scenario: &Scenario,
    chosen: &[usize],
    at: Millis,
    since: &str,
) -> CommandResult {
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
    output::text_out(&Page::stdout().table(&table))
}
