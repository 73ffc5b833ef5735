//! What if: recorded decisions replayed with other fields.

use std::sync::Arc;

use api::decisions::DecisionRecord;
use engine::spec::{Behavior, MetricTarget, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy};
use engine::{ControllerConfig, Spec};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sim::recording::{MetricTrack, MetricUnit};
use sim::replay::{RecordedPass, ReplayTotals, ReplayedPass, replay, totals};
use web_console::ApiError;

use super::manifest;
use super::path::{ObjectPath, failed};
use super::readings::{self, seconds};
use crate::live::ClusterClient;
use crate::live::decisions::MissingDecision;

/// The period of policies that the form shows.
const POLICY_PERIOD: SignedDuration = SignedDuration::from_secs(15);
/// Passes that are replayed; of a longer history, the latest.
const MAX_PASSES: usize = 5000;
/// The highest count that is replayed: each modelled pod is looked at in each pass.
const MAX_REPLICAS: i32 = 10_000;

/// The fields of the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhatIfFields {
    min: i32,
    max: i32,
    metrics: Vec<MetricField>,
    up_window: i64,
    down_window: i64,
    up_percent: Option<f64>,
    up_pods: Option<f64>,
    down_percent: Option<f64>,
    down_pods: Option<f64>,
}

/// A metric of the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MetricField {
    name: String,
    target: f64,
    unit: String,
}

impl WhatIfFields {
    /// The fields of a spec; none if a metric has no target.
    pub(super) fn of(spec: &Spec) -> Option<Self> {
        let metric = |metric: &engine::spec::Metric| {
            let MetricTrack { label, unit, target } = MetricTrack::of(metric);
            let unit = if unit == MetricUnit::Percent { "%" } else { "" };
            Some(MetricField { name: label, target: target?, unit: unit.to_owned() })
        };
        let (up, down) = rules_of(spec);
        let (up, down) = (&up, &down);
        let policy = |rules: &ScalingRules, kind: ScalingPolicyType| {
            let found =
                rules.policies.iter().find(|policy| policy.kind == kind && policy.period == POLICY_PERIOD);
            found.map(|policy| f64::from(policy.value))
        };
        let window =
            |rules: &ScalingRules, default: i64| rules.window.map_or(default, |window| window.as_secs());
        Some(Self {
            min: spec.min.get(),
            max: spec.max.get(),
            metrics: spec.metrics.iter().map(metric).collect::<Option<_>>()?,
            up_window: window(up, 0),
            down_window: window(down, ControllerConfig::default().downscale_stabilization.as_secs()),
            up_percent: policy(up, ScalingPolicyType::Percent),
            up_pods: policy(up, ScalingPolicyType::Pods),
            down_percent: policy(down, ScalingPolicyType::Percent),
            down_pods: policy(down, ScalingPolicyType::Pods),
        })
    }

    /// Refuses what the API server would refuse.
    fn check(&self) -> Result<(), ApiError> {
        let bad = |text: &str| Err(ApiError::new(400, text));
        let policies = [self.up_percent, self.up_pods, self.down_percent, self.down_pods];
        if self.max < 1 || self.max > MAX_REPLICAS || self.min < 0 || self.min > self.max {
            return bad("min and max: 0 ≤ min ≤ max, and max between 1 and 10,000");
        }
        if self.metrics.iter().any(|metric| !metric.target.is_finite() || metric.target <= 0.0) {
            return bad("a target must be more than zero");
        }
        if [self.up_window, self.down_window].iter().any(|window| !(0..=3600).contains(window)) {
            return bad("a stabilization window is between 0 and 3600 seconds");
        }
        if policies.iter().flatten().any(|value| !(1.0..=1e6).contains(value)) {
            return bad("a policy allows at least 1");
        }
        Ok(())
    }

    /// The spec with these fields. What was not changed stays as it is.
    fn apply(&self, spec: &Spec, before: &Self) -> Spec {
        let mut spec = Spec { min: self.min.into(), max: self.max.into(), ..spec.clone() };
        for ((metric, new), old) in spec.metrics.iter_mut().zip(&self.metrics).zip(&before.metrics) {
            if new.target == old.target {
                continue;
            }
            let milli = ((new.target * 1000.0).round() as i64).into();
            metric.goal = match metric.goal {
                MetricTarget::Utilization(_) => MetricTarget::Utilization(new.target.round() as i32),
                MetricTarget::AverageValue(_) => MetricTarget::AverageValue(milli),
                MetricTarget::Value(_) => MetricTarget::Value(milli),
                MetricTarget::Missing => MetricTarget::Missing,
            };
        }
        if self.up_rules() != before.up_rules() || self.down_rules() != before.down_rules() {
            let (up, down) = rules_of(&spec);
            spec.behavior = Some(Behavior {
                up: changed(up, self.up_rules(), before.up_rules()),
                down: changed(down, self.down_rules(), before.down_rules()),
            });
        }
        spec
    }

    fn up_rules(&self) -> RuleFields {
        (self.up_window, self.up_percent, self.up_pods)
    }

    fn down_rules(&self) -> RuleFields {
        (self.down_window, self.down_percent, self.down_pods)
    }
}

/// Window in seconds, percent and pods of one direction.
type RuleFields = (i64, Option<f64>, Option<f64>);

/// The rules of both directions.
fn rules_of(spec: &Spec) -> (ScalingRules, ScalingRules) {
    match &spec.behavior {
        Some(behavior) => (behavior.up.clone(), behavior.down.clone()),
        None => (default_rules(true), default_rules(false)),
    }
}

/// What Kubernetes applies to a behavior that does not say otherwise.
fn default_rules(is_up: bool) -> ScalingRules {
    let policy = |kind, value| ScalingPolicy { kind, value, period: POLICY_PERIOD };
    let mut policies = vec![policy(ScalingPolicyType::Percent, 100)];
    policies.extend(is_up.then(|| policy(ScalingPolicyType::Pods, 4)));
    let window = is_up.then_some(SignedDuration::ZERO);
    ScalingRules { window, select: SelectPolicy::Max, policies, tolerance: None }
}

/// The rules of one direction with the changed fields.
fn changed(mut rules: ScalingRules, now: RuleFields, before: RuleFields) -> ScalingRules {
    if now.0 != before.0 {
        rules.window = Some(SignedDuration::from_secs(now.0));
    }
    if (now.1, now.2) != (before.1, before.2) {
        let policy = |kind, value: Option<f64>| {
            value.map(|value| ScalingPolicy { kind, value: value.round() as i32, period: POLICY_PERIOD })
        };
        let own = [policy(ScalingPolicyType::Percent, now.1), policy(ScalingPolicyType::Pods, now.2)];
        rules.policies = own.into_iter().flatten().collect();
        // Kubernetes wants a policy, or none at all in that direction.
        if rules.policies.is_empty() {
            rules.select = SelectPolicy::Disabled;
        }
    }
    rules
}

/// Replays the recorded decisions with the fields of a request.
pub(super) async fn what_if(
    site: &ClusterClient,
    path: &ObjectPath<'_>,
    body: Value,
) -> Result<Value, ApiError> {
    let fields: WhatIfFields =
        serde_json::from_value(body).map_err(|error| ApiError::new(400, error.to_string()))?;
    fields.check()?;
    let named = Some(path.autoscaler()?).filter(|named| !named.kind.has_triggers());
    let named = named.ok_or_else(|| ApiError::new(400, "only HPAs and Autoscalers can be replayed"))?;
    let records = match site.decisions_of(path.namespace, &named).await {
        Ok(records) => records,
        Err(MissingDecision::NoRecord) => return Err(ApiError::new(404, "no decision is recorded yet")),
        Err(MissingDecision::Unavailable(why)) => {
            return Err(ApiError::new(503, format!("{}; remedy: {}", why.cause, why.remedy)));
        }
    };
    let object = site.object(path.namespace, &named).await.map_err(|trouble| failed(&trouble))?;
    let mut found = answer(&records, &fields, &object.raw)?;
    if site.recording().is_some()
        && let Some(Value::String(patch)) = found.get_mut("patch")
    {
        patch
            .insert_str(0, "# Lists are rebuilt from recorded decisions: compare them with your manifest.\n");
    }
    Ok(found)
}

/// Before and after, and the patch.
fn answer(records: &[DecisionRecord], fields: &WhatIfFields, raw: &Value) -> Result<Value, ApiError> {
    let spec = records.last().map(|record| record.spec.clone()).unwrap_or_default();
    let before = WhatIfFields::of(&spec).ok_or_else(|| ApiError::new(400, "a metric has no target"))?;
    let passes = passes(records, &spec);
    if passes.len() < 2 {
        return Err(ApiError::new(
            404,
            "two passes are needed for that, and fewer are recorded yet; it is tried again",
        ));
    }
    let config: Arc<ControllerConfig> = Arc::default();
    let new = fields.apply(&spec, &before);
    let patch = patch(raw, &spec, &new);
    let run = |spec: Spec| replay(&Arc::new(spec), &config, &passes);
    let (old_run, new_run) = (run(spec), run(new));
    let points = old_run.iter().zip(&new_run);
    let points =
        points.map(|(old, new)| json!({"t": seconds(old.at), "before": old.replicas, "after": new.replicas}));
    let shown = |run: &[ReplayedPass]| {
        let ReplayTotals { pod_hours, above_target, changes, worst_reaction, peak } = totals(&config, run);
        json!({"podHours": pod_hours, "aboveTargetSeconds": above_target.as_secs(), "changes": changes,
            "worstReactionSeconds": worst_reaction.map(|time| time.as_secs()), "peak": peak})
    };
    Ok(json!({
        "points": points.collect::<Vec<Value>>(),
        "before": shown(&old_run),
        "after": shown(&new_run),
        "patch": patch,
        "recorded": ["times", "metric values", "the first count"],
        "modelled": ["metric values at other counts: the same demand, shared evenly", "new pods are ready at once",
            "before: the same model with the present fields"],
    }))
}

/// The recorded passes; a decision that was repeated is one pass per period.
fn passes(records: &[DecisionRecord], spec: &Spec) -> Vec<RecordedPass> {
    let mut passes = Vec::new();
    for record in records.iter().filter(|record| record.decision.scale.is_some()) {
        // Values of other metrics, before the spec was changed, cannot be compared.
        if record.spec.metrics.len() != spec.metrics.len() {
            continue;
        }
        let values: Vec<Option<f64>> =
            readings::of_record(record).into_iter().map(|reading| reading.value).collect();
        let mut at = record.first;
        let step = record.period.max(SignedDuration::from_secs(1));
        for _ in 0..record.times.clamp(1, MAX_PASSES as u64) {
            passes.push(RecordedPass {
                at,
                replicas: record.decision.current().get(),
                values: values.clone(),
            });
            at = at.checked_add(step).unwrap_or(record.last).min(record.last);
        }
    }
    passes.dedup_by_key(|pass| pass.at);
    let long = passes.len().saturating_sub(MAX_PASSES);
    passes.drain(..long);
    passes
}

/// A merge patch of the object with what differs. Lists are replaced as a whole, so metrics are those of the object.
fn patch(raw: &Value, before: &Spec, after: &Spec) -> String {
    let mut spec = Map::new();
    if before.min != after.min {
        spec.insert("minReplicas".into(), json!(after.min.get()));
    }
    if before.max != after.max {
        spec.insert("maxReplicas".into(), json!(after.max.get()));
    }
    if before.metrics != after.metrics {
        let mut metrics = raw.pointer("/spec/metrics").cloned().unwrap_or_default();
        let goals = after.metrics.iter().map(|metric| metric.goal);
        for (metric, goal) in metrics.as_array_mut().into_iter().flatten().zip(goals) {
            set_target(metric, goal);
        }
        spec.insert("metrics".into(), metrics);
    }
    if let Some(behavior) = after.behavior.as_ref().filter(|after| before.behavior.as_ref() != Some(*after)) {
        spec.insert("behavior".into(), manifest::behavior(behavior));
    }
    if spec.is_empty() {
        "# nothing is changed\n".to_owned()
    } else {
        api::yaml::to_yaml(&json!({"spec": spec}))
    }
}

fn set_target(metric: &mut Value, goal: MetricTarget) {
    let Some(sources) = metric.as_object_mut() else { return };
    let Some((field, value)) = manifest::target_value(goal) else { return };
    for target in sources.values_mut().filter_map(|source| source.get_mut("target")?.as_object_mut()) {
        target.insert(field.into(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{at, hpa, record_of};

    /// Four replicas at their target, for ten passes.
    fn records() -> Vec<DecisionRecord> {
        let mut calm = record_of("web", "2026-01-05T09:15:00Z", 4, &[100; 4]);
        calm.times = 10;
        calm.last = at("2026-01-05T09:17:15Z");
        vec![calm]
    }

    #[test]
    fn another_target_changes_the_curve_and_becomes_a_patch() {
        let records = records();
        let mut fields = WhatIfFields::of(&records[0].spec).unwrap();
        assert_eq!((fields.min, fields.max, fields.up_pods, fields.down_window), (1, 10, Some(4.0), 300));
        let same = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!(
            (&same["before"], same["patch"].as_str()),
            (&same["after"], Some("# nothing is changed\n"))
        );
        assert_eq!(same["points"].as_array().unwrap().len(), 10);
        fields.metrics[0].target = 25.0;
        let halved = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!((&halved["before"]["peak"], &halved["after"]["peak"]), (&json!(4), &json!(8)));
        let patch = halved["patch"].as_str().unwrap();
        assert!(patch.contains("averageUtilization: 25") && !patch.contains("behavior"), "{patch}");
        fields.max = 6;
        fields.up_pods = Some(1.0);
        fields.up_percent = None;
        let slow = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!(
            (&slow["points"][0]["after"], &slow["points"][9]["after"]),
            (&json!(5), &json!(6)),
            "{slow}"
        );
        let patch = slow["patch"].as_str().unwrap();
        assert!(patch.contains("maxReplicas: 6") && patch.contains("periodSeconds: 15"), "{patch}");
    }

    #[test]
    fn impossible_fields_are_refused() {
        let fields = WhatIfFields::of(&records()[0].spec).unwrap();
        assert_eq!(fields.check(), Ok(()));
        for bad in [
            WhatIfFields { max: 0, ..fields.clone() },
            WhatIfFields { min: 11, ..fields.clone() },
            WhatIfFields { max: i32::MAX, ..fields.clone() },
            WhatIfFields { down_window: 3601, ..fields.clone() },
            WhatIfFields { up_pods: Some(0.0), ..fields.clone() },
            WhatIfFields { up_percent: Some(f64::INFINITY), ..fields.clone() },
        ] {
            assert_eq!(bad.check().unwrap_err().code, 400, "{bad:?}");
        }
        let mut bad = fields;
        bad.metrics[0].target = 0.0;
        assert!(bad.check().is_err());
    }
}
