//! Explains each metric: its value, the ratio and the proposed count.

use super::words::{amount, plural, ratio, short_name, trimmed};
use super::{Decider, Rows, decider, provenance};
use crate::decision::Decision;
use crate::evaluate::{
    Arithmetic, AssumedUsage, NoChangeReason, PerPodArithmetic, PerReplicaArithmetic, Proposal,
    TotalArithmetic,
};
use crate::spec::{Metric, MetricSource, Spec, UtilizationBase};
use crate::units::{MilliValue, Replicas};

pub(super) fn rows(rows: &mut Rows, spec: &Spec, decision: &Decision) {
    let winner = decision.recommendation.as_ref().and_then(|r| r.winner);
    let deciding = decider(decision) == Decider::Metric;
    if decision.evaluations.is_empty() {
        // The selector was invalid, so no metric was evaluated.
        let why = decision.error.as_ref().map(|e| e.text.clone()).unwrap_or_default();
        rows.push("selector", why, true);
        return;
    }
    let first_failure = decision.evaluations.iter().position(|e| e.result.is_err());
    for (index, (evaluation, metric)) in decision.evaluations.iter().zip(&spec.metrics).enumerate() {
        let name = short_name(metric);
        match &evaluation.result {
            Ok(proposal) => {
                let decided = deciding && winner == Some(index);
                MetricRows { rows, name: &name, metric, decision, decided }.explain(proposal);
            }
            Err(failure) => {
                let decided = deciding && winner.is_none() && first_failure == Some(index);
                rows.push(&name, failure.text.clone(), decided);
            }
        }
        provenance::rows(rows, &name, metric, decision, index);
    }
}

/// Writes the rows of one metric.
struct MetricRows<'a> {
    rows: &'a mut Rows,
    name: &'a str,
    metric: &'a Metric,
    decision: &'a Decision,
    decided: bool,
}

impl MetricRows<'_> {
    fn explain(&mut self, proposal: &Proposal) {
        match &proposal.sum {
            Arithmetic::PerPod(sum) => self.per_pod(sum, proposal.replicas),
            Arithmetic::Total(sum) => self.total(sum, proposal.replicas),
            Arithmetic::PerReplica(sum) => self.per_replica(sum, proposal.replicas),
        }
    }

    fn row(&mut self, text: String, decided: bool) {
        self.rows.push(self.name, text, decided && self.decided);
    }

    fn amount(&self, value: MilliValue) -> String {
        amount(self.metric, value)
    }

    /// Formats an average or its target, which [`PerPodArithmetic`] holds as plain numbers.
    fn milli(&self, thousandths: i64) -> String {
        self.amount(MilliValue::new(thousandths))
    }

    fn per_pod(&mut self, sum: &PerPodArithmetic, replicas: Replicas) {
        match sum.requests {
            Some(requests) => {
                let text = self.utilization(sum.usage, requests, sum.found);
                self.row(format!("{text}, target {} %", sum.target), false);
                self.compare(
                    &sum.found.to_string(),
                    &sum.target.to_string(),
                    sum.ratio,
                    sum.kept,
                    sum.assumed.is_none(),
                );
            }
            None => {
                let over = sum.pods.ready + sum.pods.stray;
                let (usage, found, target) =
                    (self.amount(sum.usage), self.milli(sum.found), self.milli(sum.target));
                self.row(
                    format!("{usage} over {} = {found} each, target {target}", plural(over, "pod")),
                    false,
                );
                self.compare(&found, &target, sum.ratio, sum.kept, sum.assumed.is_none());
            }
        }
        let mut multiplied = sum.ratio;
        if let Some(assumed) = &sum.assumed {
            self.assumed(sum, assumed);
            multiplied = assumed.ratio;
        }
        if sum.kept.is_none() {
            self.rounded(multiplied, sum.count, "pod", replicas);
        }
    }

    /// `610m used of 200m requested = 305 %`, with the rounding where it matters.
    fn utilization(&self, usage: MilliValue, requests: MilliValue, percent: i64) -> String {
        let exact = usage.as_f64() * 100.0 / requests.as_f64();
        let noun = match &self.metric.source {
            MetricSource::Resource { of: UtilizationBase::Limits, .. }
            | MetricSource::ContainerResource { of: UtilizationBase::Limits, .. } => "allowed",
            _ => "requested",
        };
        let text = format!("{} used of {} {noun}", self.amount(usage), self.amount(requests));
        if (exact - percent as f64).abs() < 0.005 {
            format!("{text} = {percent} %")
        } else {
            format!("{text} = {} %, cut to {percent} %", trimmed(exact, 2, 1))
        }
    }

    /// The second calculation, with assumed values for pods without a sample and unready pods.
    fn assumed(&mut self, sum: &PerPodArithmetic, assumed: &AssumedUsage) {
        if assumed.missing > 0 {
            let value = self.amount(assumed.missing_usage);
            let pods = plural(assumed.missing, "pod");
            let text = if sum.ratio < 1.0 {
                format!(
                    "{pods} without metrics: counted as fully used ({value} together), to avoid a wrong scale-down"
                )
            } else {
                format!("{pods} without metrics: counted as idle, to avoid a wrong scale-up")
            };
            self.row(text, false);
        }
        if assumed.unready > 0 {
            self.row(format!("{} not yet ready: counted as idle", plural(assumed.unready, "pod")), false);
        }
        match assumed.requests {
            Some(requests) => {
                let text = self.utilization(assumed.usage, requests, assumed.found);
                self.row(format!("with these {text}"), false);
                self.compare(
                    &assumed.found.to_string(),
                    &sum.target.to_string(),
                    assumed.ratio,
                    sum.kept,
                    true,
                );
            }
            None => {
                let (found, target) = (self.milli(assumed.found), self.milli(sum.target));
                self.row(format!("with these {found} each"), false);
                self.compare(&found, &target, assumed.ratio, sum.kept, true);
            }
        }
    }

    fn total(&mut self, sum: &TotalArithmetic, replicas: Replicas) {
        let (usage, target) = (self.amount(sum.usage), self.amount(sum.target));
        self.row(format!("{usage}, target {target}"), false);
        if self.decision.current() == 0 {
            self.row(
                format!("{usage} ÷ {target} = {}; from zero, rounded up: {replicas}", ratio(sum.ratio)),
                true,
            );
            return;
        }
        self.compare(&usage, &target, sum.ratio, sum.kept, true);
        if let Some(ready) = sum.ready {
            self.rounded(sum.ratio, ready, "ready pod", replicas);
        }
    }

    fn per_replica(&mut self, sum: &PerReplicaArithmetic, replicas: Replicas) {
        let (usage, target) = (self.amount(sum.usage), self.amount(sum.target));
        match sum.ratio {
            None => self.row(format!("{usage}, target {target} per replica, no replicas exist"), false),
            Some(found) => {
                let there = plural(i64::from(sum.replicas.get()), "replica");
                let each = trimmed(sum.usage.as_f64() / 1000.0 / f64::from(sum.replicas.get()), 3, 0);
                let each = each.trim_end_matches('.');
                self.row(format!("{usage} over {there} = {each} each, target {target}"), false);
                self.compare(each, &target, found, sum.kept, true);
            }
        }
        if sum.kept.is_none() {
            let exact = sum.usage.as_f64() / sum.target.as_f64();
            self.row(format!("{usage} ÷ {target} = {}, rounded up: {replicas}", ratio(exact)), true);
        }
    }

    /// The ratio and whether it is within tolerance.
    fn compare(&mut self, found: &str, target: &str, value: f64, kept: Option<NoChangeReason>, last: bool) {
        let tolerances = self.decision.tolerances;
        let band =
            format!("{} … {}", trimmed(1.0 - tolerances.down, 4, 2), trimmed(1.0 + tolerances.up, 4, 2));
        let sum = format!("{found} ÷ {target} = {}", ratio(value));
        let current = self.decision.current();
        let text = match kept {
            _ if !last => sum,
            Some(NoChangeReason::WithinTolerance) => {
                format!("{sum}, inside {band}: close enough, {current} stays")
            }
            Some(NoChangeReason::DirectionFlips) => {
                format!("{sum}, on the other side of 1: too uncertain, {current} stays")
            }
            Some(NoChangeReason::CountFlips) => {
                format!("{sum}, but the count would move the other way: {current} stays")
            }
            None => format!("{sum}, outside {band}, so it counts"),
        };
        self.row(text, kept.is_some() && last);
    }

    fn rounded(&mut self, value: f64, count: i64, noun: &str, replicas: Replicas) {
        let product = value * count as f64;
        let text = format!(
            "{} × {} = {}, rounded up: {replicas}",
            ratio(value),
            plural(count, noun),
            ratio(product)
        );
        self.row(text, true);
    }
}
