//! KEDA's objects: fields, the rules of its webhook that need no cluster, and the parameters of triggers.

use std::collections::BTreeSet;

use api::autoscaling::{Defaults as _, v2, validation};
use api::keda::{
    CloudEventSource, HorizontalPodAutoscalerConfig, KedaProfile, ScaledJob, ScaledObject, Trigger,
    TriggerAuthentication,
};
use api::manifest::problems_of;
use api::provider::Compat;
use api::yaml::{Diagnostic, Document, nearest};
use keda::admission::{
    self, AdmissionInput, AdmissionKind, AdmissionRules, ClusterSnapshot, Operation, Verdict,
};
use scalers::backends::Backends;
use scalers::parameters::{self, InvalidParameters, Parameter, ParameterSource};
use scalers::{Owner, table};
use serde::Serialize;

use super::ValidationRules;

/// The triggers of one object.
struct Triggers<'a> {
    kind: &'static str,
    name: &'a str,
    all: &'a [Trigger],
    feed_formula: bool,
    /// The release of KEDA whose parameters they have.
    profile: KedaProfile,
}

/// Where the behavior of the generated HPA is written.
const BEHAVIOR: &str = "spec.advanced.horizontalPodAutoscalerConfig.behavior";

pub(in crate::commands) fn problems(
    document: &Document,
    kind: AdmissionKind,
    rules: ValidationRules,
) -> Vec<Diagnostic> {
    match kind {
        AdmissionKind::ScaledObject => {
            problems_of(document.decode_partial(), |object| Some(of_object(document, &object, rules)))
        }
        AdmissionKind::ScaledJob => problems_of(document.decode_partial(), |job: ScaledJob| {
            let triggers = Triggers {
                kind: "ScaledJob",
                name: &job.metadata.name,
                all: &job.spec.triggers,
                feed_formula: false,
                profile: rules.keda,
            };
            let mut found = of_triggers(document, &triggers);
            if job.spec.job_target_ref.is_none() {
                found.push(at(document, "spec.jobTargetRef", "Required value"));
            }
            Some(found)
        }),
        AdmissionKind::TriggerAuthentication | AdmissionKind::ClusterTriggerAuthentication => {
            problems_of(document.decode_partial(), |object: TriggerAuthentication| {
                reviewed(document, kind, &object)
            })
        }
        AdmissionKind::CloudEventSource | AdmissionKind::ClusterCloudEventSource => {
            problems_of(document.decode_partial(), |object: CloudEventSource| {
                reviewed(document, kind, &object)
            })
        }
    }
}

fn at(document: &Document, path: &str, message: impl AsRef<str>) -> Diagnostic {
    document.problem(path, message).in_path(path)
}

/// The denial of the webhook, for kinds whose rules need no cluster.
fn reviewed(document: &Document, kind: AdmissionKind, object: &impl Serialize) -> Option<Vec<Diagnostic>> {
    let object = serde_json::to_value(object).ok()?;
    let input =
        AdmissionInput { operation: Operation::Create, kind, dry_run: true, object: &object, old: None };
    // Rules for these kinds were only added, never changed.
    let rules = AdmissionRules::of(Compat::Better).in_profile(KedaProfile::V2_21);
    match admission::review(&input, &ClusterSnapshot::default(), &rules) {
        Verdict::Denied(denial) => Some(vec![at(document, "spec", denial.message)]),
        Verdict::Allowed(allowed) => {
            Some(allowed.warnings.iter().map(|warning| at(document, "spec", warning)).collect())
        }
    }
}

fn of_object(document: &Document, object: &ScaledObject, rules: ValidationRules) -> Vec<Diagnostic> {
    let denials = admission::check_alone(object, Compat::Better);
    let mut found: Vec<Diagnostic> =
        denials.into_iter().map(|(field, denial)| at(document, field, denial.message)).collect();
    let negative = [
        ("spec.minReplicaCount", object.spec.min_replica_count),
        ("spec.maxReplicaCount", object.spec.max_replica_count),
        ("spec.idleReplicaCount", object.spec.idle_replica_count),
        ("spec.pollingInterval", object.spec.polling_interval),
        ("spec.cooldownPeriod", object.spec.cooldown_period),
        ("spec.initialCooldownPeriod", object.spec.initial_cooldown_period),
    ];
    for (field, value) in negative {
        if let Some(value) = value.filter(|value| *value < 0) {
            let text = format!("Invalid value: {value}: must be greater than or equal to 0");
            found.push(at(document, field, text));
        }
    }
    found.extend(behavior(document, object, rules));
    let triggers = Triggers {
        kind: "ScaledObject",
        name: &object.metadata.name,
        all: &object.spec.triggers,
        feed_formula: object.modifiers().is_some(),
        profile: rules.keda,
    };
    found.extend(of_triggers(document, &triggers));
    found
}

/// The problems of the behavior of the generated HPA, which the API server would refuse.
fn behavior(document: &Document, object: &ScaledObject, rules: ValidationRules) -> Vec<Diagnostic> {
    let config = object.spec.advanced.as_ref().and_then(|all| all.horizontal_pod_autoscaler_config.as_ref());
    let Some(HorizontalPodAutoscalerConfig { behavior: Some(behavior), .. }) = config else {
        return Vec::new();
    };
    let mut hpa = v2::HorizontalPodAutoscaler::default();
    hpa.spec.behavior = Some(behavior.clone());
    hpa.set_defaults();
    let faults = validation::validate_create(&hpa, rules.gates);
    let place = |fault: api::field::FieldError| {
        let rest = fault.field.strip_prefix("spec.behavior")?;
        Some(at(document, &format!("{BEHAVIOR}{rest}"), fault.message()))
    };
    faults.into_iter().filter_map(place).collect()
}

fn of_triggers(document: &Document, triggers: &Triggers<'_>) -> Vec<Diagnostic> {
    let Triggers { kind, name, all, feed_formula, profile } = *triggers;
    let mut found = Vec::new();
    if all.is_empty() {
        found.push(at(document, "spec.triggers", format!("no triggers defined in the {kind}")));
    }
    // Building a scaler connects to nothing, but may create timers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok();
    let _entered = runtime.as_ref().map(tokio::runtime::Runtime::enter);
    let web = scalers::web::HttpSettings::from_environment(|_| None);
    let backends = Backends::without_cluster(web, Compat::Better);
    let mut names = BTreeSet::new();
    for (index, trigger) in all.iter().enumerate() {
        let path = format!("spec.triggers[{index}]");
        if let Err(denial) = admission::check_triggers(std::slice::from_ref(trigger)) {
            found.push(at(document, &format!("{path}.useCachedMetrics"), denial.message));
        }
        if !trigger.name.is_empty() && !names.insert(&trigger.name) {
            found.push(at(document, &format!("{path}.name"), format!("Duplicate value: {:?}", trigger.name)));
        }
        let Some(known) = table::find(&trigger.type_) else {
            found.push(unknown_type(document, &path, &trigger.type_));
            continue;
        };
        let given = scalers::Trigger {
            owner: Owner { kind: kind.to_owned(), namespace: "default".to_owned(), name: name.to_owned() },
            index,
            type_: trigger.type_.clone(),
            name: trigger.name.clone(),
            metric_type: trigger.metric_type.clone(),
            metadata: trigger.metadata.clone().into_iter().collect(),
            feeds_formula: feed_formula,
            profile,
            ..scalers::Trigger::default()
        };
        // External scalers have parameters of their own.
        let unknown = parameters::unknown(known.parameters, &given);
        for unknown in unknown.filter(|_| !trigger.type_.starts_with("external")) {
            let text = format!("{} has no parameter {:?}", trigger.type_, unknown.key);
            let problem = at(document, &format!("{path}.metadata[{}]", unknown.key), text);
            found.push(match unknown.nearest {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        }
        found.extend(ignored(document, &path, trigger, known.parameters, profile));
        found.extend(of_parameters(document, &path, trigger, &given, &backends));
    }
    found
}

/// The parameters in the metadata of a trigger that only later releases of KEDA read.
fn ignored(
    document: &Document,
    path: &str,
    trigger: &Trigger,
    parameters: &[Parameter],
    profile: KedaProfile,
) -> Vec<Diagnostic> {
    let has = |parameter: &Parameter, key: &str| {
        parameter.sources.contains(&ParameterSource::Metadata) && parameter.keys.contains(&key)
    };
    let since = |key: &str| {
        let all = parameters.iter().filter(|parameter| has(parameter, key));
        all.map(|parameter| parameter.since).min()
    };
    let mut found = Vec::new();
    for key in trigger.metadata.keys() {
        if let Some(since) = since(key).filter(|since| *since > profile) {
            let text = format!("KEDA {profile} ignores {key:?}");
            let hint = format!("it exists since KEDA {since} (`--keda-profile {since}`)");
            found.push(at(document, &format!("{path}.metadata[{key}]"), text).with_hint(hint));
        }
    }
    found
}

fn unknown_type(document: &Document, path: &str, written: &str) -> Diagnostic {
    let path = format!("{path}.type");
    if written.is_empty() {
        return at(document, path.trim_end_matches(".type"), "the trigger has no type");
    }
    let ours = table::SCALER_TYPES.iter().map(|known| known.name);
    let problem = at(document, &path, format!("there is no trigger type {written:?}"));
    match nearest(written, ours) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None => problem.with_hint("`plimsoll scalers list` shows all"),
    }
}

/// What the scaler says about its parameters. Those of an authentication or of the environment of a pod are not known here, so of
/// a trigger with such references only errors that they cannot resolve are shown.
fn of_parameters(
    document: &Document,
    path: &str,
    trigger: &Trigger,
    given: &scalers::Trigger,
    backends: &Backends,
) -> Vec<Diagnostic> {
    let Err(error) = table::build(given, backends) else { return Vec::new() };
    let has_auth = trigger.authentication_ref.is_some();
    let has_env = trigger.metadata.keys().any(|key| key.ends_with("FromEnv"));
    let metadata = format!("{path}.metadata");
    let general = |message: &str| {
        let lines = message.lines().filter(|_| !has_auth && !has_env);
        lines.map(|line| at(document, &metadata, line)).collect::<Vec<_>>()
    };
    let Some(InvalidParameters(problems)) = error.cause() else { return general(&error.to_string()) };
    let is_elsewhere = |source: &ParameterSource| match source {
        ParameterSource::Metadata => false,
        ParameterSource::Authentication => has_auth,
        ParameterSource::Environment => has_env,
    };
    let mut found = Vec::new();
    for problem in problems.iter().filter(|problem| !problem.missing_from.iter().any(is_elsewhere)) {
        match problem.parameter {
            Some(name) => found.push(at(document, &format!("{metadata}[{name}]"), &problem.message)),
            None => found.extend(general(&problem.message)),
        }
    }
    found
}
