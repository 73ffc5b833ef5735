//! Sources that say what a test tells them to.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::autoscaling::v2::{EXTERNAL, ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget};
use quantity::Quantity;
use scalers::{Reading, Scaler, ScalerError, ScalerFuture, Trigger};
use tokio::sync::{mpsc, watch};

use crate::operator::BuildScaler;

/// What a source says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Says {
    /// This value; active if it is above zero.
    Value(i64),
    /// The same, but not at once.
    Late(Duration, i64),
    /// That something is wrong.
    Fails(&'static str),
    /// Nothing, for ever.
    Hangs,
    /// Not even which metrics it has.
    Mute(&'static str),
    /// That it has no metrics.
    Empty,
}

#[derive(Debug, Default)]
struct Source {
    says: Option<Says>,
    /// Number of queries, and of builds.
    asked: u64,
    built: u64,
}

/// All sources, by the name in `metadata.source`.
#[derive(Clone)]
pub(super) struct Script {
    sources: Arc<Mutex<HashMap<String, Source>>>,
    pushes: Arc<watch::Sender<u64>>,
}

impl Default for Script {
    fn default() -> Self {
        Self { sources: Arc::default(), pushes: Arc::new(watch::Sender::new(0)) }
    }
}

impl Script {
    pub(super) fn say(&self, source: &str, says: Says) {
        self.sources.lock().unwrap().entry(source.to_owned()).or_default().says = Some(says);
    }

    pub(super) fn asked(&self, source: &str) -> u64 {
        self.sources.lock().unwrap().get(source).map_or(0, |source| source.asked)
    }

    pub(super) fn built(&self, source: &str) -> u64 {
        self.sources.lock().unwrap().get(source).map_or(0, |source| source.built)
    }

    /// All sources of type `scripted-push` tell of activity.
    pub(super) fn push(&self) {
        self.pushes.send_modify(|count| *count += 1);
    }

    pub(super) fn build(&self) -> BuildScaler {
        let script = self.clone();
        Arc::new(move |trigger, _| {
            if !trigger.type_.starts_with("scripted") {
                return Err(ScalerError::new(format!("no scaler found for type: {}", trigger.type_)));
            }
            if trigger.metadata.contains_key("needs-password") && !trigger.auth.contains_key("password") {
                return Err(ScalerError::new("missing required parameter \"password\""));
            }
            let source = trigger.metadata.get("source").cloned().unwrap_or_default();
            script.sources.lock().unwrap().entry(source.clone()).or_default().built += 1;
            Ok(Arc::new(Scripted { script: script.clone(), source, trigger: trigger.clone() }))
        })
    }
}

struct Scripted {
    script: Script,
    source: String,
    trigger: Trigger,
}

impl Scaler for Scripted {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        let name = self.trigger.metric_name(&self.source);
        let target = self.trigger.metadata.get("target").map_or(10, |text| text.parse().unwrap());
        let target = Some(Quantity::new(target, quantity::Format::DecimalSi));
        let target = match self.trigger.metric_type.as_str() {
            "Value" => MetricTarget { type_: "Value".to_owned(), value: target, ..MetricTarget::default() },
            _ => MetricTarget {
                type_: "AverageValue".to_owned(),
                average_value: target,
                ..MetricTarget::default()
            },
        };
        let spec = MetricSpec {
            type_: EXTERNAL.to_owned(),
            external: Some(ExternalMetricSource {
                metric: MetricIdentifier { name, selector: None },
                target,
            }),
            ..MetricSpec::default()
        };
        let says = self.script.sources.lock().unwrap().get(&self.source).and_then(|own| own.says.clone());
        Box::pin(async move {
            match says {
                Some(Says::Mute(why)) => Err(ScalerError::new(why)),
                Some(Says::Empty) => Ok(Vec::new()),
                _ => Ok(vec![spec]),
            }
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            // A source that needs no time at all would be none.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let says = {
                let mut sources = self.script.sources.lock().unwrap();
                let source = sources.entry(self.source.clone()).or_default();
                source.asked += 1;
                source.says.clone()
            };
            if let Some(Says::Late(after, _)) = says {
                tokio::time::sleep(after).await;
            }
            match says.unwrap_or(Says::Value(0)) {
                Says::Value(value) | Says::Late(_, value) => {
                    let quantity = Quantity::new(value, quantity::Format::DecimalSi);
                    Ok(Reading::one(metric, quantity, value > 0))
                }
                Says::Fails(why) | Says::Mute(why) => Err(ScalerError::new(why)),
                Says::Empty => Ok(Reading::default()),
                Says::Hangs => std::future::pending().await,
            }
        })
    }

    fn push(self: Arc<Self>, tell: mpsc::Sender<bool>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        if self.trigger.type_ != "scripted-push" {
            return None;
        }
        let mut pushes = self.script.pushes.subscribe();
        Some(Box::pin(async move {
            while pushes.changed().await.is_ok() {
                let _ = tell.send(true).await;
            }
        }))
    }
}
