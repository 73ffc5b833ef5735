//! Causes that concern pods: missing samples, containers, requests.

use engine::evaluate::{
    Arithmetic, NoChangeReason, PerPodArithmetic, PodCounts, UncountedPod, UncountedReason,
};
use engine::explain::plural;
use engine::failure::FailureCause;
use engine::spec::UtilizationBase;
use jiff::{SignedDuration, Timestamp};

use super::words::{age, names};
use super::{ClusterFacts, Concern, Described, DiagnosisFacts};
use crate::yaml::nearest;

/// An older sample is reported as stale: kubelets are scraped at least once a minute.
const MAX_SAMPLE_AGE: SignedDuration = SignedDuration::from_mins(2);

/// A pod that started less than this long ago may not have been scraped yet.
const FIRST_SAMPLE_DELAY: SignedDuration = SignedDuration::from_mins(2);

/// A cause that concerns pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodCause {
    /// The selector matches no pods.
    NoPods(String),
    /// No pod has the container.
    ContainerNotFound {
        /// The container that the metric names.
        container: String,
        /// The most similar one, or all.
        existing: Vec<String>,
        /// A pod without it, if others have it.
        pod: Option<String>,
    },
    /// A container has no request or limit.
    MissingRequest {
        /// The resource.
        resource: String,
        /// The container; absent for pod-level requests.
        container: Option<String>,
        /// The pod.
        pod: String,
        /// Request or limit.
        base: UtilizationBase,
    },
    /// The requests are zero.
    ZeroRequests(String),
    /// The kubelets of these nodes do not answer.
    KubeletDown {
        /// The nodes.
        nodes: Vec<String>,
        /// The pods on them.
        pods: Vec<String>,
    },
    /// Pods that are not ready.
    NotReady(Vec<String>),
    /// Pods that started a short time ago.
    JustStarted {
        /// The pods.
        pods: Vec<String>,
        /// The age of the oldest of them.
        age: SignedDuration,
    },
    /// Pods that are being deleted or have failed.
    Ended(Vec<String>),
    /// Pods whose containers have all ended without an error.
    Completed(Vec<String>),
    /// Pods without a sample for an unknown reason.
    WithoutSamples {
        /// The pods that are known.
        pods: Vec<String>,
        /// How many there are.
        number: usize,
    },
    /// Old samples.
    Stale {
        /// Age of the oldest at the decision.
        age: SignedDuration,
        /// Nodes whose kubelet does not answer.
        nodes: Vec<String>,
    },
    /// Pods without a sample made the calculation cautious.
    MissingCounted(usize),
    /// Unready pods made the calculation cautious.
    UnreadyCounted(usize),
}

/// The causes in decisions that were made.
pub(super) fn find(facts: &DiagnosisFacts<'_>) -> Vec<PodCause> {
    let mut found = Vec::new();
    for evaluation in &facts.decision.evaluations {
        let Ok(proposal) = &evaluation.result else { continue };
        let Arithmetic::PerPod(sum) = &proposal.sum else { continue };
        found.extend(stale(facts, sum.oldest));
        found.extend(cautious(facts.cluster, facts.decision.at, sum));
    }
    found
}

fn stale(facts: &DiagnosisFacts<'_>, oldest: Option<Timestamp>) -> Option<PodCause> {
    let age = facts.decision.at.duration_since(oldest?);
    (age > MAX_SAMPLE_AGE)
        .then(|| PodCause::Stale { age, nodes: facts.cluster.map(lost_nodes).unwrap_or_default() })
}

/// Names of the nodes that are not ready.
fn lost_nodes(cluster: &ClusterFacts) -> Vec<String> {
    cluster.nodes.iter().flatten().filter(|node| !node.ready).map(|node| node.name.clone()).collect()
}

/// Assumed values that kept the count.
fn cautious(cluster: Option<&ClusterFacts>, at: Timestamp, sum: &PerPodArithmetic) -> Vec<PodCause> {
    let Some(assumed) = &sum.assumed else { return Vec::new() };
    let is_held = sum.kept.is_some();
    let mut found = Vec::new();
    let flips = matches!(sum.kept, Some(NoChangeReason::DirectionFlips | NoChangeReason::CountFlips));
    if assumed.missing > 0 && (is_held || sum.ratio < 1.0) {
        found.push(PodCause::MissingCounted(usize::try_from(assumed.missing).unwrap_or_default()));
        found.extend(uncounted(cluster, at, sum.pods, &sum.uncounted));
    } else if assumed.unready > 0 && (is_held || flips) {
        found.push(PodCause::UnreadyCounted(usize::try_from(assumed.unready).unwrap_or_default()));
    }
    found
}

/// The cause of a failed metric, if it concerns pods.
pub(super) fn of_failure(
    facts: &DiagnosisFacts<'_>,
    cause: &FailureCause,
    counts: Option<PodCounts>,
    pods: &[UncountedPod],
    resource: &str,
) -> Vec<PodCause> {
    let selector = facts.decision.scale.as_ref().map_or("", |scale| scale.selector.as_str());
    vec![match cause {
        FailureCause::NoPods => PodCause::NoPods(selector.to_owned()),
        FailureCause::ContainerNotFound { container, pod, everywhere, existing } => {
            PodCause::ContainerNotFound {
                container: container.clone(),
                existing: match nearest(container, existing.iter().map(String::as_str)) {
                    Some(near) => vec![near.to_owned()],
                    None => existing.clone(),
                },
                pod: (!everywhere).then(|| pod.clone()),
            }
        }
        FailureCause::MissingRequest { resource, container, pod, base } => PodCause::MissingRequest {
            resource: resource.clone(),
            container: container.clone(),
            pod: pod.clone(),
            base: *base,
        },
        FailureCause::ZeroRequests => PodCause::ZeroRequests(resource.to_owned()),
        FailureCause::NoSamples => {
            return uncounted(facts.cluster, facts.decision.at, counts.unwrap_or_default(), pods);
        }
        _ => return Vec::new(),
    }]
}

/// Why pods are not counted, by reason; the reasons that can be acted on come first.
fn uncounted(
    cluster: Option<&ClusterFacts>,
    at: Timestamp,
    counts: PodCounts,
    pods: &[UncountedPod],
) -> Vec<PodCause> {
    let of = |wanted: &[UncountedReason]| {
        pods.iter().filter(|pod| wanted.contains(&pod.reason)).collect::<Vec<&UncountedPod>>()
    };
    let list = |pods: &[&UncountedPod]| pods.iter().map(|pod| pod.name.to_string()).collect::<Vec<_>>();
    let mut found = Vec::new();
    let lost = cluster.map(lost_nodes).unwrap_or_default();
    let node_of = |pod: &UncountedPod| {
        let known = cluster?.pods.as_ref()?.iter().find(|known| *known.name == *pod.name)?;
        known.node.clone()
    };
    let on_lost = |pod: &UncountedPod| node_of(pod).is_some_and(|node| lost.contains(&node));
    let (down, missing): (Vec<_>, Vec<_>) =
        of(&[UncountedReason::NoSample]).into_iter().partition(|pod| on_lost(pod));
    if !down.is_empty() {
        let mut nodes: Vec<String> = down.iter().filter_map(|pod| node_of(pod)).collect();
        nodes.sort();
        nodes.dedup();
        found.push(PodCause::KubeletDown { nodes, pods: list(&down) });
    }
    let age_of = |pod: &UncountedPod| pod.started.map(|started| at.duration_since(started));
    let is_young = |pod: &UncountedPod| age_of(pod).is_some_and(|age| age < FIRST_SAMPLE_DELAY);
    let (young, old): (Vec<_>, Vec<_>) = missing.into_iter().partition(|pod| is_young(pod));
    let completed = of(&[UncountedReason::Completed]);
    let recorded = old.len() + young.len() + down.len() + completed.len();
    let unnamed = usize::try_from(counts.missing).unwrap_or_default().saturating_sub(recorded);
    if old.len() + unnamed > 0 {
        found.push(PodCause::WithoutSamples { pods: list(&old), number: old.len() + unnamed });
    }
    if !completed.is_empty() {
        found.push(PodCause::Completed(list(&completed)));
    }
    let unready = of(&[UncountedReason::NotReady, UncountedReason::Pending]);
    if !unready.is_empty() {
        found.push(PodCause::NotReady(list(&unready)));
    } else if counts.unready > 0 && pods.is_empty() {
        found.push(PodCause::UnreadyCounted(usize::try_from(counts.unready).unwrap_or_default()));
    }
    let starting: Vec<&UncountedPod> = young.into_iter().chain(of(&[UncountedReason::Starting])).collect();
    if let Some(age) = starting.iter().filter_map(|pod| age_of(pod)).max() {
        found.push(PodCause::JustStarted { pods: list(&starting), age });
    }
    let ended = of(&[UncountedReason::Terminating, UncountedReason::Failed]);
    if found.is_empty() && !ended.is_empty() {
        found.push(PodCause::Ended(list(&ended)));
    }
    found
}

impl Described for PodCause {
    fn id(&self) -> &'static str {
        match self {
            Self::NoPods(_) => "no-pods",
            Self::ContainerNotFound { .. } => "container-not-found",
            Self::MissingRequest { base: UtilizationBase::Requests, .. } => "missing-request",
            Self::MissingRequest { base: UtilizationBase::Limits, .. } => "missing-limit",
            Self::ZeroRequests(_) => "zero-requests",
            Self::KubeletDown { .. } => "kubelet-down",
            Self::NotReady(_) => "pods-not-ready",
            Self::JustStarted { .. } => "pods-just-started",
            Self::Ended(_) => "pods-ended",
            Self::Completed(_) => "pods-completed",
            Self::WithoutSamples { .. } => "pods-without-samples",
            Self::Stale { .. } => "stale-samples",
            Self::MissingCounted(_) => "missing-samples-assumed",
            Self::UnreadyCounted(_) => "unready-pods-assumed",
        }
    }

    fn concern(&self) -> Concern {
        match self {
            Self::MissingCounted(_) | Self::UnreadyCounted(_) | Self::JustStarted { .. } => Concern::Limit,
            _ => Concern::Problem,
        }
    }

    fn sentence(&self) -> String {
        let list = |pods: &[String]| names(pods.iter().map(String::as_str));
        let noun = |base: UtilizationBase| match base {
            UtilizationBase::Requests => "request",
            UtilizationBase::Limits => "limit",
        };
        match self {
            Self::NoPods(selector) => format!("no pod matches the selector {selector}"),
            Self::ContainerNotFound { container, existing, pod } => {
                let what = match existing.as_slice() {
                    [near] => format!("nearest: {near}"),
                    several => format!("there are: {}", list(several)),
                };
                match pod {
                    None => format!("no pod has container {container} ({what})"),
                    Some(pod) => format!("pod {pod} has no container {container} ({what})"),
                }
            }
            Self::MissingRequest { resource, container: Some(container), pod, base } => {
                format!("container {container} of pod {pod} has no {resource} {}", noun(*base))
            }
            Self::MissingRequest { resource, container: None, pod, base } => {
                format!("pod {pod} has no pod-level {resource} {}", noun(*base))
            }
            Self::ZeroRequests(resource) => format!("the {resource} requests of all counted pods are zero"),
            Self::KubeletDown { nodes, pods } => format!(
                "{} without samples because the kubelet of node {} does not answer: {}",
                plural(pods.len(), "pod"),
                list(nodes),
                list(pods)
            ),
            Self::NotReady(pods) => format!("{} not ready: {}", are(pods.len()), list(pods)),
            Self::JustStarted { pods, age: since } => {
                format!(
                    "{} started less than {} ago: {}",
                    plural(pods.len(), "pod"),
                    age(*since + SECOND),
                    list(pods)
                )
            }
            Self::Ended(pods) => format!("{} terminating or failed: {}", are(pods.len()), list(pods)),
            Self::Completed(pods) => {
                let verb = if pods.len() == 1 { "has" } else { "have" };
                let it = if pods.len() == 1 { "it has" } else { "they have" };
                format!("{} {verb} completed, so {it} no samples: {}", plural(pods.len(), "pod"), list(pods))
            }
            Self::WithoutSamples { pods, number } if pods.is_empty() => {
                format!("{} without samples", are(*number))
            }
            Self::WithoutSamples { pods, number } => {
                format!("{} without samples: {}", are(*number), list(pods))
            }
            Self::Stale { age: since, nodes } if nodes.is_empty() => {
                format!("the oldest sample is {} old", age(*since))
            }
            Self::Stale { age: since, nodes } => format!(
                "the oldest sample is {} old because the kubelet of node {} does not answer",
                age(*since),
                list(nodes)
            ),
            Self::MissingCounted(number) => {
                format!("{} without samples: usage is assumed, to avoid a wrong change", are(*number))
            }
            Self::UnreadyCounted(number) => format!("{} not ready yet and counted as idle", are(*number)),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::NoPods(_) => "compare the labels of the target's pods with its selector; are there any pods?",
            Self::ContainerNotFound { .. } => "name a container that all pods of the target have in containerResource.container",
            Self::MissingRequest { base: UtilizationBase::Requests, .. } => {
                "set resources.requests of every container, sidecars included, or use a target of type AverageValue"
            }
            Self::MissingRequest { base: UtilizationBase::Limits, .. } => {
                "set resources.limits of every container, or use percentageOf: requests"
            }
            Self::ZeroRequests(_) => "set resources.requests above zero, or use a target of type AverageValue",
            Self::KubeletDown { .. } => "look at the node: kubectl describe node; `plimsoll metrics doctor` names the error of its kubelet",
            Self::NotReady(_) => "look at their events and readiness probes: kubectl describe pod",
            Self::JustStarted { .. } => "wait for one scrape after they are ready (usually a minute)",
            Self::Ended(_) => "look why no pod runs: kubectl get pods, and the events of the target",
            Self::Completed(_) => "give pods of Jobs other labels than spec.selector of the target has, or delete them",
            Self::WithoutSamples { .. } => "`plimsoll metrics doctor` names the cause by pod; `kubectl top pods` shows which have samples",
            Self::Stale { .. } => "`plimsoll metrics doctor` names nodes that are not scraped; look at them with kubectl describe node",
            Self::MissingCounted(_) => "`why --pods` lists them; the count follows usage again once all have samples",
            Self::UnreadyCounted(_) => "`why --pods` lists them; the count follows usage again once all are ready",
        }
        .to_owned()
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// `1 pod is`, `2 pods are`.
fn are(number: usize) -> String {
    format!("{} {}", plural(number, "pod"), if number == 1 { "is" } else { "are" })
}
