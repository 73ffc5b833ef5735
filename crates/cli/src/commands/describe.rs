//! `plimsoll describe`: an autoscaler as `kubectl describe` shows it.

use std::path::{Path, PathBuf};

use api::autoscaling::Versioned;
use api::autoscaling::describe::{Event, describe_v1, describe_v2};
use api::convert::{hpa_status, spec_of_autoscaler, spec_of_hpa};
use api::decisions::DecisionRecord;
use api::manifest::{self, Manifest};
use api::yaml;
use cluster::AutoscalerKind;
use engine::report::EventKind;
use engine::{Decision, Observation};
use jiff::Timestamp;
use serde::Deserialize as _;
use sim::scenario::{AutoscalerObject, Variation};
use sim::{DueDecision, Millis, Observer, Scenario, Simulation};

use super::gates::GatesArg;
use super::profile::KubernetesProfileArg;
use super::why::{not_a_file, pass_at};
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::live::moment::{check_form, moment, zoned};
use crate::live::objects::Object;
use crate::live::{AutoscalerName, ClusterArgs, ClusterClient, named};
use crate::output;
use crate::scenario;

/// Describe autoscalers as kubectl does
///
/// Reads an autoscaler of a cluster with its events (hpa/NAME, autoscaler/NAME), or manifests, status included; or with --at runs a
/// scenario and describes its autoscalers at that moment, with their conditions and events. An Autoscaler is described with the
/// fields of its own: aggregator, dry run, percentage of limits, failure policies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll describe hpa/web -n shop
  plimsoll describe hpa/web --at 09:10
  plimsoll describe autoscaler/checkout --context prod
  kubectl get hpa web -o yaml | plimsoll describe -
  plimsoll describe examples/php-apache.yaml --at 5m")]
pub(crate) struct DescribeArgs {
    /// An autoscaler on a cluster (hpa/NAME), or files with manifests, or those of one scenario with --at; - is standard input.
    #[arg(required = true, value_name = "AUTOSCALER|FILE")]
    files: Vec<PathBuf>,
    /// On a cluster: with status and events of the pass at this time (see `why --at`). Of a scenario: run it and describe its
    /// autoscalers at this moment.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Which autoscaler, where there are several: NAME, hpa/NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "NAME", requires = "at")]
    autoscaler: Option<String>,
    #[command(flatten)]
    gates: GatesArg,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

pub(crate) fn run(args: &DescribeArgs) -> CommandResult {
    let words: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    if let Some(names) = AutoscalerName::all(&words, |path| path.as_os_str() == "-" || path.exists()) {
        args.kubernetes.only_for_files()?;
        for named in &names {
            named::check("name", &named.name)?;
        }
        return crate::live::run(on_cluster(args, &names));
    }
    if let Some(option) = args.place.given() {
        return Err(Failure::input(format!(
            "{option} is for autoscalers on a cluster (plimsoll describe hpa/NAME)"
        )));
    }
    if let Some(missing) = args.files.iter().find(|file| file.as_os_str() != "-" && !file.exists()) {
        return Err(Failure::input(not_a_file(missing, "hpa and autoscaler")));
    }
    match &args.at {
        Some(at) => simulated(args, at),
        None => written(args),
    }
}

/// Autoscalers on a cluster, with their events.
async fn on_cluster(args: &DescribeArgs, names: &[AutoscalerName]) -> CommandResult {
    args.place.use_zone();
    let now = Timestamp::now();
    if let Some(text) = &args.at {
        check_form(text, now)?;
    }
    let client = ClusterClient::open(&args.place).await?;
    // A time is relative to the clock of the cluster, which may be ahead.
    let now = if args.at.is_some() { client.present(&client.namespace, names).await } else { now };
    let at = args.at.as_deref().map(|text| moment(text, now)).transpose()?;
    let mut texts = Vec::new();
    for named in names {
        let mut object = match client.object(&client.namespace, named).await {
            Ok(object) => object,
            Err(error) => return Err(client.lost(&client.namespace, named, &error).await),
        };
        if let Some(at) = at.filter(|_| !object.kind.has_triggers()) {
            let pass = pass_at(&client, named, at, now).await?;
            texts.push(at_pass(&mut object, &pass, named, now)?);
            continue;
        }
        // As kubectl does: events that may not be read are left out.
        let events = client.events(&client.namespace, named).await.ok();
        let events =
            events.map(|events| events.iter().rev().map(|event| event.describe(now)).collect::<Vec<_>>());
        texts.push(match object.kind {
            AutoscalerKind::Hpa => describe_v2(&object.hpa, events.as_deref()),
            AutoscalerKind::Autoscaler => {
                let own = api::plimsoll::Autoscaler::deserialize(&object.raw);
                let own = own.map_err(|error| Failure::Outside(format!("{named} cannot be read: {error}")))?;
                api::plimsoll::describe(&own, events.as_deref())
            }
            AutoscalerKind::ScaledJob => {
                let name = &named.name;
                return Err(Failure::input(format!(
                    "{named}: a ScaledJob is shown by `plimsoll why sj/{name}` or `kubectl describe scaledjob {name}`"
                )));
            }
            AutoscalerKind::ScaledObject => {
                let name = &named.name;
                return Err(Failure::input(format!(
                    "{named}: a ScaledObject is shown by `plimsoll why so/{name}` or `kubectl describe scaledobject {name}`; its HPA \
                     by `plimsoll describe hpa/keda-hpa-{name}`"
                )));
            }
        });
    }
    output::text_out(&texts.join("\n\n"))
}

/// An autoscaler with the status and the events of a pass. Its spec is the current one; a note says so if it was another then.
fn at_pass(
    object: &mut Object,
    pass: &DecisionRecord,
    named: &AutoscalerName,
    now: Timestamp,
) -> Result<String, Failure> {
    let decision = &pass.decision;
    let noted = |event: &engine::Event| {
        Noted { event: event.clone(), first: decision.at, last: decision.at, count: 1 }.describe(now)
    };
    let events: Vec<Event> = decision.events.iter().map(noted).collect();
    let own = match object.kind {
        AutoscalerKind::Autoscaler => Some(
            api::plimsoll::Autoscaler::deserialize(&object.raw)
                .map_err(|error| Failure::Outside(format!("{named} cannot be read: {error}")))?,
        ),
        _ => None,
    };
    let spec = own.as_ref().map_or_else(|| spec_of_hpa(&object.hpa), spec_of_autoscaler);
    let mut status = decision.status.clone();
    if spec.metrics != pass.spec.metrics {
        // Values belong to metrics by their place in the spec.
        status.metrics = None;
    }
    object.hpa.status = hpa_status(&object.hpa.spec, &status);
    let text = match own {
        Some(mut own) => {
            own.status = object.hpa.status.clone();
            api::plimsoll::describe(&own, Some(&events))
        }
        None => describe_v2(&object.hpa, Some(&events)),
    };
    let changed =
        if spec == pass.spec { "" } else { "; the spec is the current one, which was another then" };
    Ok(format!("Status of the pass at {}{changed}\n{text}", zoned(decision.at, now)))
}

/// Objects as they are written.
fn written(args: &DescribeArgs) -> CommandResult {
    let gates = args.gates.gates(args.kubernetes.version())?;
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
                    texts.push(api::plimsoll::describe(&autoscaler, None));
                }
                Manifest::Proposal(proposed) => {
                    let autoscaler = manifest::admit_proposal(&document, *proposed)?;
                    texts.push(api::plimsoll::describe(&autoscaler, None));
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
fn simulated(args: &DescribeArgs, at: &str) -> CommandResult {
    let sources = files::read_all(&args.files)?;
    let kubernetes = args.kubernetes.version();
    let scenario = scenario::load(&sources, Variation { kubernetes, ..Variation::default() })?;
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
            match &plan.object {
                AutoscalerObject::Hpa(_) => describe_v2(&hpa, Some(&events)),
                AutoscalerObject::Autoscaler(own) => {
                    let mut own = (**own).clone();
                    (own.status, own.metadata) = (hpa.status, hpa.metadata);
                    api::plimsoll::describe(&own, Some(&events))
                }
            }
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
