//! What is likely wrong with an autoscaler and its target, without a cluster.

use std::collections::BTreeMap;

use api::pod::{Container, PodSpec};
use api::yaml::nearest;
use engine::Spec;
use engine::spec::{MetricSource, MetricTarget, SelectPolicy, UtilizationBase};
use quantity::Quantity;
use serde::Serialize;

/// The tolerance of a controller without `--horizontal-pod-autoscaler-tolerance`.
const DEFAULT_TOLERANCE: f64 = 0.1;

/// An autoscaler.
#[derive(Clone, Debug)]
pub(super) struct LintAutoscaler {
    /// `hpa/web`.
    pub(super) name: String,
    pub(super) namespace: String,
    /// `file:line`; empty on a cluster.
    pub(super) place: String,
    pub(super) spec: Spec,
    /// Whether it writes: a dry run and other modes do not.
    pub(super) acts: bool,
    /// Whether another listed object generated it.
    pub(super) generated: bool,
}

/// The target of an autoscaler.
#[derive(Clone, Debug)]
pub(super) struct LintTarget {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) pod: PodSpec,
    /// The usage of a container without work, by container and resource, where it is known.
    pub(super) idle: BTreeMap<(String, String), Quantity>,
}

/// A likely mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LintFinding {
    pub(super) autoscaler: String,
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) place: String,
    /// The rule, for programs.
    pub(super) rule: &'static str,
    /// The field of the autoscaler that it is about.
    pub(super) field: String,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// A percentage of requests or limits that a metric aims at.
struct UtilizationTarget<'a> {
    target: &'a LintTarget,
    field: &'a str,
    resource: &'a str,
    percent: i32,
    measured: &'a [&'a Container],
    /// The sum of requests or limits.
    base: f64,
}

/// Collects the findings of one autoscaler.
struct AutoscalerCheck<'a> {
    autoscaler: &'a LintAutoscaler,
    found: Vec<LintFinding>,
}

impl LintTarget {
    fn is_of(&self, autoscaler: &LintAutoscaler) -> bool {
        let target = &autoscaler.spec.target;
        (&self.kind, &self.name, &self.namespace) == (&target.kind, &target.name, &autoscaler.namespace)
    }
}

/// The findings about all autoscalers, and the targets that are not known.
pub(super) fn lint(
    autoscalers: &[LintAutoscaler],
    targets: &[LintTarget],
) -> (Vec<LintFinding>, Vec<String>) {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for autoscaler in autoscalers {
        let mut check = AutoscalerCheck { autoscaler, found: Vec::new() };
        check.sharing(autoscalers);
        check.behavior();
        match targets.iter().find(|target| target.is_of(autoscaler)) {
            Some(target) => check.metrics(target),
            None => {
                let (name, target) = (&autoscaler.name, &autoscaler.spec.target);
                unknown.push(format!(
                    "{name}: {}/{} is not known, so it was not compared",
                    target.kind, target.name
                ));
            }
        }
        found.extend(check.found);
    }
    (found, unknown)
}

impl AutoscalerCheck<'_> {
    fn add_finding(&mut self, rule: &'static str, field: &str, message: String, remedy: &str) {
        self.found.push(LintFinding {
            autoscaler: self.autoscaler.name.clone(),
            namespace: self.autoscaler.namespace.clone(),
            place: self.autoscaler.place.clone(),
            rule,
            field: field.to_owned(),
            message,
            remedy: remedy.to_owned(),
        });
    }

    /// Two autoscalers that write to one target.
    fn sharing(&mut self, all: &[LintAutoscaler]) {
        let this = self.autoscaler;
        let same = |other: &&LintAutoscaler| {
            let is_self = (&other.name, &other.namespace) == (&this.name, &this.namespace);
            let target = other.spec.target == this.spec.target && other.namespace == this.namespace;
            !is_self && target && other.acts && !other.generated
        };
        if !this.acts || this.generated {
            return;
        }
        let others: Vec<&str> = all.iter().filter(same).map(|other| other.name.as_str()).collect();
        if !others.is_empty() {
            let target = &this.spec.target;
            let message = format!(
                "{} scales {}/{} too; none of them will act",
                others.join(", "),
                target.kind,
                target.name
            );
            self.add_finding(
                "TwoAutoscalers",
                "spec.scaleTargetRef",
                message,
                "delete all but one, or put their metrics into one object; plimsoll.dev/mode: dry-run is allowed beside another",
            );
        }
    }

    /// Settings with which nothing can ever change.
    fn behavior(&mut self) {
        let spec = &self.autoscaler.spec;
        if spec.min == spec.max {
            let message =
                format!("minReplicas and maxReplicas are both {}: the count never changes", spec.max);
            self.add_finding(
                "NeverActs",
                "spec.maxReplicas",
                message,
                "raise maxReplicas, or delete the autoscaler",
            );
        }
        let Some(behavior) = &spec.behavior else { return };
        let (up, down) = (&behavior.up, &behavior.down);
        let disabled = |rules: &engine::spec::ScalingRules| rules.select == SelectPolicy::Disabled;
        if disabled(up) && disabled(down) {
            let message = "selectPolicy is Disabled for both directions: the count never changes";
            self.add_finding("NeverActs", "spec.behavior", message.to_owned(), "leave one direction enabled");
        } else if disabled(up) {
            let message = "scaleUp.selectPolicy is Disabled: after a scale-down the count never rises again";
            self.add_finding(
                "NeverActs",
                "spec.behavior.scaleUp",
                message.to_owned(),
                "limit scaleUp by policies instead",
            );
        }
        if down.tolerance.is_some_and(|tolerance| tolerance >= 1.0) && !disabled(down) {
            let message =
                "scaleDown.tolerance is 1 or more: no metric is ever so low, so the count never falls";
            self.add_finding(
                "NeverActs",
                "spec.behavior.scaleDown.tolerance",
                message.to_owned(),
                "use a value such as 0.1",
            );
        }
    }

    fn metrics(&mut self, target: &LintTarget) {
        for (index, metric) in self.autoscaler.spec.metrics.iter().enumerate() {
            match &metric.source {
                MetricSource::Resource { name, of } => {
                    let field = format!("spec.metrics[{index}].resource");
                    self.resource(target, &field, (name.as_str(), *of), None, metric.target);
                }
                MetricSource::ContainerResource { name, container, of } => {
                    let field = format!("spec.metrics[{index}].containerResource");
                    self.resource(
                        target,
                        &field,
                        (name.as_str(), *of),
                        Some(container.as_str()),
                        metric.target,
                    );
                }
                _ => {}
            }
        }
    }

    fn resource(
        &mut self,
        target: &LintTarget,
        field: &str,
        (resource, of): (&str, UtilizationBase),
        container: Option<&str>,
        metric_target: MetricTarget,
    ) {
        let containers = running(&target.pod);
        let measured: Vec<&Container> = match container {
            None => containers.clone(),
            Some(name) => {
                let found: Vec<&Container> = containers.iter().copied().filter(|c| c.name == name).collect();
                if found.is_empty() {
                    self.unknown_container(target, field, name, &containers);
                    return;
                }
                found
            }
        };
        let MetricTarget::Utilization(percent) = metric_target else { return };
        let Some(base) = self.base(target, field, (resource, of), container, &measured) else { return };
        if base <= 0.0 {
            return;
        }
        let utilization = UtilizationTarget { target, field, resource, percent, measured: &measured, base };
        self.idle(&utilization);
        if of == UtilizationBase::Requests {
            self.ceiling(&utilization);
        }
    }

    fn unknown_container(&mut self, target: &LintTarget, field: &str, name: &str, containers: &[&Container]) {
        let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let message = format!("the pods of {}/{} have no container {name}", target.kind, target.name);
        let remedy = match near {
            Some(near) => format!("did you mean {near}? There are: {}", names.join(", ")),
            None => format!("there are: {}", names.join(", ")),
        };
        self.add_finding("UnknownContainer", &format!("{field}.container"), message, &remedy);
    }

    /// The sum of requests or limits of which a percentage is taken; none if a container has none.
    fn base(
        &mut self,
        target: &LintTarget,
        field: &str,
        (resource, of): (&str, UtilizationBase),
        container: Option<&str>,
        measured: &[&Container],
    ) -> Option<f64> {
        let (rule, word) = match of {
            UtilizationBase::Requests => ("MissingRequest", "request"),
            UtilizationBase::Limits => ("MissingLimit", "limit"),
        };
        let pick = |resources: &api::pod::ResourceRequirements| {
            let all = match of {
                UtilizationBase::Requests => &resources.requests,
                UtilizationBase::Limits => &resources.limits,
            };
            // A container with a limit and no request gets a request of the same size.
            let other = (of == UtilizationBase::Requests).then_some(&resources.limits);
            all.get(resource).or_else(|| other.and_then(|limits| limits.get(resource))).map(milli)
        };
        // Requests and limits of the pod as a whole take precedence.
        if container.is_none()
            && let Some(whole) = pick(&target.pod.resources)
        {
            return Some(whole);
        }
        let missing: Vec<&str> = measured
            .iter()
            .filter(|container| pick(&container.resources).is_none())
            .map(|container| container.name.as_str())
            .collect();
        if missing.is_empty() {
            return Some(measured.iter().filter_map(|container| pick(&container.resources)).sum());
        }
        let which = if missing.len() == 1 { "container" } else { "containers" };
        let message = format!(
            "{which} {} of {}/{} without {resource} {word}: a percentage of it cannot be computed, and this metric fails",
            missing.join(", "),
            target.kind,
            target.name
        );
        let remedy = match (of, container) {
            (UtilizationBase::Requests, None) => {
                format!(
                    "give every container a {resource} request, or use ContainerResource or a target of type AverageValue"
                )
            }
            (UtilizationBase::Requests, Some(_)) => {
                format!("give it a {resource} request, or use a target of type AverageValue")
            }
            (UtilizationBase::Limits, _) => {
                format!("give every container a {resource} limit, or leave percentageOf out")
            }
        };
        self.add_finding(rule, field, message, &remedy);
        None
    }

    /// A target that the pods exceed without work: every new pod causes another one.
    fn idle(&mut self, utilization: &UtilizationTarget<'_>) {
        let UtilizationTarget { target, field, resource, percent, measured, base } = *utilization;
        let usage = |container: &&Container| {
            target.idle.get(&(container.name.clone(), resource.to_owned())).map(milli)
        };
        let known: Vec<f64> = measured.iter().filter_map(usage).collect();
        let idle = known.iter().sum::<f64>() / base * 100.0;
        if !known.is_empty() && idle >= f64::from(percent) {
            let message = format!(
                "the pods use {idle:.0} % of {resource} without work, and the target is {percent} %: the count rises to maxReplicas"
            );
            self.add_finding(
                "TargetBelowIdle",
                &format!("{field}.target"),
                message,
                "raise the target, or the requests",
            );
        }
    }

    /// A target that no pod can exceed because its limit is too low: the count never rises.
    fn ceiling(&mut self, utilization: &UtilizationTarget<'_>) {
        let UtilizationTarget { target, field, resource, percent, measured, base } = *utilization;
        let limits: Option<Vec<f64>> =
            measured.iter().map(|container| container.resources.limits.get(resource).map(milli)).collect();
        let Some(limits) = limits.filter(|_| resource == "cpu") else { return };
        let most = limits.iter().sum::<f64>() / base * 100.0;
        let up = self.autoscaler.spec.behavior.as_ref().and_then(|behavior| behavior.up.tolerance);
        let needed = f64::from(percent) * (1.0 + up.unwrap_or(DEFAULT_TOLERANCE));
        if most <= needed {
            let message = format!(
                "the cpu limit of {}/{} is {most:.0} % of its request, and the count rises above {needed:.0} %: never",
                target.kind, target.name
            );
            self.add_finding(
                "NeverActs",
                &format!("{field}.target"),
                message,
                "lower the target, or raise the limit",
            );
        }
    }
}

/// The containers that run as long as the pod: regular ones, and init containers that restart.
fn running(pod: &PodSpec) -> Vec<&Container> {
    let sidecars = pod.init_containers.iter().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    pod.containers.iter().chain(sidecars).collect()
}

fn milli(quantity: &Quantity) -> f64 {
    quantity.milli_value() as f64
}
