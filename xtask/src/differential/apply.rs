//! Applies actions to both copies at the same time, and reads the state afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::{join, join_all};
use http::Method;
use jiff::Timestamp;
use localkube::metrics::{ContainerUsage, DescribedObject, PodUsage, SampleTime, Series};
use quantity::Quantity;
use serde_json::Value;

use super::action::ApiRequest;
use super::compare::View;
use super::env::HpaEnv;
use super::scenario::Scenario;
use super::scenario::action::{Age, HpaAction, Usage};
use super::scenario::target::Kind;

impl HpaEnv {
    /// Applies the actions of one scenario to both copies, and returns the refused ones with their copy.
    pub(crate) async fn apply(&self, actions: &[HpaAction], now: Timestamp) -> Vec<String> {
        let [theirs, ours] = &self.namespaces;
        let (theirs, ours) =
            join(self.apply_to(theirs, actions, now), self.apply_to(ours, actions, now)).await;
        theirs.into_iter().chain(ours).collect()
    }

    async fn apply_to(&self, namespace: &str, actions: &[HpaAction], now: Timestamp) -> Vec<String> {
        let mut refused = Vec::new();
        for action in actions {
            let done = match action {
                HpaAction::ApiRequest(ApiRequest { method, path, body }) => {
                    let path = path.replace("{ns}", namespace);
                    self.send(method.clone(), &path, body).await.map(drop).map_err(Into::into)
                }
                reported => self.set_metrics(namespace, reported, now),
            };
            refused.extend(done.err().map(|error| format!("{namespace}: {action}: {error:#}")));
        }
        refused
    }

    /// Sets the values of the metrics APIs.
    fn set_metrics(&self, namespace: &str, action: &HpaAction, now: Timestamp) -> anyhow::Result<()> {
        let script = &self.script;
        match action {
            HpaAction::ApiRequest(_) => {}
            HpaAction::Usage { pod, usage: None } => script.remove_pod(namespace, pod),
            HpaAction::Usage { pod, usage: Some(usage) } => {
                script.set_pod(namespace, pod, sample(usage, now)?);
            }
            HpaAction::OfPod { pod, metric, value: None } => {
                script.remove_custom(&DescribedObject::pod(namespace, pod), metric);
            }
            HpaAction::OfPod { pod, metric, value: Some(value) } => {
                // The labels of a pod are those of its workload, whose name is that of the pod without the number.
                let app = pod.rsplit_once('-').map_or(pod.as_str(), |(app, _)| app);
                let series = series("a", value)?.of_object(&[("app", app)]);
                script.set_custom(DescribedObject::pod(namespace, pod), metric, series);
            }
            HpaAction::OfObject { resource, name, metric, values } => {
                let object = if name == "{ns}" {
                    DescribedObject::namespace(namespace)
                } else {
                    DescribedObject::new(namespace, resource, name)
                };
                script.remove_custom(&object, metric);
                for (label, value) in ["a", "b"].into_iter().zip(values) {
                    script.set_custom(object.clone(), metric, series(label, value)?);
                }
            }
            HpaAction::External { metric, series: all } => {
                script.remove_external(namespace, metric);
                let Some(all) = all else { return Ok(()) };
                for (label, value) in all {
                    script.set_external(namespace, metric, series(label, value)?);
                }
            }
        }
        Ok(())
    }

    /// The state of scenarios on both sides, with events if requested.
    pub(crate) async fn look(&self, scenarios: &[&Scenario], events: bool) -> anyhow::Result<Vec<[View; 2]>> {
        let [theirs, ours] = &self.namespaces;
        let seen = join(self.look_at(theirs, scenarios, events), self.look_at(ours, scenarios, events)).await;
        let mut theirs = seen.0?;
        for (view, scenario) in theirs.iter_mut().zip(scenarios) {
            view.forget_deletions(&scenario.deleted_autoscalers());
        }
        Ok(theirs.into_iter().zip(seen.1?).map(|(theirs, ours)| [theirs, ours]).collect())
    }

    async fn look_at(
        &self,
        namespace: &str,
        scenarios: &[&Scenario],
        events: bool,
    ) -> anyhow::Result<Vec<View>> {
        let mut views = vec![View::default(); scenarios.len()];
        let kinds: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| scenarios.iter().any(|s| s.kind == *kind)).collect();
        let lists = join_all(kinds.iter().map(|kind| self.list(namespace, kind.collection()))).await;
        let mut targets = BTreeMap::new();
        for (kind, list) in kinds.iter().zip(lists) {
            for item in list? {
                targets.insert((kind.kind(), name(&item, "/metadata/name")), item);
            }
        }
        let hpas = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers".to_owned();
        let hpas = self.list(namespace, hpas).await?;
        for (scenario, view) in scenarios.iter().zip(&mut views) {
            let target = targets.get(&(scenario.kind.kind(), scenario.name.clone()));
            view.replicas =
                target.and_then(|target| target.pointer("/spec/replicas")).and_then(Value::as_i64);
            let names = scenario.autoscalers();
            for hpa in hpas.iter().filter(|hpa| names.contains(&name(hpa, "/metadata/name"))) {
                view.add_autoscaler(namespace, &name(hpa, "/metadata/name"), hpa);
            }
        }
        if events {
            let events = self.list(namespace, "/api/v1/namespaces/{ns}/events".to_owned()).await?;
            for (scenario, view) in scenarios.iter().zip(&mut views) {
                let names = scenario.autoscalers();
                for event in
                    events.iter().filter(|event| names.contains(&name(event, "/involvedObject/name")))
                {
                    view.add_event(namespace, event);
                }
            }
        }
        Ok(views)
    }

    async fn list(&self, namespace: &str, path: String) -> anyhow::Result<Vec<Value>> {
        let mut list = self.send(Method::GET, &path.replace("{ns}", namespace), &Value::Null).await?;
        Ok(list
            .get_mut("items")
            .map(Value::take)
            .and_then(|items| serde_json::from_value(items).ok())
            .unwrap_or_default())
    }
}

fn name(object: &Value, path: &str) -> String {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn series(label: &str, value: &str) -> anyhow::Result<Series> {
    Ok(Series::new(amount(value)?).labelled(&[("queue", label)]))
}

fn amount(text: &str) -> anyhow::Result<Quantity> {
    Quantity::parse(text).with_context(|| text.to_owned())
}

fn sample(usage: &Usage, now: Timestamp) -> anyhow::Result<PodUsage> {
    let mut sample = PodUsage::new(&[("app", &usage.app)], &[]);
    for (name, cpu, memory) in &usage.containers {
        let mut container = ContainerUsage::new(name, 0, 0);
        container.usage.clear();
        for (resource, milli) in [("cpu", cpu), ("memory", memory)] {
            if let Some(milli) = milli {
                container.usage.insert(resource.to_owned(), amount(milli)?);
            }
        }
        sample.containers.push(container);
    }
    let when = match usage.when {
        Age::Fresh => SampleTime::Now,
        Age::Old(age) => SampleTime::At(now - age),
        Age::Unknown => SampleTime::Never,
    };
    Ok(sample.at(when).over(Duration::from_secs(usage.window.into())))
}
