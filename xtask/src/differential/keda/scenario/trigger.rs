//! Triggers and their sources.

use serde_json::{Value, json};

use crate::differential::scenario::random::RandomSource;

/// The addresses of the sources.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// `host:port` of the external scaler.
    pub(crate) scaler: String,
    /// `host:port` of the HTTP API.
    pub(crate) http: String,
}

/// One trigger.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) source: Source,
    /// The name of the trigger, which formulas use.
    pub(crate) name: Option<String>,
    pub(crate) cached: bool,
    pub(crate) metric_type: Option<&'static str>,
    /// The end of the name of the TriggerAuthentication that it refers to.
    pub(crate) auth: Option<&'static str>,
}

/// The source of the value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// The scripted external scaler.
    External {
        key: String,
        metric: String,
        target: i64,
        push: bool,
        refused: bool,
    },
    /// The scripted HTTP API, with a token from the TriggerAuthentication.
    Api {
        key: String,
        target: i64,
    },
    /// A window that is open all year, or never; with an invalid schedule, if broken.
    Cron {
        open: bool,
        replicas: i64,
        broken: bool,
    },
    /// As many as there are pods with a label of the scenario.
    Workload {
        target: i64,
    },
    Cpu {
        percent: i64,
        container: bool,
    },
    Memory,
    /// An unknown type.
    Nonsense,
}

/// Suffixes of TriggerAuthentications: one that exists from the beginning, one that is created late, and one whose Secret is missing.
pub(crate) const AUTH: &str = "auth";
pub(crate) const LATE_AUTHENTICATION: &str = "late";
pub(crate) const AUTHENTICATION_WITHOUT_SECRET: &str = "bare";
/// The ClusterTriggerAuthentication.
pub(crate) const CLUSTER: &str = "cluster";

impl Trigger {
    pub(crate) fn new(source: Source) -> Self {
        let metric_type = match source {
            Source::Cpu { .. } => Some("Utilization"),
            Source::Memory => Some("AverageValue"),
            _ => None,
        };
        let auth = matches!(source, Source::Api { .. }).then_some(AUTH);
        Self { source, name: None, cached: false, metric_type, auth }
    }

    /// An external trigger; the key identifies the source.
    pub(crate) fn external(scenario: &str, letter: char, random: &mut RandomSource) -> Self {
        Self::new(Source::External {
            key: format!("{scenario}-{letter}"),
            metric: random.of(["jobs", "letters", "orders"]).to_owned(),
            target: random.between(1, 9),
            push: random.once_in(8),
            refused: false,
        })
    }

    /// A random trigger.
    pub(crate) fn any(scenario: &str, letter: char, random: &mut RandomSource) -> Self {
        match random.weighted([50, 12, 12, 10, 10, 6]) {
            0 => Self::external(scenario, letter, random),
            1 => Self::new(Source::Api { key: format!("{scenario}-{letter}"), target: random.between(1, 9) }),
            2 => Self::new(Source::Cron {
                open: random.once_in(2),
                replicas: random.between(1, 4),
                broken: false,
            }),
            3 => Self::new(Source::Workload { target: random.between(1, 3) }),
            4 => Self::new(Source::Cpu { percent: random.between(40, 90), container: random.once_in(4) }),
            _ => Self::new(Source::Memory),
        }
    }

    /// The key of its scripted source, if it has one.
    pub(crate) fn key(&self) -> Option<&str> {
        match &self.source {
            Source::External { key, .. } | Source::Api { key, .. } => Some(key),
            _ => None,
        }
    }

    pub(crate) fn is_resource(&self) -> bool {
        matches!(self.source, Source::Cpu { .. } | Source::Memory)
    }

    /// The trigger in a spec.
    pub(crate) fn json(&self, scenario: &str, places: &Places) -> Value {
        let (kind, metadata) = match &self.source {
            Source::External { key, metric, target, push, refused } => {
                // No server listens on port 1.
                let address = if *refused { "127.0.0.1:1" } else { &places.scaler };
                let metadata = json!({
                    "scalerAddress": address, "key": key, "metric": metric, "target": target.to_string(),
                });
                (if *push { "external-push" } else { "external" }, metadata)
            }
            Source::Api { key, target } => {
                let url = format!("http://{}/{{ns}}/{key}", places.http);
                let metadata = json!({
                    "url": url, "valueLocation": "value", "targetValue": target.to_string(), "authMode": "bearer",
                });
                ("metrics-api", metadata)
            }
            Source::Cron { open, replicas, broken } => {
                let (start, end) =
                    if *open { ("1 0 1 1 *", "0 0 1 1 *") } else { ("0 0 1 1 *", "1 0 1 1 *") };
                let start = if *broken { "every day" } else { start };
                let metadata = json!({
                    "timezone": "Etc/UTC", "start": start, "end": end, "desiredReplicas": replicas.to_string(),
                });
                ("cron", metadata)
            }
            Source::Workload { target } => {
                let selector = format!("crew={scenario}");
                ("kubernetes-workload", json!({"podSelector": selector, "value": target.to_string()}))
            }
            Source::Cpu { percent, container } => {
                let mut metadata = json!({"value": percent.to_string()});
                if let (true, Some(metadata)) = (container, metadata.as_object_mut()) {
                    metadata.insert("containerName".to_owned(), "app".into());
                }
                ("cpu", metadata)
            }
            Source::Memory => ("memory", json!({"value": "64Mi"})),
            Source::Nonsense => ("nonsense", json!({"a": "b"})),
        };
        let mut trigger = json!({"type": kind, "metadata": metadata});
        let mut set = |key: &str, value: Value| {
            if let Some(trigger) = trigger.as_object_mut() {
                trigger.insert(key.to_owned(), value);
            }
        };
        if let Some(name) = &self.name {
            set("name", name.as_str().into());
        }
        if self.cached {
            set("useCachedMetrics", true.into());
        }
        if let Some(kind) = self.metric_type {
            set("metricType", kind.into());
        }
        if let Some(auth) = self.auth {
            let name = format!("{scenario}-{auth}");
            let reference = if auth == CLUSTER {
                json!({"name": format!("{{ns}}-{name}"), "kind": "ClusterTriggerAuthentication"})
            } else {
                json!({"name": name})
            };
            set("authenticationRef", reference);
        }
        trigger
    }
}
