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

/// The period of the policies that Kubernetes applies by default.
const DEFAULT_PERIOD: SignedDuration = SignedDuration::from_secs(15);
/// The longest stabilization window and the longest period of a policy that Kubernetes accepts, in seconds.
const MAX_WINDOW_SECONDS: i64 = 3600;
const MAX_PERIOD_SECONDS: i64 = 1800;
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
    up: RuleFields,
    down: RuleFields,
}

/// The rules of one direction in the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RuleFields {
    /// Stabilization window in seconds.
    window: i64,
    select: SelectPolicy,
    policies: Vec<PolicyField>,
}

/// A policy of the form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct PolicyField {
    kind: ScalingPolicyType,
    value: i32,
    /// Period in seconds.
    period: i64,
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
        let down_window = ControllerConfig::default().downscale_stabilization.as_secs();
        Some(Self {
            min: spec.min.get(),
            max: spec.max.get(),
            metrics: spec.metrics.iter().map(metric).collect::<Option<_>>()?,
            up: RuleFields::of(&up, 0),
            down: RuleFields::of(&down, down_window),
        })
    }

    /// Refuses what the API server would refuse.
    fn check(&self) -> Result<(), ApiError> {
        let bad = |text: &str| Err(ApiError::new(400, text));
        let rules = [&self.up, &self.down];
        if self.max < 1 || self.max > MAX_REPLICAS || self.min < 0 || self.min > self.max {
            return bad("min and max: 0 ≤ min ≤ max, and max between 1 and 10,000");
        }
        if self.metrics.iter().any(|metric| !metric.target.is_finite() || metric.target <= 0.0) {
            return bad("a target must be more than zero");
        }
        if rules.iter().any(|rules| !(0..=MAX_WINDOW_SECONDS).contains(&rules.window)) {
            return bad("a stabilization window is between 0 and 3600 seconds");
        }
        let mut policies = rules.iter().flat_map(|rules| &rules.policies);
        if policies.any(|policy| policy.value < 1 || !(1..=MAX_PERIOD_SECONDS).contains(&policy.period)) {
            return bad("a policy allows at least 1, in a period between 1 and 1800 seconds");
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
            metric.target = match metric.target {
                MetricTarget::Utilization(_) => MetricTarget::Utilization(new.target.round() as i32),
                MetricTarget::AverageValue(_) => MetricTarget::AverageValue(milli),
                MetricTarget::Value(_) => MetricTarget::Value(milli),
                MetricTarget::Missing => MetricTarget::Missing,
            };
        }
        if self.up != before.up || self.down != before.down {
            let (up, down) = rules_of(&spec);
            spec.behavior = Some(Behavior {
                up: self.up.apply(up, &before.up),
                down: self.down.apply(down, &before.down),
            });
        }
        spec
    }
}

impl RuleFields {
    /// The fields of rules; without a window of their own, they have that of the controller.
    fn of(rules: &ScalingRules, default_window: i64) -> Self {
        let policy = |policy: &ScalingPolicy| PolicyField {
            kind: policy.kind,
            value: policy.value,
            period: policy.period.as_secs(),
        };
        Self {
            window: rules.window.map_or(default_window, |window| window.as_secs()),
            select: rules.select,
            policies: rules.policies.iter().map(policy).collect(),
        }
    }

    /// The rules with these fields. What was not changed stays as it is.
    fn apply(&self, mut rules: ScalingRules, before: &Self) -> ScalingRules {
        if self.window != before.window {
            rules.window = Some(SignedDuration::from_secs(self.window));
        }
        rules.select = self.select;
        if self.policies.is_empty() {
            // Kubernetes requires a policy also where none counts.
            rules.select = SelectPolicy::Disabled;
        } else if self.policies != before.policies {
            let policy = |field: &PolicyField| ScalingPolicy {
                kind: field.kind,
                value: field.value,
                period: SignedDuration::from_secs(field.period),
            };
            rules.policies = self.policies.iter().map(policy).collect();
        }
        rules
    }
}

/// The rules of both directions.
fn rules_of(spec: &Spec) -> (ScalingRules, ScalingRules) {
    match &spec.behavior {
        Some(behavior) => (behavior.up.clone(), behavior.down.clone()),
        None => (default_rules(true), default_rules(false)),
    }
}

/// What Kubernetes applies to a behavior that does not say otherwise.
fn default_rules(is_up: bool) -> ScalingRules {
    let policy = |kind, value| ScalingPolicy { kind, value, period: DEFAULT_PERIOD };
    let mut policies = vec![policy(ScalingPolicyType::Percent, 100)];
    policies.extend(is_up.then(|| policy(ScalingPolicyType::Pods, 4)));
    let window = is_up.then_some(SignedDuration::ZERO);
    ScalingRules { window, select: SelectPolicy::Max, policies, tolerance: None }
}

/// Replays the recorded decisions with the fields of a request.
pub(super) async fn what_if(
    client: &ClusterClient,
    path: &ObjectPath<'_>,
    body: Value,
) -> Result<Value, ApiError> {
    let fields: WhatIfFields =
        serde_json::from_value(body).map_err(|error| ApiError::new(400, error.to_string()))?;
    fields.check()?;
    let named = Some(path.autoscaler()?).filter(|named| !named.kind.has_triggers());
    let named = named.ok_or_else(|| ApiError::new(400, "only HPAs and Autoscalers can be replayed"))?;
    let records = match client.decisions_of(path.namespace, &named).await {
        Ok(found) => found.records,
        Err(MissingDecision::NoRecord) => return Err(ApiError::new(404, "no decision is recorded yet")),
        Err(MissingDecision::Unavailable(why)) => {
            return Err(ApiError::new(503, format!("{}; remedy: {}", why.cause, why.remedy)));
        }
    };
    let object = client.object(path.namespace, &named).await.map_err(|error| failed(&error))?;
    let mut found = answer(&records, &fields, &object.raw)?;
    if client.recording().is_some()
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
        let targets = after.metrics.iter().map(|metric| metric.target);
        for (metric, target) in metrics.as_array_mut().into_iter().flatten().zip(targets) {
            set_target(metric, target);
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

fn set_target(metric: &mut Value, target: MetricTarget) {
    let Some(sources) = metric.as_object_mut() else { return };
    let Some((field, value)) = manifest::target_value(target) else { return };
    for fields in sources.values_mut().filter_map(|source| source.get_mut("target")?.as_object_mut()) {
        fields.insert(field.into(), value.clone());
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
        assert_eq!((fields.min, fields.max, fields.down.window), (1, 10, 300));
        let policy = |kind, value, period| PolicyField { kind, value, period };
        let (percent, pods) = (ScalingPolicyType::Percent, ScalingPolicyType::Pods);
        assert_eq!(fields.up.policies, [policy(percent, 100, 15), policy(pods, 4, 15)]);
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
        fields.up.policies = vec![policy(pods, 1, 15)];
        let slow = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!(
            (&slow["points"][0]["after"], &slow["points"][9]["after"]),
            (&json!(5), &json!(6)),
            "{slow}"
        );
        let patch = slow["patch"].as_str().unwrap();
        assert!(patch.contains("maxReplicas: 6") && patch.contains("periodSeconds: 15"), "{patch}");
        fields.up.policies = vec![policy(pods, 1, 60)];
        let slower = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!((&slower["points"][3]["after"], &slower["points"][9]["after"]), (&json!(5), &json!(6)));
        fields.up.policies = Vec::new();
        let disabled = answer(&records, &fields, &hpa("web")).unwrap();
        assert_eq!(disabled["after"]["peak"], json!(4));
        let patch = disabled["patch"].as_str().unwrap();
        assert!(patch.contains("selectPolicy: Disabled") && patch.contains("value: 100"), "{patch}");
    }

    #[test]
    fn policies_that_were_not_changed_keep_their_periods() {
        let own =
            ScalingPolicy { kind: ScalingPolicyType::Pods, value: 2, period: SignedDuration::from_secs(60) };
        let down = ScalingRules { policies: vec![own], select: SelectPolicy::Min, ..default_rules(false) };
        let behavior = Behavior { up: default_rules(true), down };
        let spec = Spec { behavior: Some(behavior), ..records()[0].spec.clone() };
        let before = WhatIfFields::of(&spec).unwrap();
        let mut fields = before.clone();
        fields.down.window = 60;
        let after = fields.apply(&spec, &before).behavior.unwrap();
        let expected =
            ScalingRules { window: Some(SignedDuration::from_secs(60)), ..spec.behavior.unwrap().down };
        assert_eq!(after.down, expected);
    }

    #[test]
    fn impossible_fields_are_refused() {
        let fields = WhatIfFields::of(&records()[0].spec).unwrap();
        assert_eq!(fields.check(), Ok(()));
        let with_policy = |value, period| RuleFields {
            policies: vec![PolicyField { kind: ScalingPolicyType::Pods, value, period }],
            ..fields.up.clone()
        };
        for bad in [
            WhatIfFields { max: 0, ..fields.clone() },
            WhatIfFields { min: 11, ..fields.clone() },
            WhatIfFields { max: i32::MAX, ..fields.clone() },
            WhatIfFields { down: RuleFields { window: 3601, ..fields.down.clone() }, ..fields.clone() },
            WhatIfFields { up: with_policy(0, 15), ..fields.clone() },
            WhatIfFields { up: with_policy(1, 0), ..fields.clone() },
            WhatIfFields { down: with_policy(1, 1801), ..fields.clone() },
        ] {
            assert_eq!(bad.check().unwrap_err().code, 400, "{bad:?}");
        }
        let mut bad = fields;
        bad.metrics[0].target = 0.0;
        assert!(bad.check().is_err());
    }
}
