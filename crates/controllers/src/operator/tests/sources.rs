//! Sources whose responses a test sets.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::autoscaling::v2::{EXTERNAL, ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget};
use quantity::Quantity;
use scalers::{Reading, Scaler, ScalerError, ScalerFuture, Trigger};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::operator::BuildScaler;

/// How a source responds to a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SourceResponse {
    /// This value; active if it is above zero.
    Value(i64),
    /// The same, after a delay.
    Delayed(Duration, i64),
    /// An error.
    Fails(&'static str),
    /// No response.
    Hangs,
    /// An error, also to the request for its metrics.
    SpecsFail(&'static str),
    /// An empty list of metrics.
    Empty,
    /// The query panics.
    Panics,
}

#[derive(Debug, Default)]
struct Source {
    response: Option<SourceResponse>,
    /// Number of queries, and of builds.
    queries: u64,
    builds: u64,
    /// When it responded with a value above zero.
    active: Vec<Instant>,
}

/// All sources, by the name in `metadata.source`.
#[derive(Clone, Default)]
pub(super) struct TestSources {
    sources: Arc<Mutex<HashMap<String, Source>>>,
    pushes: Arc<watch::Sender<Push>>,
}

/// What the stream of a push source reports next.
#[derive(Clone, Copy, Debug, Default)]
enum Push {
    #[default]
    Active,
    Panic,
}

impl TestSources {
    pub(super) fn set(&self, source: &str, response: SourceResponse) {
        self.sources.lock().unwrap().entry(source.to_owned()).or_default().response = Some(response);
    }

    pub(super) fn queries(&self, source: &str) -> u64 {
        self.sources.lock().unwrap().get(source).map_or(0, |source| source.queries)
    }

    /// When a source responded with a value above zero.
    pub(super) fn active(&self, source: &str) -> Vec<Instant> {
        self.sources.lock().unwrap().get(source).map(|source| source.active.clone()).unwrap_or_default()
    }

    pub(super) fn builds(&self, source: &str) -> u64 {
        self.sources.lock().unwrap().get(source).map_or(0, |source| source.builds)
    }

    /// All sources of type `scripted-push` report activity.
    pub(super) fn push(&self) {
        self.pushes.send_replace(Push::Active);
    }

    /// The streams of all sources of type `scripted-push` panic.
    pub(super) fn panic_in_push(&self) {
        self.pushes.send_replace(Push::Panic);
    }

    /// How many streams of sources of type `scripted-push` and `scripted-wake` are open.
    pub(super) fn streams(&self) -> usize {
        self.pushes.receiver_count()
    }

    pub(super) fn build(&self) -> BuildScaler {
        let sources = self.clone();
        Arc::new(move |trigger, _| {
            if !trigger.type_.starts_with("scripted") {
                return Err(ScalerError::new(format!("no scaler found for type: {}", trigger.type_)));
            }
            if trigger.metadata.contains_key("needs-password") && !trigger.auth.contains_key("password") {
                return Err(ScalerError::new("missing required parameter \"password\""));
            }
            let source = trigger.metadata.get("source").cloned().unwrap_or_default();
            sources.sources.lock().unwrap().entry(source.clone()).or_default().builds += 1;
            Ok(Arc::new(Scripted { sources: sources.clone(), source, trigger: trigger.clone() }))
        })
    }
}

struct Scripted {
    sources: TestSources,
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
        let response =
            self.sources.sources.lock().unwrap().get(&self.source).and_then(|own| own.response.clone());
        Box::pin(async move {
            match response {
                Some(SourceResponse::SpecsFail(why)) => Err(ScalerError::new(why)),
                Some(SourceResponse::Empty) => Ok(Vec::new()),
                _ => Ok(vec![spec]),
            }
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            // No source responds at once.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let response = {
                let mut sources = self.sources.sources.lock().unwrap();
                let source = sources.entry(self.source.clone()).or_default();
                source.queries += 1;
                if matches!(source.response, Some(SourceResponse::Value(value)) if value > 0) {
                    source.active.push(Instant::now());
                }
                source.response.clone()
            };
            if let Some(SourceResponse::Delayed(after, _)) = response {
                tokio::time::sleep(after).await;
            }
            match response.unwrap_or(SourceResponse::Value(0)) {
                SourceResponse::Value(value) | SourceResponse::Delayed(_, value) => {
                    let quantity = Quantity::new(value, quantity::Format::DecimalSi);
                    Ok(Reading::one(metric, quantity, value > 0))
                }
                SourceResponse::Fails(why) | SourceResponse::SpecsFail(why) => Err(ScalerError::new(why)),
                SourceResponse::Empty => Ok(Reading::default()),
                SourceResponse::Hangs => std::future::pending().await,
                SourceResponse::Panics => std::panic::resume_unwind(Box::new("injected fault")),
            }
        })
    }

    fn wake(self: Arc<Self>, query_now: mpsc::Sender<()>) -> Option<scalers::WakeFuture> {
        if self.trigger.type_ != "scripted-wake" {
            return None;
        }
        let mut pushes = self.sources.pushes.subscribe();
        Some(Box::pin(
            async move { while pushes.changed().await.is_ok() && query_now.send(()).await.is_ok() {} },
        ))
    }

    fn push(
        self: Arc<Self>,
        reports: mpsc::Sender<bool>,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        if self.trigger.type_ != "scripted-push" {
            return None;
        }
        let mut pushes = self.sources.pushes.subscribe();
        Some(Box::pin(async move {
            while pushes.changed().await.is_ok() {
                let push = *pushes.borrow_and_update();
                match push {
                    Push::Active => reports.send(true).await.unwrap_or_default(),
                    Push::Panic => std::panic::resume_unwind(Box::new("injected fault")),
                }
            }
        }))
    }
}
