//! Causes that concern metrics which cannot be read.

use engine::FailureCause;
use engine::evaluate::MetricFailure;
use engine::explain::short_name;
use engine::failure::RequestFailure;
use engine::spec::{Metric, MetricSource};

use super::words::{names, quoted};
use super::{AccessCause, ClusterFacts, Concern, Described, DiagnosisFacts, pods};
use crate::yaml::nearest;

/// Similar names that a sentence offers.
const MAX_SIMILAR_NAMES: usize = 3;

/// A cause that concerns one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricCause {
    /// Short name of the metric.
    pub metric: String,
    /// API group that serves it.
    pub group: &'static str,
    /// What is wrong.
    pub fault: MetricFault,
}

/// What is wrong with a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricFault {
    /// No server is registered for the group.
    NotServed,
    /// The server behind the group is not available; its Service and the reason, where they are known.
    Unavailable(Option<String>),
    /// The metric does not exist; similar names.
    NotFound(Vec<String>),
    /// The response has no samples.
    NoItems(Vec<String>),
    /// The credentials are not accepted.
    Unauthorized,
    /// Too many requests.
    Overloaded,
    /// No response in time.
    Timeout,
    /// No connection, or a response that cannot be decoded; the error.
    Unreachable(String),
    /// Another error: code and text.
    Refused(u16, String),
    /// The samples are older than `maxAgeSeconds`, or of unknown age; both in seconds.
    TooOld {
        /// Their age, if it is known.
        age: Option<i64>,
        /// The largest accepted age.
        most: i64,
    },
    /// The kind of the described object is unknown.
    UnknownObjectKind(String),
    /// Target type and value do not fit.
    InvalidTarget,
    /// The label selector of the metric is invalid.
    InvalidSelector(String),
    /// The metric's type is unknown.
    UnknownType,
    /// The cause was not recorded; the text.
    Unknown(String),
}

/// The causes of all metrics that failed.
pub(super) fn find(facts: &DiagnosisFacts<'_>, add: &mut dyn FnMut(&dyn Described)) {
    for (evaluation, metric) in facts.decision.evaluations.iter().zip(&facts.spec.metrics) {
        let Err(failure) = &evaluation.result else { continue };
        let of_pods = match &failure.cause {
            Some(cause) => {
                let resource = short_name(metric);
                pods::of_failure(facts, cause, failure.pods, &failure.uncounted, &resource)
            }
            None => Vec::new(),
        };
        if !of_pods.is_empty() {
            for cause in &of_pods {
                add(cause);
            }
            continue;
        }
        if let Some(FailureCause::Request(RequestFailure::Forbidden(denied))) = &failure.cause {
            add(&AccessCause { denied: denied.clone(), subject: short_name(metric) });
            continue;
        }
        let fault = fault(facts.cluster, metric, failure);
        add(&MetricCause { metric: short_name(metric), group: group(metric), fault });
    }
}

fn group(metric: &Metric) -> &'static str {
    match &metric.source {
        MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } => "metrics.k8s.io",
        MetricSource::Pods(_) | MetricSource::Object { .. } => "custom.metrics.k8s.io",
        MetricSource::External(_) | MetricSource::Unknown(_) => "external.metrics.k8s.io",
    }
}

fn fault(cluster: Option<&ClusterFacts>, metric: &Metric, failure: &MetricFailure) -> MetricFault {
    let request = match &failure.cause {
        Some(FailureCause::Request(request)) => request,
        Some(FailureCause::InvalidTarget) => return MetricFault::InvalidTarget,
        Some(FailureCause::InvalidSelector) => return MetricFault::InvalidSelector(failure.text.clone()),
        Some(FailureCause::UnknownSourceType) => return MetricFault::UnknownType,
        _ => return MetricFault::Unknown(failure.text.clone()),
    };
    let group = group(metric);
    let service = cluster
        .and_then(|cluster| cluster.api_services.as_ref()?.iter().find(|service| service.group == group));
    let unavailable = || {
        MetricFault::Unavailable(service.filter(|service| !service.available).map(|service| {
            let name = service.service.as_deref().unwrap_or("its Service");
            format!("{name}: {} {}", service.reason, quoted(&service.message)).trim_end().to_owned()
        }))
    };
    let resource =
        matches!(metric.source, MetricSource::Resource { .. } | MetricSource::ContainerResource { .. });
    match request {
        RequestFailure::NotServed => MetricFault::NotServed,
        // A list of pods exists wherever its API does.
        RequestFailure::NotFound if resource => MetricFault::NotServed,
        RequestFailure::NotFound => MetricFault::NotFound(similar(cluster, group, &short_name(metric))),
        RequestFailure::NoItems => MetricFault::NoItems(similar(cluster, group, &short_name(metric))),
        RequestFailure::Unavailable => unavailable(),
        RequestFailure::Unauthorized => MetricFault::Unauthorized,
        RequestFailure::TooManyRequests => MetricFault::Overloaded,
        RequestFailure::Timeout => MetricFault::Timeout,
        RequestFailure::UnknownKind => {
            let kind = if let MetricSource::Object { kind, .. } = &metric.source {
                kind.clone()
            } else {
                String::new()
            };
            MetricFault::UnknownObjectKind(kind)
        }
        RequestFailure::TooOld { age, most } => MetricFault::TooOld { age: *age, most: *most },
        RequestFailure::Unreachable => MetricFault::Unreachable(quoted(&failure.text)),
        RequestFailure::Refused(code) => MetricFault::Refused(*code, quoted(&failure.text)),
        RequestFailure::Forbidden(_) => MetricFault::Refused(403, quoted(&failure.text)),
    }
}

/// Served names that resemble `name`; nothing if it is served itself.
fn similar(cluster: Option<&ClusterFacts>, group: &str, name: &str) -> Vec<String> {
    let Some(served) = cluster.and_then(|cluster| cluster.served.iter().find(|served| served.group == group))
    else {
        return Vec::new();
    };
    let mut left: Vec<&str> = served.names.iter().map(String::as_str).collect();
    left.sort_unstable();
    left.dedup();
    if left.contains(&name) {
        return Vec::new();
    }
    let mut found = Vec::new();
    while let Some(near) = nearest(name, left.iter().copied()).filter(|_| found.len() < MAX_SIMILAR_NAMES) {
        found.push(near.to_owned());
        left.retain(|one| *one != near);
    }
    found
}

impl Described for MetricCause {
    fn id(&self) -> &'static str {
        match &self.fault {
            MetricFault::NotServed => "metrics-api-not-served",
            MetricFault::Unavailable(_) => "metrics-api-unavailable",
            MetricFault::NotFound(_) => "metric-not-found",
            MetricFault::NoItems(_) => "metric-without-values",
            MetricFault::Unauthorized => "metrics-api-unauthorized",
            MetricFault::Overloaded => "metrics-api-overloaded",
            MetricFault::Timeout => "metrics-api-timeout",
            MetricFault::Unreachable(_) => "metrics-api-unreachable",
            MetricFault::Refused(..) => "metrics-api-error",
            MetricFault::TooOld { .. } => "stale-samples",
            MetricFault::UnknownObjectKind(_) => "object-kind-unknown",
            MetricFault::InvalidTarget => "metric-target-invalid",
            MetricFault::InvalidSelector(_) => "metric-selector-invalid",
            MetricFault::UnknownType => "metric-type-unknown",
            MetricFault::Unknown(_) => "metric-unreadable",
        }
    }

    fn concern(&self) -> Concern {
        Concern::Problem
    }

    fn sentence(&self) -> String {
        let Self { metric, group, fault } = self;
        let like = |similar: &[String]| match similar {
            [] => String::new(),
            similar => format!("; similar: {}", names(similar.iter().map(String::as_str))),
        };
        match fault {
            MetricFault::NotServed => format!("{metric} cannot be read: no server is registered for {group}"),
            MetricFault::Unavailable(None) => format!("{metric} cannot be read: {group} is not available"),
            MetricFault::Unavailable(Some(why)) => {
                format!("{metric} cannot be read: {group} is not available ({why})")
            }
            MetricFault::NotFound(similar) => format!("{group} does not serve {metric}{}", like(similar)),
            MetricFault::NoItems(similar) => format!("{group} has no values of {metric}{}", like(similar)),
            MetricFault::Unauthorized => {
                format!("{metric} cannot be read: {group} does not accept the credentials")
            }
            MetricFault::Overloaded => format!("{metric} cannot be read: {group} gets too many requests"),
            MetricFault::Timeout => format!("{metric} cannot be read: {group} did not answer in time"),
            MetricFault::Unreachable(why) => {
                format!("{metric} cannot be read: no usable answer from {group}: {why}")
            }
            MetricFault::Refused(code, why) => {
                format!("{metric} cannot be read: {group} answered {code}: {why}")
            }
            MetricFault::TooOld { age: Some(age), most } => {
                format!("the samples of {metric} are {age} s old, more than maxAgeSeconds: {most}")
            }
            MetricFault::TooOld { age: None, most } => {
                format!("the age of {metric} is not known, so maxAgeSeconds: {most} cannot be checked")
            }
            MetricFault::UnknownObjectKind(kind) => {
                format!("{metric} cannot be read: the cluster does not know the kind {kind}")
            }
            MetricFault::InvalidTarget => format!("the target of {metric} has no value for its type"),
            MetricFault::InvalidSelector(why) => {
                format!("the selector of {metric} is invalid: {}", quoted(why))
            }
            MetricFault::UnknownType => format!("the metric type {metric} is unknown"),
            MetricFault::Unknown(why) => format!("{metric} cannot be read: {}", quoted(why)),
        }
    }

    fn remedy(&self) -> String {
        let group = self.group;
        match &self.fault {
            MetricFault::NotServed => match group {
                "metrics.k8s.io" => "install a metrics server: kubectl apply -f deploy/metrics/".to_owned(),
                _ => format!("install a server of {group}: `plimsoll metrics` with rules, or KEDA's resources with `plimsoll operator`"),
            },
            MetricFault::Unavailable(_) => {
                format!("`plimsoll metrics doctor` says why; kubectl get apiservices shows the Service of {group}")
            }
            MetricFault::NotFound(similar) | MetricFault::NoItems(similar) if !similar.is_empty() => {
                "correct the name of the metric".to_owned()
            }
            MetricFault::NotFound(_) => {
                format!("check name, namespace and object of the metric: kubectl get --raw /apis/{group}")
            }
            MetricFault::NoItems(_) if group == "metrics.k8s.io" => {
                "wait until the pods have been scraped once; `kubectl top pods` shows which have samples".to_owned()
            }
            MetricFault::NoItems(_) => "check that the metric's selector matches series of this namespace".to_owned(),
            MetricFault::Unauthorized => "bind the adapter's service account to system:auth-delegator and extension-apiserver-authentication-reader".to_owned(),
            MetricFault::Overloaded => "give the adapter more resources, or raise the sync period".to_owned(),
            MetricFault::Timeout => "look at the adapter and the source behind it; `plimsoll metrics doctor` measures it".to_owned(),
            MetricFault::Unreachable(_) | MetricFault::Refused(..) => {
                format!("look at the log of the server of {group}; `plimsoll metrics doctor` names it")
            }
            MetricFault::TooOld { .. } => {
                format!("look why {group} has no newer samples (`plimsoll metrics doctor`), or raise maxAgeSeconds")
            }
            MetricFault::UnknownObjectKind(_) => "correct describedObject.apiVersion and kind".to_owned(),
            MetricFault::InvalidTarget => "set target.type together with the field it names".to_owned(),
            MetricFault::InvalidSelector(_) => "correct metric.selector".to_owned(),
            MetricFault::UnknownType => "use Resource, ContainerResource, Pods, Object or External".to_owned(),
            MetricFault::Unknown(_) => format!("check that {group} serves it: `plimsoll metrics doctor`"),
        }
    }
}
