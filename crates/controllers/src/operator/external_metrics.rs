//! External metrics for whoever asks (docs/spec/keda.md 4.1, 4.3): in this process, on any replica, from samples that are fresh enough.

use std::sync::Arc;

use api::keda::annotations::SCALED_OBJECT_NAME;
use api::provider::{
    ExternalMetricQuery, ExternalMetricSample, ExternalMetricsProvider, MetricsError, ProviderFuture,
};
use api::selector::{Operator, Selector};
use keda::activity::{self, MetricQuery, MetricValue, TriggerResult};
use keda::fallback;
use keda::status::StatusChanges;

use super::context::OperatorContext;
use super::event_recorder::EventSubject;
use super::id::Id;
use super::poll::after_query;
use super::raw_metrics::MetricRequester;
use super::scalers_cache::{SampleQuery, ScaledResource, told};

/// What discovery shows: the metrics themselves are known to their HPAs.
const PLACEHOLDER: &str = "externalmetrics";

/// Answers for the metrics of all ScaledObjects.
#[derive(Clone)]
pub(crate) struct Answers {
    context: Arc<OperatorContext>,
}

impl Answers {
    pub(crate) fn new(context: Arc<OperatorContext>) -> Self {
        Self { context }
    }

    /// The values of a metric of a ScaledObject, or why there are none.
    pub(crate) async fn metric(
        &self,
        namespace: &str,
        name: &str,
        metric: &str,
    ) -> Result<Vec<MetricValue>, String> {
        let context = &self.context;
        let id = Id::object(namespace, name);
        let Some(object) = context.store().object(&id) else {
            return Err(format!("error getting scalers: scaledobjects.keda.sh {name:?} not found"));
        };
        let entry = context.entry(&id);
        let owner = ScaledResource::Object(Arc::clone(&object));
        let triggers = context.triggers(&entry, &owner);
        let records = entry.state().records.clone();
        let wanted = |name: &str| activity::is_needed(&object, metric, name);
        let settings = &context.settings;
        let how = SampleQuery {
            age: settings.age(settings.sample_age),
            failures: settings.age(settings.sample_age),
            others: settings.age(settings.sample_age),
            deadline: settings.source_deadline,
            wanted: &wanted,
            records: Some(&records),
        };
        let heard = triggers.ask(&context.builder, &owner, how).await;
        context.raw_metrics.publish(MetricRequester::Hpa, context.clock.now(), &id, &triggers, &heard);
        let told: Vec<TriggerResult> = told(heard, settings.compat);
        let needs = fallback::needs(&object, &told, settings.compat);
        let facts = context.reader.facts(&object, needs).await;
        let question =
            MetricQuery { now: context.clock.now(), object: &object, metric, formula: triggers.formula() };
        let answer = activity::respond(&question, &told, &facts, settings.compat);
        if context.client.leadership.is_leader() {
            for event in &answer.events {
                context.events.record_poll(EventSubject::Object, &object.metadata, event);
            }
            self.report(&id, answer.changes);
        }
        if answer.values.is_err() {
            *entry.state().errors.get_or_insert(0) += 1;
        }
        answer.values
    }

    /// Health that has changed is written while who asked has the answer already.
    fn report(&self, id: &Id, changes: StatusChanges) {
        if changes == StatusChanges::default() {
            return;
        }
        let (context, id) = (Arc::clone(&self.context), id.clone());
        tokio::spawn(async move {
            let Some(entry) = context.known_entry(&id) else { return };
            let _alone = entry.gate.lock().await;
            after_query(&context, &id, &changes).await;
        });
    }

    async fn values(
        &self,
        question: &ExternalMetricQuery,
    ) -> Result<Vec<ExternalMetricSample>, MetricsError> {
        let name = object_name(&question.series).map_err(MetricsError::Plain)?;
        let found = self.metric(&question.namespace, &name, &question.metric).await;
        let found = found.map_err(|error| {
            let text = format!("error when getting metric values {error}");
            let is_strict = self.context.settings.compat.is_strict();
            // The original has a process in between.
            MetricsError::Plain(if is_strict {
                format!("rpc error: code = Unknown desc = {text}")
            } else {
                text
            })
        })?;
        let now = self.context.clock.now();
        let value = |value: MetricValue| ExternalMetricSample {
            metric: value.name,
            labels: None,
            timestamp: Some(now),
            window: None,
            value: value.value,
        };
        Ok(found.into_iter().map(value).collect())
    }
}

impl ExternalMetricsProvider for Answers {
    fn values<'a>(
        &'a self,
        question: &'a ExternalMetricQuery,
    ) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(self.values(question))
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::new(vec![PLACEHOLDER.to_owned()])
    }
}

/// The ScaledObject that a selector names; it must be nothing but equalities.
fn object_name(selector: &Selector) -> Result<String, String> {
    // As an HPA has it.
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
            _ => return Err(format!("invalid selector: {part}")),
        }
    }
    if name.is_empty() { Err("scaledObject name is not specified".to_owned()) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_selector_names_an_object_or_is_refused() {
        let name = |text: &str| object_name(&Selector::parse(text).unwrap());
        assert_eq!(name("scaledobject.keda.sh/name=web"), Ok("web".to_owned()));
        assert_eq!(name("a=b,scaledobject.keda.sh/name=web"), Ok("web".to_owned()));
        assert_eq!(name(""), Err("scaledObject name is not specified".to_owned()));
        assert_eq!(name("a=b"), Err("scaledObject name is not specified".to_owned()));
        assert_eq!(
            name("scaledobject.keda.sh/name in (a,b)"),
            Err("invalid selector: scaledobject.keda.sh/name in (a".to_owned())
        );
        assert!(name("scaledobject.keda.sh/name!=web").is_err());
    }
}
