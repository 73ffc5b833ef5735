//! What the controller has decided, as it serves it through the API server.

use api::decisions::{API_VERSION, DecisionList, DecisionRecord, DifferenceList, GROUP, Mode, VERSION};
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

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
        let path = format!("{}/{}", path(Scope::Namespace(namespace), "decisions"), named.record());
        let mut records = self.ask::<DecisionList>(&path).await?.items;
        if records.is_empty() {
            return Err(Missing::NoRecord);
        }
        records.sort_by_key(|record| record.first);
        Ok(records)
    }

    /// The latest decision of every autoscaler.
    pub(crate) async fn latest_decisions(&self, scope: Scope<'_>) -> Result<Vec<DecisionRecord>, Missing> {
        Ok(self.ask::<DecisionList>(&path(scope, "decisions")).await?.items)
    }

    /// What shadow mode found.
    pub(crate) async fn differences(&self, scope: Scope<'_>) -> Result<DifferenceList, Missing> {
        self.ask(&path(scope, "differences")).await
    }

    /// The decisions that are kept of one autoscaler and those that follow, until the connection ends.
    pub(crate) async fn watch_decisions(
        &self,
        namespace: &str,
        named: &Named,
    ) -> Result<impl Stream<Item = Result<DecisionRecord, Trouble>> + Unpin + use<>, Missing> {
        let path =
            format!("{}/{}?watch=true", path(Scope::Namespace(namespace), "decisions"), named.record());
        let lines = match self.lines(&path).await {
            Ok(lines) => lines,
            Err(trouble) => return Err(self.missing(&trouble).await),
        };
        let records = lines.lines().map(|line| match line {
            Ok(line) => record(&line),
            Err(error) => Err(Trouble::Unreachable(error.to_string())),
        });
        Ok(Box::pin(records))
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Missing> {
        match self.get(path).await {
            Ok(answer) => Ok(answer),
            Err(trouble) => Err(self.missing(&trouble).await),
        }
    }

    /// What a refusal means.
    async fn missing(&self, trouble: &Trouble) -> Missing {
        let unavailable = |cause: String, remedy: &str| {
            Missing::Unavailable(Unavailable { cause, remedy: remedy.to_owned() })
        };
        match trouble.code() {
            // Nobody serves the group, or somebody does and does not know the object.
            Some(404) if self.get::<Value>(&format!("/apis/{GROUP}/{VERSION}")).await.is_ok() => {
                Missing::NoRecord
            }
            Some(404) => unavailable(
                format!("this cluster does not serve {API_VERSION}"),
                "run `plimsoll controller` on it, with its APIService",
            ),
            Some(401 | 403) => unavailable(
                trouble.to_string(),
                &format!("ask for the right to get and list decisions and differences of {GROUP}"),
            ),
            Some(502..=504) => {
                let why = self.api_service().await.unwrap_or_else(|| trouble.to_string());
                unavailable(
                    format!("the controller behind {API_VERSION} does not answer: {why}"),
                    "check that its pods run and that its Service leads to them",
                )
            }
            None if matches!(trouble, Trouble::Nonsense(_)) => unavailable(
                format!("the controller speaks another language: {trouble}"),
                "use a `plimsoll` of the controller's version",
            ),
            _ => unavailable(trouble.to_string(), "try again; the controller's log may say more"),
        }
    }

    /// What the API server says about the server behind our group.
    async fn api_service(&self) -> Option<String> {
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.{GROUP}");
        let service: Value = self.get(&path).await.ok()?;
        let conditions = service.pointer("/status/conditions")?.as_array()?;
        let bad = conditions.iter().find(|c| {
            c.get("type").is_some_and(|t| t == "Available") && c.get("status").is_some_and(|s| s != "True")
        })?;
        Some(bad.get("message")?.as_str()?.to_owned())
    }
}

/// Whether nothing was decided for so long before `until` that the controller may have been away.
pub(crate) fn silent(record: &DecisionRecord, until: Timestamp) -> bool {
    let patience = record.period.checked_mul(PERIODS).unwrap_or(SignedDuration::MAX);
    record.mode != Mode::Off && until.duration_since(record.last) > patience.max(LEAST)
}

/// Where a resource of ours is.
fn path(scope: Scope<'_>, resource: &str) -> String {
    match scope {
        Scope::All => format!("/apis/{API_VERSION}/{resource}"),
        Scope::Namespace(namespace) => format!("/apis/{API_VERSION}/namespaces/{namespace}/{resource}"),
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
