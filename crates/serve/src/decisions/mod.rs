//! `decisions.plimsoll.dev`: decisions, and differences between shadow mode and the active controller.
//!
//! ```text
//! list    lists, as JSON or as a table
//! passes  every pass in short
//! watch   watches
//! table   tables for kubectl
//! ```

mod list;
mod passes;
mod table;
mod watch;

use std::sync::Arc;

use api::decisions::passes::{PassList, PassQuery, UnknownCursor};
use api::decisions::{DecisionMeta, DecisionRecord, DifferenceList, GROUP, OPERATOR_GROUP, VERSION};
use api::selector::{FieldSelector, Selector};
use futures::stream::BoxStream;
use http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::json;
use tower::util::BoxCloneSyncService;

use crate::api_group::{ApiGroupVersion, ApiResource};
use crate::include_object::IncludeObject;
use crate::media_type::accepted_media_types;
use crate::request::AuthorizedRequest;
use crate::response::{self, Body};
use crate::status::{Status, StatusDetails};

/// Provides decisions.
pub trait DecisionSource: Send + Sync {
    /// The latest decision of each autoscaler, in a namespace or all.
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord>;

    /// All stored decisions of one autoscaler, oldest first; `name` is that of the record (`hpa.web`). None if there is
    /// no such autoscaler.
    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>>;

    /// The pass of one autoscaler that was in force at a time; if that is not kept, the oldest that is. None if there is no such
    /// autoscaler.
    fn at(&self, namespace: &str, name: &str, at: Timestamp) -> Option<DecisionRecord> {
        let mut kept = self.of(namespace, name)?;
        let place = kept.iter().rposition(|record| record.first <= at).unwrap_or(0);
        (place < kept.len()).then(|| kept.swap_remove(place))
    }

    /// Every pass of one autoscaler in a span of time, oldest first. None if there is no such autoscaler.
    fn between(
        &self,
        namespace: &str,
        name: &str,
        since: Timestamp,
        until: Timestamp,
    ) -> Option<Vec<DecisionRecord>> {
        let mut kept = self.of(namespace, name)?;
        kept.retain(|record| record.last >= since && record.first <= until);
        Some(kept)
    }

    /// Passes in short, in the order in which they were made.
    fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        let _ = query;
        Ok(PassList::default())
    }

    /// Future decisions of one autoscaler. None if there is no such autoscaler.
    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>>;

    /// Future decisions of all autoscalers, in a namespace or all. None if that is not supported.
    fn follow_all(&self, namespace: Option<&str>) -> Option<BoxStream<'static, DecisionRecord>> {
        let _ = namespace;
        None
    }

    /// Differences that shadow mode found, in a namespace or all.
    fn differences(&self, namespace: Option<&str>) -> DifferenceList;
}

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseForm {
    Json,
    Table(IncludeObject),
}

/// Selects records of a list.
struct RecordFilter {
    fields: FieldSelector,
    labels: Selector,
}

/// The API group of the controller.
pub(crate) fn group(decisions: Arc<dyn DecisionSource>) -> ApiGroupVersion {
    group_of(GROUP, decisions, resources())
}

/// The API group of the operator, which runs in parallel with the controller and needs its own group.
pub fn operator_group(decisions: Arc<dyn DecisionSource>) -> ApiGroupVersion {
    let mut resources = resources();
    resources.retain(|resource| matches!(resource.name.as_str(), "decisions" | "passes"));
    group_of(OPERATOR_GROUP, decisions, resources)
}

fn group_of(
    group: &'static str,
    decisions: Arc<dyn DecisionSource>,
    resources: Vec<ApiResource>,
) -> ApiGroupVersion {
    let route = tower::service_fn(move |request: Request<Body>| {
        let decisions = Arc::clone(&decisions);
        async move {
            let found = match request.extensions().get::<AuthorizedRequest>() {
                Some(call) => answer(group, decisions.as_ref(), call),
                None => Err(Status::internal("the request has not been authorized")),
            };
            Ok(found.unwrap_or_else(|error| response::status(&error)))
        }
    });
    ApiGroupVersion::new(group, VERSION, resources, BoxCloneSyncService::new(route))
}

fn resources() -> Vec<ApiResource> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let time =
        |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let any = |description: &str| json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true});
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let decisions = ApiResource {
        name: "decisions".to_owned(),
        singular: "decision".to_owned(),
        kind: "Decision".to_owned(),
        verbs: words(&["get", "list", "watch"]),
        description: "Decision is what an autoscaler decided, once or several times in a row, and why."
            .to_owned(),
        properties: json!({
            "mode": text("What the controller does with it: active, shadow, dry-run or off."),
            "first": time("When it was first made."),
            "last": time("When it was last made."),
            "times": {"type": "integer", "format": "int64", "description": "How many times in a row it was made."},
            "period": text("Time between two decisions."),
            "spec": any("What was asked for."),
            "round": any("What triggers said before it, where the target is scaled by events."),
            "decision": any("The decision as it was last made: what was seen, what each metric proposed, which limits applied."),
        }),
        ..ApiResource::default()
    };
    let differences = ApiResource {
        name: "differences".to_owned(),
        singular: "difference".to_owned(),
        kind: "Difference".to_owned(),
        verbs: words(&["list"]),
        description: "Difference is where shadow mode and the controller that acts did not agree.".to_owned(),
        properties: json!({
            "since": time("Since when."),
            "last": time("When it was last seen."),
            "over": {"type": "boolean", "description": "Whether it is over."},
            "field": text("What differs: desiredReplicas, AbleToScale, ScalingActive or ScalingLimited."),
            "theirs": text("What the controller that acts says."),
            "ours": text("What we would say."),
            "why": text("Why, in one sentence."),
        }),
        ..ApiResource::default()
    };
    vec![decisions, differences, passes::resource()]
}

fn answer(
    group: &'static str,
    decisions: &dyn DecisionSource,
    call: &AuthorizedRequest,
) -> Result<Response<Body>, Status> {
    let segments: Vec<&str> = call.path.trim_matches('/').split('/').skip(3).collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(Status::no_path());
    }
    let (namespace, rest) = match segments.as_slice() {
        ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let watch = call.query.is_set("watch");
    let allowed = |form: fn(&AuthorizedRequest) -> Result<ResponseForm, Status>| {
        if call.method == Method::GET { form(call) } else { Err(Status::not_allowed()) }
    };
    match (rest, namespace) {
        (["decisions"], _) => {
            let form = allowed(ResponseForm::of)?;
            let filter = RecordFilter::of(call)?;
            if watch {
                return watch::many(group, decisions, namespace, &filter, form, call);
            }
            let mut records = decisions.latest(namespace);
            records.retain(|record| filter.takes(&record.metadata));
            Ok(list::decisions(group, records, form, call.clock.now()))
        }
        (["decisions", name], Some(namespace)) => {
            let form = allowed(ResponseForm::of)?;
            if watch {
                return watch::one(group, decisions, namespace, name, watch::WatchStart::All, form, call);
            }
            let (at, since, until) = (time(call, "at")?, time(call, "since")?, time(call, "until")?);
            let records = match (at, since, until) {
                (Some(at), ..) => decisions.at(namespace, name, at).map(|record| vec![record]),
                (None, None, None) => decisions.of(namespace, name),
                (None, since, until) => {
                    let (since, until) = (since.unwrap_or(Timestamp::MIN), until.unwrap_or(Timestamp::MAX));
                    decisions.between(namespace, name, since, until)
                }
            };
            let records = records.ok_or_else(|| missing(group, name))?;
            Ok(list::decisions(group, records, form, call.clock.now()))
        }
        (["passes"], _) => {
            if call.method != Method::GET {
                return Err(Status::not_allowed());
            }
            if watch {
                return Err(Status::no_watch(StatusDetails::new(group, "passes", "")));
            }
            passes::answer(group, decisions, namespace, call)
        }
        (["differences"], _) if group == GROUP => {
            let form = allowed(ResponseForm::of)?;
            if watch {
                return Err(Status::no_watch(StatusDetails::new(GROUP, "differences", "")));
            }
            let filter = RecordFilter::of(call)?;
            let mut found = decisions.differences(namespace);
            found.items.retain(|record| filter.takes(&record.metadata));
            Ok(list::differences(&found, form, call.clock.now()))
        }
        _ => Err(Status::no_path()),
    }
}

/// A time in the query.
fn time(call: &AuthorizedRequest, parameter: &str) -> Result<Option<Timestamp>, Status> {
    let Some(text) = call.query.get(parameter).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let text = api::gotext::quote(text);
        Status::bad_request(format!(
            "{parameter}: Invalid value: {text}: must be a time as in RFC 3339, such as 2026-01-05T09:10:30Z"
        ))
    })
}

fn missing(group: &'static str, name: &str) -> Status {
    Status::not_found(StatusDetails::new(group, "decisions", name))
}

impl ResponseForm {
    fn of(call: &AuthorizedRequest) -> Result<Self, Status> {
        let style = IncludeObject::of(&call.query);
        let found = accepted_media_types(&call.headers).iter().find_map(|media| {
            let table = |version| media.is("Table", "meta.k8s.io", version);
            if media.is_plain() {
                Some(Ok(Self::Json))
            } else if table("v1") || table("v1beta1") {
                Some(style.clone().map(Self::Table))
            } else {
                None
            }
        });
        found.ok_or_else(Status::not_acceptable)?
    }
}

impl RecordFilter {
    fn of(call: &AuthorizedRequest) -> Result<Self, Status> {
        let given = |key: &str| call.query.get(key).unwrap_or_default();
        let fields = FieldSelector::parse(given("fieldSelector"));
        let fields = fields.map_err(|error| Status::bad_request(error.to_string()))?;
        let known = fields.restricted_to(&["metadata.name", "metadata.namespace"]);
        known.map_err(|error| Status::bad_request(error.to_string()))?;
        let labels = Selector::parse(given("labelSelector"));
        let labels = labels.map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(Self { fields, labels })
    }

    /// Records have no labels.
    fn takes(&self, meta: &DecisionMeta) -> bool {
        let field =
            |field: &str| if field == "metadata.name" { meta.name.as_str() } else { meta.namespace.as_str() };
        self.fields.matches(field) && self.labels.matches(|_| None)
    }
}

#[cfg(test)]
pub(crate) mod tests;
