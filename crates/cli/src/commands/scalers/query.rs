//! Queries the source of a trigger for the values that would be served.

use std::collections::BTreeMap;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::keda::{KedaProfile, Trigger};
use controllers::operator::auth::{AuthQuery, AuthResolver};
use scalers::backends::{Backends, NoClusterError};
use scalers::{ScalerError, parameters, table};
use serde::Serialize;

use super::object::ScaledResource;
use crate::failure::BoxError;

/// The result of querying a trigger's source.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TriggerFinding {
    pub(super) object: String,
    pub(super) trigger: usize,
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) metric: String,
    pub(super) target: String,
    pub(super) value: Option<String>,
    pub(super) active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Warnings about the trigger itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// Queries the source of a trigger.
pub(super) async fn query_trigger(
    object: &ScaledResource,
    index: usize,
    trigger: &Trigger,
    auth: &AuthResolver,
    backends: &Backends,
    profile: KedaProfile,
    within: Duration,
) -> Vec<TriggerFinding> {
    let finding = |metric: &str, target: String| TriggerFinding {
        object: format!("{}/{}/{}", object.owner.kind, object.owner.namespace, object.owner.name),
        trigger: index,
        type_: trigger.type_.clone(),
        metric: metric.to_owned(),
        target,
        value: None,
        active: None,
        error: None,
        notes: Vec::new(),
    };
    let failed = |error: String| vec![TriggerFinding { error: Some(error), ..finding("", String::new()) }];
    let given = match given(object, index, trigger, auth, backends, profile).await {
        Ok(given) => given,
        Err(error) => return failed(error.to_string()),
    };
    let notes = notes(object, &given);
    let mut findings = query_source(&given, backends, within, finding).await;
    if let Some(first) = findings.first_mut() {
        first.notes = notes;
    }
    findings
}

/// Warnings about a trigger itself.
fn notes(object: &ScaledResource, trigger: &scalers::Trigger) -> Vec<String> {
    let Some(known) = table::find(&trigger.type_) else { return Vec::new() };
    // External scalers define their own parameters.
    let is_external = trigger.type_.starts_with("external");
    let unknown = parameters::unknown(known.parameters, trigger).filter(|_| !is_external);
    let notices = parameters::notices(known.parameters, trigger);
    let mut notes: Vec<String> = unknown.map(|unknown| unknown.to_string()).collect();
    notes.extend(notices.into_iter().map(|notice| notice.text));
    notes.extend(object.missing(trigger));
    notes
}

/// Builds the scaler and queries its source.
async fn query_source(
    given: &scalers::Trigger,
    backends: &Backends,
    within: Duration,
    finding: impl Fn(&str, String) -> TriggerFinding,
) -> Vec<TriggerFinding> {
    let failed = |error: String| vec![TriggerFinding { error: Some(error), ..finding("", String::new()) }];
    let scaler = match table::build(given, backends) {
        Ok(scaler) => scaler,
        Err(error) => return failed(error.to_string()),
    };
    let late = || format!("no answer within {} s", within.as_secs());
    let specs = match tokio::time::timeout(within, scaler.specs()).await {
        Ok(Ok(specs)) if specs.is_empty() => return failed("the source has no metrics".to_owned()),
        Ok(Ok(specs)) => specs,
        Ok(Err(error)) => return failed(error.to_string()),
        Err(_) => return failed(late()),
    };
    let mut findings = Vec::new();
    for spec in &specs {
        let (name, target, external) = shown(spec);
        let mut found = finding(&name, target);
        if external {
            match tokio::time::timeout(within, scaler.read(&name)).await {
                Ok(Ok(reading)) if reading.values.is_empty() => {
                    found.error = Some("the source has no value for it".to_owned());
                }
                Ok(Ok(reading)) => {
                    let values: Vec<String> =
                        reading.values.iter().map(|one| one.value.to_string()).collect();
                    found.value = Some(values.join(" + "));
                    found.active = Some(reading.active);
                }
                Ok(Err(error)) => found.error = Some(advised(&error)),
                Err(_) => found.error = Some(late()),
            }
        }
        findings.push(found);
    }
    findings
}

/// The text of an error, with the remedy where it is a flag.
fn advised(error: &ScalerError) -> String {
    match error.cause::<NoClusterError>() {
        Some(NoClusterError) => format!("{error}; --cluster asks the one of your kubeconfig"),
        None => error.to_string(),
    }
}

/// A trigger with its resolved parameters.
async fn given(
    object: &ScaledResource,
    index: usize,
    trigger: &Trigger,
    auth: &AuthResolver,
    backends: &Backends,
    profile: KedaProfile,
) -> Result<scalers::Trigger, BoxError> {
    let namespace = object.owner.namespace.as_str();
    let query = AuthQuery {
        namespace,
        authentication: trigger.authentication_ref.as_ref(),
        template: object.template.as_ref(),
        container: &object.container,
    };
    let resolved = auth.resolve(query).await?;
    let environment = auth.environment(namespace, object.template.as_ref(), &object.container).await;
    let environment: BTreeMap<String, String> = environment?.variables;
    Ok(scalers::Trigger {
        owner: object.owner.clone(),
        index,
        type_: trigger.type_.clone(),
        name: trigger.name.clone(),
        metric_type: trigger.metric_type.clone(),
        metadata: trigger.metadata.clone().into_iter().collect(),
        auth: resolved.parameters,
        environment,
        identity: resolved.identity,
        feeds_formula: object.feeds_formula,
        http_timeout: backends.web.settings().timeout,
        profile,
    })
}

/// Name and target of a metric, and whether we query its source.
fn shown(spec: &MetricSpec) -> (String, String, bool) {
    let target = |target: &api::autoscaling::v2::MetricTarget| {
        let quantity = target.average_value.as_ref().or(target.value.as_ref()).map(ToString::to_string);
        let percent = target.average_utilization.map(|percent| format!("{percent}%"));
        format!("{} {}", quantity.or(percent).unwrap_or_default(), target.type_)
    };
    match (&spec.external, &spec.resource, &spec.container_resource) {
        (Some(source), _, _) => (source.metric.name.clone(), target(&source.target), true),
        (_, Some(source), _) => (source.name.clone(), target(&source.target), false),
        (_, _, Some(source)) => {
            (format!("{} of {}", source.name, source.container), target(&source.target), false)
        }
        _ => (String::new(), String::new(), false),
    }
}
