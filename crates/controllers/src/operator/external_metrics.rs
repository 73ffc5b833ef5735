//! External metrics for HPAs (docs/spec/keda.md 4.1, 4.3): served by any replica, from samples that are recent enough.

use std::sync::Arc;

use api::keda::annotations::SCALED_OBJECT_NAME;
use api::provider::{
    ExternalMetricQuery, ExternalMetricSample, ExternalMetricsProvider, MetricsError, ProviderFuture,
};
use api::selector::{Operator, Selector};
use jiff::SignedDuration;
use keda::OperationError;
use keda::activity::{self, MetricQuery, MetricValue, NeededMetrics};
use keda::fallback;
use keda::status::StatusChanges;

use super::apply::Applier;
use super::context::OperatorContext;
use super::effect::Effect;
use super::id::{EventSubject, ResourceId};
use super::poll::SHARED_SAMPLE_MAX_AGE;
use super::raw_metrics::MetricRequester;
use super::scaled_resource::ScaledResource;
use super::scalers_cache::{SampleOrigin, SampleQuery, WokenTriggers, object_samples};

/// The only metric that discovery lists, as KEDA does: HPAs know the names of theirs.
const DISCOVERY_PLACEHOLDER: &str = "externalmetrics";

/// Why a metric has no values. The texts are KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// There is no such ScaledObject.
    #[error("error getting scalers: scaledobjects.keda.sh {0:?} not found")]
    NoObject(String),
    /// The metric has no values.
    #[error(transparent)]
    NoValues(OperationError),
    /// The selector of a request is not a list of equalities.
    #[error("invalid selector: {0}")]
    InvalidSelector(String),
    /// The selector of a request names no ScaledObject.
    #[error("scaledObject name is not specified")]
    NoName,
}

/// Serves the metrics of all ScaledObjects.
#[derive(Clone)]
pub(crate) struct ScaledObjectMetrics {
    context: Arc<OperatorContext>,
}

impl ScaledObjectMetrics {
    pub(crate) fn new(context: Arc<OperatorContext>) -> Self {
        Self { context }
    }

    /// The values of a metric of a ScaledObject.
    pub(crate) async fn metric(
        &self,
        namespace: &str,
        name: &str,
        metric: &str,
    ) -> Result<Vec<MetricValue>, MetricError> {
        let context = &self.context;
        let id = ResourceId::object(namespace, name);
        let Some(object) = context.store().object(&id) else {
            return Err(MetricError::NoObject(name.to_owned()));
        };
        let entry = context.entry(&id);
        let owner = ScaledResource::Object(Arc::clone(&object));
        let scalers = context.scalers(&entry, &owner);
        let records = entry.state().records.of(object.metadata.generation);
        let settings = &context.settings;
        let is_observed = settings.profile.behavior().operator.reuses_hpa_observations
            && activity::uses_hpa_observations(&object);
        // Polls of such an object do not query its triggers. If requests of its HPA did not either, the HPA would be late.
        let sample_age =
            if is_observed { settings.sample_age.min(SHARED_SAMPLE_MAX_AGE) } else { settings.sample_age };
        let max_age = settings.max_age(sample_age);
        let needed = NeededMetrics::of(&object, metric);
        let sample_query = SampleQuery {
            max_age,
            max_failure_age: max_age,
            max_shared_age: max_age,
            not_before: None,
            deadline: settings.source_deadline,
            wanted: &|name: &str| needed.contains(name),
            records: Some(&records),
            observed: None,
            woken: WokenTriggers::default(),
        };
        let samples = scalers.query(&context.builder, &owner, sample_query).await;
        context.raw_metrics.publish(MetricRequester::Hpa, context.clock.now(), &id, &scalers, &samples);
        let samples = object_samples(samples, settings.compat);
        let needs = fallback::needs(&object, &samples, settings.compat);
        let facts = context.reader.facts(&object, needs).await;
        let query =
            MetricQuery { now: context.clock.now(), object: &object, metric, formula: scalers.formula() };
        let answer = activity::respond(&query, &samples, &facts, settings.compat);
        if is_observed {
            let observed = activity::observations(&query, &samples, &facts, settings.compat);
            entry.state().observed.add(object.metadata.generation, observed);
        }
        if context.client.leadership.is_leader() {
            for event in &answer.events {
                context.events.record_poll(EventSubject::Object, &object.metadata, event);
            }
            self.write_health(&id, answer.changes);
        }
        if answer.values.is_err() {
            *entry.state().errors.get_or_insert(0) += 1;
        }
        answer.values.map_err(|error| MetricError::NoValues(OperationError::from_error(error)))
    }

    /// Writes changed health in the background: the response does not wait for it.
    fn write_health(&self, id: &ResourceId, changes: StatusChanges) {
        if changes == StatusChanges::default() {
            return;
        }
        let (context, id) = (Arc::clone(&self.context), id.clone());
        tokio::spawn(async move {
            let Some(entry) = context.known_entry(&id) else { return };
            let _lock = entry.decision_lock.lock().await;
            let Some(object) = context.store().object(&id) else { return };
            if context.client.leadership.is_leader() {
                let applier = Applier { context: &context, id: &id, metadata: &object.metadata };
                applier.log_failed_status(applier.apply(Effect::MergeStatus(changes)).await);
            }
        });
    }

    /// When and how a metric was last read from its trigger.
    fn origin(&self, namespace: &str, name: &str, metric: &str) -> Option<SampleOrigin> {
        self.context.known_entry(&ResourceId::object(namespace, name))?.scalers()?.origin(metric)
    }

    async fn values(&self, query: &ExternalMetricQuery) -> Result<Vec<ExternalMetricSample>, MetricsError> {
        let name = object_name(&query.series).map_err(|error| MetricsError::Plain(error.to_string()))?;
        let found = self.metric(&query.namespace, &name, &query.metric).await;
        let found = found.map_err(|error| {
            let text = format!("error when getting metric values {error}");
            let is_strict = self.context.settings.compat.is_strict();
            // In KEDA the adapter reaches the operator over gRPC.
            MetricsError::Plain(if is_strict {
                format!("rpc error: code = Unknown desc = {text}")
            } else {
                text
            })
        })?;
        let origin = self.origin(&query.namespace, &name, &query.metric);
        query.source.state(match &origin {
            Some(origin) => format!("trigger {} of ScaledObject {name}", origin.source()),
            None => format!("fallback of ScaledObject {name}"),
        });
        // KEDA states the time of the response, however old the sample is.
        let origin = origin.filter(|_| !self.context.settings.compat.is_strict());
        let age = origin.and_then(|origin| SignedDuration::try_from(origin.age).ok()).unwrap_or_default();
        let now = self.context.clock.now();
        let taken = now.checked_sub(age).unwrap_or(now);
        let value = |value: MetricValue| ExternalMetricSample {
            metric: value.name,
            labels: None,
            timestamp: Some(taken),
            window: None,
            value: value.value,
        };
        Ok(found.into_iter().map(value).collect())
    }
}

impl ExternalMetricsProvider for ScaledObjectMetrics {
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(self.values(query))
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::new(vec![DISCOVERY_PLACEHOLDER.to_owned()])
    }
}

/// The ScaledObject that a selector names. KEDA accepts only equalities.
fn object_name(selector: &Selector) -> Result<String, MetricError> {
    // The selector that the operator writes into HPAs.
    if let [only] = selector.requirements()
        && (only.key(), only.operator()) == (SCALED_OBJECT_NAME, Operator::Equals)
        && let [name] = only.values()[..]
        && !name.is_empty()
    {
        return Ok(name.to_owned());
    }
    let text = selector.to_string();
    let mut name = String::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        match part.split('=').collect::<Vec<_>>().as_slice() {
            [key, value] if *key == SCALED_OBJECT_NAME => (*value).clone_into(&mut name),
            [_, _] => {}
            _ => return Err(MetricError::InvalidSelector(part.to_owned())),
        }
    }
    if name.is_empty() { Err(MetricError::NoName) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_must_name_a_scaled_object_by_equality() {
        let name = |text: &str| object_name(&Selector::parse(text).unwrap());
        assert_eq!(name("scaledobject.keda.sh/name=web"), Ok("web".to_owned()));
        assert_eq!(name("a=b,scaledobject.keda.sh/name=web"), Ok("web".to_owned()));
        assert_eq!(name(""), Err(MetricError::NoName));
        assert_eq!(name("a=b"), Err(MetricError::NoName));
        assert_eq!(
            name("scaledobject.keda.sh/name in (a,b)"),
            Err(MetricError::InvalidSelector("scaledobject.keda.sh/name in (a".to_owned()))
        );
        assert!(name("scaledobject.keda.sh/name!=web").is_err());
    }
}
