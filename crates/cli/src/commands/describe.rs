//! `plimsoll describe`: an autoscaler as `kubectl describe` shows it.

use std::path::PathBuf;

use api::autoscaling::Versioned;
use api::autoscaling::describe::{Event, describe_v1, describe_v2};
use api::manifest::{self, Manifest};
use api::yaml;
use engine::report::EventKind;
use engine::{Decision, Observation};
use jiff::Timestamp;
use sim::scenario::Variation;
use sim::{DueDecision, Millis, Observer, Scenario, Simulation};

use super::gates::GatesArg;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::output;
use crate::scenario;

/// Describe autoscalers as kubectl does
///
/// Reads manifests, status included, or with --at runs a scenario and describes its autoscalers at that moment, with
/// their conditions and events.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kubectl get hpa web -o yaml | plimsoll describe -
  plimsoll describe examples/php-apache.yaml --at 5m")]
pub(crate) struct DescribeArgs {
    /// Files with manifests, or those of one scenario with --at; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Run the scenario and describe its autoscalers at this moment.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Which autoscaler, where there are several: NAME, hpa/NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "NAME", requires = "at")]
    autoscaler: Option<String>,
    #[command(flatten)]
    gates: GatesArg,
}

pub(crate) fn run(args: &DescribeArgs) -> Outcome {
    match &args.at {
        Some(at) => simulated(args, at),
        None => written(args),
    }
}

/// Objects as they are written.
fn written(args: &DescribeArgs) -> Outcome {
    let gates = args.gates.gates()?;
    let mut texts = Vec::new();
    for source in files::read_all(&args.files)? {
        for document in yaml::parse(&source)?.into_iter().flat_map(yaml::Document::into_items) {
            match Manifest::read(&document)? {
                Manifest::Hpa(hpa) => {
                    let version = hpa.version();
                    let stored = manifest::admit_hpa(&document, *hpa, gates)?;
                    texts.push(match Versioned::from_v2(stored, version) {
                        Versioned::V1(object) => describe_v1(&object, None),
                        other => {
                            describe_v2(&other.into_v2().map_err(|e| Failure::input(e.to_string()))?, None)
                        }
                    });
                }
                Manifest::Autoscaler(autoscaler) => {
                    let autoscaler = manifest::admit_autoscaler(&document, *autoscaler)?;
                    texts.push(describe_v2(&api::plimsoll::v2_view(autoscaler), None));
                }
                Manifest::Proposal(proposed) => {
                    let autoscaler = manifest::admit_proposal(&document, *proposed)?;
                    texts.push(describe_v2(&api::plimsoll::v2_view(autoscaler), None));
                }
                Manifest::Other { .. } => {}
            }
        }
    }
    if texts.is_empty() {
        return Err(Failure::input("there is no autoscaler to describe in these files"));
    }
    output::text_out(&texts.join("\n\n"))
}

/// The autoscalers of a scenario at a moment.
fn simulated(args: &DescribeArgs, at: &str) -> Outcome {
    let sources = files::read_all(&args.files)?;
    let scenario = scenario::load(&sources, Variation::default())?;
    let chosen = scenario::choose(&scenario, args.autoscaler.as_deref())?;
    let at = scenario::moment(&scenario, Some(at))?;
    let mut history = History::new(&scenario, at);
    Simulation::new(&scenario).run(&mut history);
    let now = at.after(scenario.start);
    let texts: Vec<String> = chosen
        .iter()
        .filter_map(|index| Some((scenario.autoscalers.get(*index)?, history.tracks.get(*index)?)))
        .map(|(plan, track)| {
            let hpa = scenario::as_hpa(plan, Some(&track.status), scenario.start);
            let events: Vec<Event> = track.events.iter().map(|noted| noted.describe(now)).collect();
            describe_v2(&hpa, Some(&events))
        })
        .collect();
    output::text_out(&texts.join("\n\n"))
}

/// The status and events of each autoscaler up to a moment.
struct History {
    until: Millis,
    past: bool,
    tracks: Vec<Track>,
}

#[derive(Clone, Default)]
struct Track {
    status: engine::Status,
    events: Vec<Noted>,
}

/// An event and how often it was seen.
#[derive(Clone)]
struct Noted {
    event: engine::Event,
    first: Timestamp,
    last: Timestamp,
    count: u32,
}

impl History {
    fn new(scenario: &Scenario, until: Millis) -> Self {
        Self { until, past: false, tracks: vec![Track::default(); scenario.autoscalers.len()] }
    }
}

impl Observer for History {
    fn step(&mut self, due: &DueDecision, _: &Observation, decision: &Decision) {
        self.past = due.elapsed > self.until;
        let Some(track) = self.tracks.get_mut(due.autoscaler).filter(|_| !self.past) else { return };
        track.status = decision.status.clone();
        for event in &decision.events {
            match track.events.iter_mut().find(|noted| noted.event == *event) {
                Some(noted) => {
                    noted.last = due.at;
                    noted.count += 1;
                }
                None => {
                    track.events.push(Noted { event: event.clone(), first: due.at, last: due.at, count: 1 });
                }
            }
        }
    }

    fn keep_going(&self) -> bool {
        !self.past
    }
}

impl Noted {
    /// The text of `kubectl describe`.
    fn describe(&self, now: Timestamp) -> Event {
        let last = api::age::since(Some(self.last), now);
        let age = if self.count > 1 {
            format!("{last} (x{} over {})", self.count, api::age::since(Some(self.first), now))
        } else {
            last
        };
        let type_ = if self.event.kind == EventKind::Normal { "Normal" } else { "Warning" };
        Event {
            type_: type_.into(),
            reason: self.event.reason.clone().into_owned(),
            age,
            from: "horizontal-pod-autoscaler".into(),
            message: self.event.message.clone(),
        }
    }
}
