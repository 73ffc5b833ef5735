//! The live table: one line per change.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use api::autoscaling::print;
use api::decisions::DecisionRecord;
use engine::explain::{self, clock};
use engine::{ActivationVerdict, ScaleOutcome, Status};
use jiff::Timestamp;
use sim::scenario::AutoscalerPlan;

use super::UpArgs;
use super::event_driven::EventDrivenObject;
use super::running_cluster::RunningCluster;
use crate::failure::{CommandResult as Ended, Failure};
use crate::scenario::as_hpa;

/// How often new decisions are read.
const READ_INTERVAL: Duration = Duration::from_millis(250);

/// Prints decisions as they are made.
pub(super) async fn watch(cluster: &RunningCluster, args: &UpArgs) -> Ended {
    if args.quiet {
        std::future::pending::<()>().await;
    }
    let mut shown: HashMap<(String, String), Timestamp> = HashMap::new();
    let mut phases: HashMap<(String, String), Option<ActivationPhase>> = HashMap::new();
    print_line(&format!(
        "{:<8}  {:<22}  {:<9}  {:<24}  {:<10}  {}",
        "TIME", "AUTOSCALER", "REPLICAS", "METRICS", "LOAD", "WHY"
    ))?;
    loop {
        let mut new = Vec::new();
        for records in [cluster.process.handle.records(), cluster.operator.handle.records()] {
            new.extend(records.latest(None).into_iter().flat_map(|latest| {
                let shown = shown.get(&key(&latest)).copied();
                if args.verbose {
                    return vec![latest];
                }
                // Several decisions can be made between two reads.
                records.after(&latest.metadata.namespace, &latest.metadata.name, shown)
            }));
        }
        new.sort_by_key(|record| record.last);
        for record in new {
            let at = if args.verbose { record.last } else { record.first };
            if shown.insert(key(&record), at) == Some(at) {
                continue;
            }
            let phase = ActivationPhase::of(&record);
            let changed = phases.insert(key(&record), phase) != Some(phase)
                || record.decision.current() != record.decision.desired;
            if phase.is_some() && !changed && !args.verbose {
                continue;
            }
            print_line(&line(cluster, &record))?;
        }
        tokio::time::sleep(READ_INTERVAL).await;
    }
}

fn key(record: &DecisionRecord) -> (String, String) {
    (record.metadata.namespace.clone(), record.metadata.name.clone())
}

/// The state of a target that is scaled by events: a poll that changes neither this nor the count is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActivationPhase {
    Rest,
    Work,
    Cooldown,
    Held,
}

impl ActivationPhase {
    fn of(record: &DecisionRecord) -> Option<Self> {
        let decision = &record.decision;
        if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
            return record.round.as_ref().map(|_| Self::Held);
        }
        Some(match &decision.activation.as_ref()?.verdict {
            ActivationVerdict::Resting | ActivationVerdict::Rests { .. } => Self::Rest,
            ActivationVerdict::Wakes | ActivationVerdict::Lifts | ActivationVerdict::Metrics => Self::Work,
            ActivationVerdict::Cooling { .. } => Self::Cooldown,
            ActivationVerdict::Held(_) => Self::Held,
        })
    }
}

fn line(cluster: &RunningCluster, record: &DecisionRecord) -> String {
    let decision = &record.decision;
    let replicas = if decision.scale.is_none() {
        // A scale that could not be read is unknown, not zero.
        "-".to_owned()
    } else if decision.current() == decision.desired {
        decision.desired.to_string()
    } else {
        format!("{} → {}", decision.current(), decision.desired)
    };
    let name = record.metadata.name.replacen('.', "/", 1);
    let namespace = &record.metadata.namespace;
    let found = cluster.workloads.scenarios.iter().find_map(|scenario| {
        let is_own =
            |plan: &&AutoscalerPlan| plan.object.short_name() == name && plan.spec.namespace == *namespace;
        let plan = scenario.autoscalers.iter().find(is_own)?;
        Some((plan, scenario.workloads.get(plan.workload)?))
    });
    let is_own = |object: &&EventDrivenObject| object.short_name() == name && object.namespace == *namespace;
    let scaled = cluster.workloads.event_driven.iter().find(is_own);
    let target = found.map(|(_, workload)| workload.name.as_str());
    let target = target.or_else(|| scaled?.target_name()).or_else(|| name.strip_prefix("so/"));
    let load = target.and_then(|target| cluster.load_and_faults.load_of(namespace, target));
    let load = load.map(|load| format!("{load:.1}/s")).unwrap_or_default();
    let metrics = match &record.round {
        Some(round) => explain::targets(round, Some(decision.current())),
        None => found.map(|(plan, _)| targets(plan, &decision.status)).unwrap_or_default(),
    };
    let why = record.sentence();
    // The total has no room in this column; `why` has it.
    let metrics = metrics.split(" (").next().unwrap_or_default();
    format!("{:<8}  {name:<22}  {replicas:<9}  {metrics:<24}  {load:<10}  {why}", clock(record.last))
}

fn print_line(line: &str) -> Ended {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::from)
}

/// What `kubectl get hpa` shows under TARGETS.
fn targets(plan: &AutoscalerPlan, status: &Status) -> String {
    let hpa = as_hpa(plan, Some(status), Timestamp::UNIX_EPOCH);
    explain::plain(&print::targets(
        &hpa.spec.metrics,
        hpa.status.current_metrics.as_deref().unwrap_or_default(),
    ))
}
