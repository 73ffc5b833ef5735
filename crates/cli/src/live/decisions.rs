//! Reads decisions of controller and operator through the API server.

use api::decisions::{API_VERSION, DecisionList, DecisionMode, DecisionRecord, DifferenceList};
use cluster::AutoscalerKind;
use cluster::request::{below, with_query, within};
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::Object;
use super::{AutoscalerName, ClusterClient, RequestError, Scope};

/// A controller without a decision for this many periods may be down.
const MAX_SILENT_PERIODS: i32 = 4;
/// The minimum time before a controller counts as down.
const MIN_SILENCE: SignedDuration = SignedDuration::from_mins(1);

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MissingDecision {
    /// The controller has no decision for this object.
    NoRecord,
    /// The controller cannot be reached.
    Unavailable(Unavailable),
}

/// Why the controller cannot be reached, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

impl ClusterClient {
    /// All decisions that are kept of one autoscaler, oldest first.
    pub(crate) async fn decisions_of(
        &self,
        namespace: &str,
        named: &AutoscalerName,
    ) -> Result<Vec<DecisionRecord>, MissingDecision> {
        let records = self.decisions_with(namespace, named, &[]).await?;
        if records.is_empty() { Err(MissingDecision::NoRecord) } else { Ok(records) }
    }

    /// Decisions of one autoscaler that a query selects, oldest first.
    async fn decisions_with(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        query: &[(&str, &str)],
    ) -> Result<Vec<DecisionRecord>, MissingDecision> {
        let by = named.kind.decisions();
        let record = below(&path(by, Scope::Namespace(namespace), "decisions"), [&*named.record()]);
        let path = with_query(&record, query.iter().copied());
        let mut records = self.ask::<DecisionList>(by, &path).await?.items;
        records.sort_by_key(|record| record.first);
        Ok(records)
    }

    /// The pass in force at a time; if it is not kept, the oldest that is, which began later.
    pub(crate) async fn decision_at(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        at: Timestamp,
    ) -> Result<Vec<DecisionRecord>, MissingDecision> {
        self.decisions_with(namespace, named, &[("at", at.to_string().as_str())]).await
    }

    /// Every pass of one autoscaler in a span of time, oldest first.
    pub(crate) async fn passes_between(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DecisionRecord>, MissingDecision> {
        let (since, until) = (since.to_string(), until.to_string());
        self.decisions_with(namespace, named, &[("since", since.as_str()), ("until", &until)]).await
    }

    /// The latest decisions of the process that decides about a kind.
    pub(crate) async fn latest_decisions(
        &self,
        kind: AutoscalerKind,
        scope: Scope<'_>,
    ) -> Result<Vec<DecisionRecord>, MissingDecision> {
        let by = kind.decisions();
        Ok(self.ask::<DecisionList>(by, &path(by, scope, "decisions")).await?.items)
    }

    /// The latest decisions about these objects, and why some are missing.
    pub(crate) async fn latest_about(
        &self,
        objects: &[Object],
        scope: Scope<'_>,
    ) -> (Vec<DecisionRecord>, Option<Unavailable>) {
        let (mut records, mut unavailable) = (Vec::new(), None);
        let is_there =
            |kind: AutoscalerKind| objects.iter().any(|object| object.kind.decisions() == kind.decisions());
        for kind in [AutoscalerKind::Hpa, AutoscalerKind::ScaledObject] {
            // Without objects of a kind, a missing controller is not a problem.
            if kind != AutoscalerKind::Hpa && !is_there(kind) {
                continue;
            }
            match self.latest_decisions(kind, scope).await {
                Ok(found) => records.extend(found),
                Err(MissingDecision::NoRecord) => {}
                Err(MissingDecision::Unavailable(_)) if !is_there(kind) && !objects.is_empty() => {}
                Err(MissingDecision::Unavailable(why)) => unavailable = unavailable.or(Some(why)),
            }
        }
        (records, unavailable)
    }

    /// What shadow mode found.
    pub(crate) async fn differences(&self, scope: Scope<'_>) -> Result<DifferenceList, MissingDecision> {
        self.ask(API_VERSION, &path(API_VERSION, scope, "differences")).await
    }

    /// The decisions that are kept of one autoscaler and those that follow, until the connection ends.
    pub(crate) async fn watch_decisions(
        &self,
        namespace: &str,
        named: &AutoscalerName,
    ) -> Result<impl Stream<Item = Result<DecisionRecord, RequestError>> + Unpin + use<>, MissingDecision>
    {
        let by = named.kind.decisions();
        let path = below(&path(by, Scope::Namespace(namespace), "decisions"), [&*named.record()]);
        let lines = match self.lines(&with_query(&path, [("watch", "true")])).await {
            Ok(lines) => lines,
            Err(error) => return Err(self.missing(by, &error).await),
        };
        let records = lines.lines().map(|line| match line {
            Ok(line) => record(&line),
            Err(error) => Err(RequestError::Unreachable(error.to_string())),
        });
        Ok(Box::pin(records))
    }

    async fn ask<T: DeserializeOwned>(&self, by: &str, path: &str) -> Result<T, MissingDecision> {
        match self.get(path).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.missing(by, &error).await),
        }
    }

    /// The meaning of an error; `by` is the group and version of the request.
    async fn missing(&self, by: &str, error: &RequestError) -> MissingDecision {
        let group = by.split('/').next().unwrap_or_default();
        let who = if by == API_VERSION { "controller" } else { "operator" };
        let unavailable = |cause: String, remedy: &str| {
            MissingDecision::Unavailable(Unavailable { cause, remedy: remedy.to_owned() })
        };
        match error.code() {
            // Either the group is not served, or its server does not know the object.
            Some(404) if self.get::<Value>(&format!("/apis/{by}")).await.is_ok() => MissingDecision::NoRecord,
            Some(404) => unavailable(
                format!("this cluster does not serve {by}"),
                &format!("run `plimsoll {who}` on it, with its APIService"),
            ),
            Some(401 | 403) => unavailable(
                error.to_string(),
                &format!("ask for the right to get and list decisions{} of {group}", of_shadow(by)),
            ),
            Some(502..=504) => {
                let why = self.api_service(by).await.unwrap_or_else(|| error.to_string());
                unavailable(
                    format!("the {who} behind {by} does not answer: {why}"),
                    "check that its pods run and that its Service leads to them",
                )
            }
            None if matches!(error, RequestError::Nonsense(_)) => unavailable(
                format!("no decisions of the {who}: {error}"),
                &format!("use a `plimsoll` of the {who}'s version"),
            ),
            _ => unavailable(error.to_string(), &format!("try again; the {who}'s log may say more")),
        }
    }

    /// The conditions of our group's APIService.
    async fn api_service(&self, by: &str) -> Option<String> {
        let (group, version) = by.split_once('/')?;
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}");
        let service: Value = self.get(&path).await.ok()?;
        let conditions = service.pointer("/status/conditions")?.as_array()?;
        let bad = conditions.iter().find(|c| {
            c.get("type").is_some_and(|t| t == "Available") && c.get("status").is_some_and(|s| s != "True")
        })?;
        Some(bad.get("message")?.as_str()?.to_owned())
    }
}

/// The group of the process that decides about a kind.
pub(crate) fn role_of(kind: AutoscalerKind) -> &'static str {
    if kind.decisions() == API_VERSION { "controller" } else { "operator" }
}

/// Whether the last decision is so old that the controller may be down.
pub(crate) fn silent(record: &DecisionRecord, until: Timestamp) -> bool {
    let patience = record.period.checked_mul(MAX_SILENT_PERIODS).unwrap_or(SignedDuration::MAX);
    record.mode != DecisionMode::Off && until.duration_since(record.last) > patience.max(MIN_SILENCE)
}

/// Only the controller has shadow mode.
fn of_shadow(by: &str) -> &'static str {
    if by == API_VERSION { " and differences" } else { "" }
}

/// The path of a resource of ours.
fn path(by: &str, scope: Scope<'_>, resource: &str) -> String {
    within(&format!("/apis/{by}/{resource}"), scope.namespace())
}

/// One line of a watch: a record, or one in the envelope of Kubernetes.
fn record(line: &str) -> Result<DecisionRecord, RequestError> {
    let nonsense = |error: serde_json::Error| RequestError::Nonsense(error.to_string());
    let mut value: Value = serde_json::from_str(line).map_err(nonsense)?;
    if value.get("type").is_some()
        && let Some(object) = value.get_mut("object")
    {
        value = object.take();
    }
    if value.get("kind").is_some_and(|kind| kind == "Status") {
        let message = value.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
        let code = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        return Err(RequestError::Refused { code: code.unwrap_or(500), message });
    }
    serde_json::from_value(value).map_err(nonsense)
}
