//! Reads decisions of controller and operator through the API server.

use api::decisions::{API_VERSION, DecisionMode, DecisionRecord, DifferenceList};
use cluster::AutoscalerKind;
use cluster::request::{below, with_query, within};
use engine::explain::Row;
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::objects::Object;
use super::{AutoscalerName, ClusterClient, RequestError, Scope, decoded};

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

/// Why decisions cannot be read, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

/// Decisions that were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodedDecisions {
    pub(crate) records: Vec<DecisionRecord>,
    /// Why others are missing: another version wrote them.
    pub(crate) undecodable: Option<Unavailable>,
}

impl Unavailable {
    /// A text of two lines.
    pub(crate) fn note(&self) -> String {
        format!("decisions cannot be read: {}\n  remedy: {}", self.cause, self.remedy)
    }

    fn undecodable(by: &str, cause: String) -> Self {
        Self { cause, remedy: format!("use a `plimsoll` of the {}'s version", role(by)) }
    }
}

impl DecodedDecisions {
    /// The decisions. A warning on standard error names those that cannot be decoded.
    pub(crate) fn or_warn(self) -> Vec<DecisionRecord> {
        if let Some(why) = &self.undecodable {
            eprintln!("warning: {}", why.note());
        }
        self.records
    }

    /// The warning as a row of an explanation.
    pub(crate) fn warning(&self) -> Option<Row> {
        let why = self.undecodable.as_ref()?;
        let text = format!("decisions cannot be read: {}; remedy: {}", why.cause, why.remedy);
        Some(Row { label: "warning".to_owned(), text, decided: false })
    }
}

impl ClusterClient {
    /// The present by the clock of the cluster, as far as the decisions about these autoscalers show it.
    pub(crate) async fn present(&self, namespace: &str, names: &[AutoscalerName]) -> Timestamp {
        let mut present = self.now();
        for named in names {
            // Whoever reads the decisions reports why they cannot be read.
            if let Ok(found) = self.decisions_of(namespace, named).await {
                present = no_earlier_than(present, &found.records);
            }
        }
        present
    }

    /// All decisions that are kept of one autoscaler, oldest first.
    pub(crate) async fn decisions_of(
        &self,
        namespace: &str,
        named: &AutoscalerName,
    ) -> Result<DecodedDecisions, MissingDecision> {
        let found = self.decisions_with(namespace, named, &[]).await?;
        if found.records.is_empty() { Err(MissingDecision::NoRecord) } else { Ok(found) }
    }

    /// Decisions of one autoscaler that a query selects, oldest first.
    async fn decisions_with(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        query: &[(&str, &str)],
    ) -> Result<DecodedDecisions, MissingDecision> {
        let by = named.kind.decisions();
        let record = below(&path(by, Scope::Namespace(namespace), "decisions"), [&*named.record()]);
        let path = with_query(&record, query.iter().copied());
        let mut found = self.list_decisions(by, &path).await?;
        found.records.sort_by_key(|record| record.first);
        Ok(found)
    }

    /// The pass in force at a time; if it is not kept, the oldest that is, which began later.
    pub(crate) async fn decision_at(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        at: Timestamp,
    ) -> Result<DecodedDecisions, MissingDecision> {
        self.decisions_with(namespace, named, &[("at", at.to_string().as_str())]).await
    }

    /// Every pass of one autoscaler in a span of time, oldest first.
    pub(crate) async fn passes_between(
        &self,
        namespace: &str,
        named: &AutoscalerName,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<DecodedDecisions, MissingDecision> {
        let (since, until) = (since.to_string(), until.to_string());
        self.decisions_with(namespace, named, &[("since", since.as_str()), ("until", &until)]).await
    }

    /// The latest decisions of the process that decides about a kind.
    pub(crate) async fn latest_decisions(
        &self,
        kind: AutoscalerKind,
        scope: Scope<'_>,
    ) -> Result<DecodedDecisions, MissingDecision> {
        let by = kind.decisions();
        self.list_decisions(by, &path(by, scope, "decisions")).await
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
                Ok(found) => {
                    records.extend(found.records);
                    unavailable = unavailable.or(found.undecodable);
                }
                Err(MissingDecision::NoRecord) => {}
                Err(MissingDecision::Unavailable(_)) if !is_there(kind) && !objects.is_empty() => {}
                Err(MissingDecision::Unavailable(why)) => unavailable = unavailable.or(Some(why)),
            }
        }
        (records, unavailable)
    }

    /// What shadow mode found.
    pub(crate) async fn differences(&self, scope: Scope<'_>) -> Result<DifferenceList, MissingDecision> {
        match self.get(&path(API_VERSION, scope, "differences")).await {
            Ok(found) => Ok(found),
            Err(error) => Err(self.missing(API_VERSION, &error).await),
        }
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

    /// The decisions of a list. If none of them can be decoded, the list is not empty but unavailable.
    async fn list_decisions(&self, by: &str, path: &str) -> Result<DecodedDecisions, MissingDecision> {
        let decoded = self.get_plain(path).await.and_then(|text| decoded::decisions(&text));
        let (records, undecodable) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return Err(self.missing(by, &error).await),
        };
        let undecodable = undecodable.map(|cause| Unavailable::undecodable(by, cause));
        match undecodable {
            Some(why) if records.is_empty() => Err(MissingDecision::Unavailable(why)),
            undecodable => Ok(DecodedDecisions { records, undecodable }),
        }
    }

    /// The meaning of an error; `by` is the group and version of the request.
    async fn missing(&self, by: &str, error: &RequestError) -> MissingDecision {
        let group = by.split('/').next().unwrap_or_default();
        let who = role(by);
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
            None if matches!(error, RequestError::InvalidResponse(_)) => MissingDecision::Unavailable(
                Unavailable::undecodable(by, format!("no decisions of the {who}: {error}")),
            ),
            _ => {
                let own = error.remedy().map(str::to_owned);
                let remedy = own.unwrap_or_else(|| format!("try again; the {who}'s log may say more"));
                unavailable(error.to_string(), &remedy)
            }
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

/// The time of the last of these decisions, if it is later than `now`: the clock of a cluster may be ahead of this machine's, in
/// `plimsoll up --speed` by hours.
pub(crate) fn no_earlier_than<'a>(
    now: Timestamp,
    records: impl IntoIterator<Item = &'a DecisionRecord>,
) -> Timestamp {
    records.into_iter().map(|record| record.last).fold(now, Ord::max)
}

/// The group of the process that decides about a kind.
pub(crate) fn role_of(kind: AutoscalerKind) -> &'static str {
    role(kind.decisions())
}

/// The process that serves a group and version.
fn role(by: &str) -> &'static str {
    if by == API_VERSION { "controller" } else { "operator" }
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
    let nonsense = |error: serde_json::Error| RequestError::InvalidResponse(error.to_string());
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
    serde_json::from_value(value).map_err(|error| RequestError::Undecodable(error.to_string()))
}

#[cfg(test)]
mod tests;
