//! What the controller has decided, as it serves it through the API server.

use api::decisions::{API_VERSION, DecisionList, DecisionMode, DecisionRecord, DifferenceList};
use cluster::AutoscalerKind;
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::Object;
use super::{Named, Scope, Site, Trouble};

/// A controller that has said nothing for so many periods may be away.
const PERIODS: i32 = 4;
/// Nor is it called away sooner than this.
const LEAST: SignedDuration = SignedDuration::from_mins(1);

/// Why there is no decision to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The controller answers, and has none for this object.
    NoRecord,
    /// The controller cannot be asked.
    Unavailable(Unavailable),
}

/// Why the controller cannot be asked, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

impl Site {
    /// All decisions that are kept of one autoscaler, oldest first.
    pub(crate) async fn decisions_of(
        &self,
        namespace: &str,
        named: &Named,
    ) -> Result<Vec<DecisionRecord>, Missing> {
        let by = named.kind.decisions();
        let path = format!("{}/{}", path(by, Scope::Namespace(namespace), "decisions"), named.record());
        let mut records = self.ask::<DecisionList>(by, &path).await?.items;
        if records.is_empty() {
            return Err(Missing::NoRecord);
        }
        records.sort_by_key(|record| record.first);
        Ok(records)
    }

    /// The latest decision of every autoscaler of a kind and of those that the same process decides about.
    pub(crate) async fn latest_decisions(
        &self,
        kind: AutoscalerKind,
        scope: Scope<'_>,
    ) -> Result<Vec<DecisionRecord>, Missing> {
        let by = kind.decisions();
        Ok(self.ask::<DecisionList>(by, &path(by, scope, "decisions")).await?.items)
    }

    /// The latest decision about each of these objects that there is, and why some are not there if that is not known.
    pub(crate) async fn latest_about(
        &self,
        objects: &[Object],
        scope: Scope<'_>,
    ) -> (Vec<DecisionRecord>, Option<Unavailable>) {
        let (mut records, mut unavailable) = (Vec::new(), None);
        let is_there =
            |kind: AutoscalerKind| objects.iter().any(|object| object.kind.decisions() == kind.decisions());
        for kind in [AutoscalerKind::Hpa, AutoscalerKind::ScaledObject] {
            // Where there is none of its objects, nobody misses who decides about them.
            if kind != AutoscalerKind::Hpa && !is_there(kind) {
                continue;
            }
            match self.latest_decisions(kind, scope).await {
                Ok(found) => records.extend(found),
                Err(Missing::NoRecord) => {}
                Err(Missing::Unavailable(_)) if !is_there(kind) && !objects.is_empty() => {}
                Err(Missing::Unavailable(why)) => unavailable = unavailable.or(Some(why)),
            }
        }
        (records, unavailable)
    }

    /// What shadow mode found.
    pub(crate) async fn differences(&self, scope: Scope<'_>) -> Result<DifferenceList, Missing> {
        self.ask(API_VERSION, &path(API_VERSION, scope, "differences")).await
    }

    /// The decisions that are kept of one autoscaler and those that follow, until the connection ends.
    pub(crate) async fn watch_decisions(
        &self,
        namespace: &str,
        named: &Named,
    ) -> Result<impl Stream<Item = Result<DecisionRecord, Trouble>> + Unpin + use<>, Missing> {
        let by = named.kind.decisions();
        let place = path(by, Scope::Namespace(namespace), "decisions");
        let lines = match self.lines(&format!("{place}/{}?watch=true", named.record())).await {
            Ok(lines) => lines,
            Err(trouble) => return Err(self.missing(by, &trouble).await),
        };
        let records = lines.lines().map(|line| match line {
            Ok(line) => record(&line),
            Err(error) => Err(Trouble::Unreachable(error.to_string())),
        });
        Ok(Box::pin(records))
    }

    async fn ask<T: DeserializeOwned>(&self, by: &str, path: &str) -> Result<T, Missing> {
        match self.get(path).await {
            Ok(answer) => Ok(answer),
            Err(trouble) => Err(self.missing(by, &trouble).await),
        }
    }

    /// What a refusal means; `by` is the group and version that was asked.
    async fn missing(&self, by: &str, trouble: &Trouble) -> Missing {
        let group = by.split('/').next().unwrap_or_default();
        let who = if by == API_VERSION { "controller" } else { "operator" };
        let unavailable = |cause: String, remedy: &str| {
            Missing::Unavailable(Unavailable { cause, remedy: remedy.to_owned() })
        };
        match trouble.code() {
            // Nobody serves the group, or somebody does and does not know the object.
            Some(404) if self.get::<Value>(&format!("/apis/{by}")).await.is_ok() => Missing::NoRecord,
            Some(404) => unavailable(
                format!("this cluster does not serve {by}"),
                &format!("run `plimsoll {who}` on it, with its APIService"),
            ),
            Some(401 | 403) => unavailable(
                trouble.to_string(),
                &format!("ask for the right to get and list decisions{} of {group}", of_shadow(by)),
            ),
            Some(502..=504) => {
                let why = self.api_service(by).await.unwrap_or_else(|| trouble.to_string());
                unavailable(
                    format!("the {who} behind {by} does not answer: {why}"),
                    "check that its pods run and that its Service leads to them",
                )
            }
            None if matches!(trouble, Trouble::Nonsense(_)) => unavailable(
                format!("the {who} speaks another language: {trouble}"),
                &format!("use a `plimsoll` of the {who}'s version"),
            ),
            _ => unavailable(trouble.to_string(), &format!("try again; the {who}'s log may say more")),
        }
    }

    /// What the API server says about the server behind our group.
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

/// Who decides about objects of a kind.
pub(crate) fn decider(kind: AutoscalerKind) -> &'static str {
    if kind.decisions() == API_VERSION { "controller" } else { "operator" }
}

/// Whether nothing was decided for so long before `until` that the controller may have been away.
pub(crate) fn silent(record: &DecisionRecord, until: Timestamp) -> bool {
    let patience = record.period.checked_mul(PERIODS).unwrap_or(SignedDuration::MAX);
    record.mode != DecisionMode::Off && until.duration_since(record.last) > patience.max(LEAST)
}

/// Shadow mode is of the controller.
fn of_shadow(by: &str) -> &'static str {
    if by == API_VERSION { " and differences" } else { "" }
}

/// Where a resource of ours is.
fn path(by: &str, scope: Scope<'_>, resource: &str) -> String {
    match scope {
        Scope::All => format!("/apis/{by}/{resource}"),
        Scope::Namespace(namespace) => format!("/apis/{by}/namespaces/{namespace}/{resource}"),
    }
}

/// One line of a watch: a record, or one in the envelope of Kubernetes.
fn record(line: &str) -> Result<DecisionRecord, Trouble> {
    let nonsense = |error: serde_json::Error| Trouble::Nonsense(error.to_string());
    let mut value: Value = serde_json::from_str(line).map_err(nonsense)?;
    if value.get("type").is_some()
        && let Some(object) = value.get_mut("object")
    {
        value = object.take();
    }
    if value.get("kind").is_some_and(|kind| kind == "Status") {
        let message = value.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
        let code = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        return Err(Trouble::Refused { code: code.unwrap_or(500), message });
    }
    serde_json::from_value(value).map_err(nonsense)
}
