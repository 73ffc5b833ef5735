//! The HPA of a ScaledObject, from triggers and credentials to the object (`hpa_for_scaledobject.jsonl`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricSpec};
use api::keda::{GroupVersionKindResource, KedaProfile, ScaledObject, ScaledObjectStatus};
use api::provider::Compat;
use controllers::operator::OperatorSettings;
use controllers::operator::auth::{AuthQuery, AuthResolver, AuthRules, ManifestObjects};
use keda::environment::PodTemplate;
use keda::event::Event;
use keda::hpa::{self, GeneratedHpa, generate, needs_update};
use keda::modifiers::CompiledFormula;
use scalers::backends::Backends;
use scalers::{Owner, Scaler, Trigger, table, web};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::metric_specs::same_error;
use super::rounds::{compare, list, object, reported};
use super::{Difference, Outcome};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    scaled_object: ScaledObject,
    #[serde(default)]
    objects: Option<Vec<Value>>,
    existing_hpa: Option<HorizontalPodAutoscaler>,
}

/// A hook for tests that ships in the original; here we play it.
const MOCK_TRIGGER: &str = "external-mock";

struct Mock;

impl Scaler for Mock {
    fn specs(&self) -> scalers::ScalerFuture<'_, Vec<MetricSpec>> {
        let external =
            json!({"metric": {"name": "mockMetricName"}, "target": {"type": "Value", "value": "100"}});
        let spec = MetricSpec::deserialize(json!({"type": "External", "external": external}));
        Box::pin(std::future::ready(
            spec.map(|spec| vec![spec]).map_err(|error| scalers::ScalerError::new(error.to_string())),
        ))
    }

    fn read<'a>(&'a self, _metric: &'a str) -> scalers::ScalerFuture<'a, scalers::Reading> {
        Box::pin(std::future::ready(Ok(scalers::Reading::default())))
    }
}

/// Replays all records whose triggers are of types that we have; the others are counted apart.
pub(crate) fn replay(records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let (mut outcomes, mut unknown) = (Vec::new(), BTreeMap::<String, usize>::new());
    for record in records {
        if let Some(type_) = unknown_type(record) {
            *unknown.entry(type_).or_default() += 1;
            continue;
        }
        outcomes.push(Outcome::of(record, |compat| check(record, compat, &runtime)));
    }
    if !unknown.is_empty() {
        let (types, count) = (unknown.len(), unknown.values().sum::<usize>());
        let names: Vec<_> = unknown.into_keys().collect();
        println!("  {count} records with {types} types are not replayed here: {}", names.join(" "));
    }
    Ok(outcomes)
}

/// A type that KEDA has and Plimsoll does not.
fn unknown_type(record: &Value) -> Option<String> {
    let error = record.pointer("/out/error").and_then(Value::as_str).unwrap_or_default();
    let triggers = record.pointer("/in/scaledObject/spec/triggers").and_then(Value::as_array)?;
    let types = triggers.iter().filter_map(|trigger| trigger.get("type")?.as_str());
    let unknown = types.filter(|type_| *type_ != MOCK_TRIGGER && table::find(type_).is_none());
    let mut ours = unknown.filter(|type_| error != format!("no scaler found for type: {type_}"));
    ours.next().map(str::to_owned)
}

fn check(record: &Value, compat: Compat, runtime: &Runtime) -> anyhow::Result<Vec<Difference>> {
    let input = Input::deserialize(record.get("in").context("no `in`")?)?;
    let out = record.get("out").context("no `out`")?;
    let (made, events) = runtime.block_on(outcome(&input, compat));
    let mut differences = Vec::new();
    if let Some(existing) = &input.existing_hpa {
        let made = made.map_err(anyhow::Error::msg)?;
        let wanted = out.get("updates").and_then(Value::as_u64).context("no `updates`")? > 0;
        let got = needs_update(existing, &made.hpa, compat);
        compare("updated", &json!(wanted), &json!(got), &mut differences);
        return Ok(differences);
    }
    let status = made.as_ref().map_or_else(|_| old(&input.scaled_object.status), |made| parts(&made.status));
    compare("status", out.get("status").unwrap_or(&Value::Null), &status, &mut differences);
    compare_events(out.get("events"), &events, &mut differences);
    let wanted = out.get("error").and_then(Value::as_str);
    match (wanted, made) {
        (Some(wanted), Err(got)) if is_same(wanted, &got) => {}
        (None, Ok(made)) => {
            let theirs = HorizontalPodAutoscaler::deserialize(out.get("hpa").context("no `hpa`")?)?;
            compare_hpas(&theirs, &made.hpa, &mut differences)?;
        }
        (wanted, made) => {
            let expected = wanted.unwrap_or("an HPA").to_owned();
            let got = made.map_or_else(|error| error, |_| "an HPA".to_owned());
            differences.push(Difference { at: "error".to_owned(), expected, got });
        }
    }
    Ok(differences)
}

/// The message of a library about a formula or its target begins on the second line.
fn is_same(wanted: &str, got: &str) -> bool {
    let of_formula = wanted.starts_with("error validating ");
    if of_formula { wanted.lines().next() == got.lines().next() } else { same_error(wanted, got) }
}

fn compare_events(wanted: Option<&Value>, events: &[Event], differences: &mut Vec<Difference>) {
    let mut got: Vec<Value> = events.iter().map(reported).collect();
    let wanted = wanted.and_then(Value::as_array).cloned().unwrap_or_default();
    let note = |event: &Value| event.get("note").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (theirs, ours) in wanted.iter().zip(&mut got) {
        if same_error(&note(theirs), &note(ours))
            && let (Some(ours), Some(theirs)) = (ours.get_mut("note"), theirs.get("note"))
        {
            *ours = theirs.clone();
        }
    }
    let (wanted, got) = (list(wanted).unwrap_or_default(), list(got).unwrap_or_default());
    compare("events", &wanted, &got, differences);
}

fn compare_hpas(
    theirs: &HorizontalPodAutoscaler,
    ours: &HorizontalPodAutoscaler,
    differences: &mut Vec<Difference>,
) -> anyhow::Result<()> {
    let value = serde_json::to_value::<&HorizontalPodAutoscaler>;
    let (mut theirs_shown, mut ours_shown) = (value(theirs)?, value(ours)?);
    for shown in [&mut theirs_shown, &mut ours_shown] {
        let members = shown.as_object_mut().context("no object")?;
        members.retain(|name, _| name == "metadata" || name == "spec");
        // Quantities are the same in any notation.
        if theirs.spec == ours.spec {
            members.remove("spec");
        }
    }
    compare("hpa", &theirs_shown, &ours_shown, differences);
    Ok(())
}

fn old(status: &ScaledObjectStatus) -> Value {
    parts(&hpa::HpaStatusFields {
        external_metric_names: status.external_metric_names.clone(),
        resource_metric_names: status.resource_metric_names.clone(),
        health: status.health.clone(),
        composite_scaler_name: status.composite_scaler_name.clone(),
    })
}

fn parts(status: &hpa::HpaStatusFields) -> Value {
    let names = |names: &[String]| (!names.is_empty()).then(|| json!(names));
    object([
        ("externalMetricNames", names(&status.external_metric_names)),
        ("resourceMetricNames", names(&status.resource_metric_names)),
        ("health", (!status.health.is_empty()).then(|| json!(status.health))),
        (
            "compositeScalerName",
            (!status.composite_scaler_name.is_empty()).then(|| json!(status.composite_scaler_name)),
        ),
    ])
}

/// Builds the HPA of a ScaledObject as the operator does. A trigger that cannot be built is an error.
async fn outcome(input: &Input, compat: Compat) -> (Result<GeneratedHpa, String>, Vec<Event>) {
    let mut events = Vec::new();
    let made = build(input, compat, &mut events).await;
    (made, events)
}

async fn build(input: &Input, compat: Compat, events: &mut Vec<Event>) -> Result<GeneratedHpa, String> {
    let owner = &input.scaled_object;
    let manifests = input.objects.clone().unwrap_or_default();
    let target = owner.status.scale_target_gvkr.as_ref().ok_or(hpa::HpaError::NoTarget.to_string())?;
    let workload = find(&manifests, target, owner)?;
    let template = PodTemplate::of_workload(workload);
    let settings = OperatorSettings { compat, ..OperatorSettings::default() };
    let auth =
        AuthResolver::new(Arc::new(ManifestObjects::new(manifests.clone())), AuthRules::from(&settings));
    let backends = Backends::without_cluster(web::HttpSettings::allowing_loopback(), compat);
    let mut scalers: Vec<Arc<dyn Scaler>> = Vec::new();
    for index in 0..owner.spec.triggers.len() {
        let built = match trigger(owner, index, template.as_ref(), &auth).await {
            Ok(trigger) if trigger.type_ == MOCK_TRIGGER => Ok(Arc::new(Mock) as Arc<dyn Scaler>),
            Ok(trigger) => table::build(&trigger, &backends).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        match built {
            Ok(scaler) => scalers.push(scaler),
            Err(error) => {
                events.push(Event::warning("KEDAScalerFailed", error.clone()));
                return Err(error);
            }
        }
        let type_ = owner.spec.triggers.get(index).map(|trigger| trigger.type_.as_str()).unwrap_or_default();
        events.push(Event::normal("KEDAScalersStarted", format!("Scaler {type_} is built")));
    }
    if owner.modifiers().is_some_and(|modifiers| !modifiers.formula.is_empty()) {
        CompiledFormula::new(owner, compat)?;
    }
    let mut specs: Vec<Vec<MetricSpec>> = Vec::new();
    for scaler in &scalers {
        // A source that fails has no metrics.
        specs.push(scaler.specs().await.unwrap_or_default());
    }
    generate(owner, &specs, compat).map_err(|error| error.to_string())
}

fn find<'a>(
    objects: &'a [Value],
    target: &GroupVersionKindResource,
    owner: &ScaledObject,
) -> Result<&'a Value, String> {
    let name = owner.spec.scale_target_ref.name.as_str();
    let is = |object: &Value, at: &str, text: &str| object.pointer(at).and_then(Value::as_str) == Some(text);
    let found =
        objects.iter().find(|object| is(object, "/kind", &target.kind) && is(object, "/metadata/name", name));
    found.ok_or_else(|| {
        let resource = match target.group.as_str() {
            "" => target.resource.clone(),
            group => format!("{}.{group}", target.resource),
        };
        format!("{resource} \"{name}\" not found")
    })
}

async fn trigger(
    owner: &ScaledObject,
    index: usize,
    template: Option<&PodTemplate>,
    auth: &AuthResolver,
) -> Result<Trigger, String> {
    let given = owner.spec.triggers.get(index).ok_or("no such trigger")?;
    let namespace = owner.metadata.namespace.as_str();
    let container = owner.spec.scale_target_ref.env_source_container_name.as_str();
    let environment =
        auth.environment(namespace, template, container).await.map_err(|error| error.to_string())?;
    let asked =
        AuthQuery { namespace, authentication: given.authentication_ref.as_ref(), template, container };
    let resolved = auth.resolve(asked).await.map_err(|error| error.to_string())?;
    Ok(Trigger {
        owner: Owner {
            kind: "ScaledObject".to_owned(),
            namespace: namespace.to_owned(),
            name: owner.metadata.name.clone(),
        },
        index,
        type_: given.type_.clone(),
        name: given.name.clone(),
        metric_type: given.metric_type.clone(),
        metadata: given.metadata.clone().into_iter().collect(),
        auth: resolved.parameters,
        environment: environment.variables,
        identity: resolved.identity,
        feeds_formula: owner.modifiers().is_some(),
        http_timeout: Duration::from_secs(3),
        profile: KedaProfile::default(),
    })
}
