//! The verbs `get` and `list`.

use std::sync::Arc;

use api::field::FieldError;
use api::selector::{FieldSelector, Selector};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{ApiCall, CallBody, CallOutcome};
use crate::catalog::ServedResource;
use crate::status::Status;
use crate::store::{ObjectKey, Revision, StoredObject};
use crate::syntax;

/// A list of objects, or one page.
#[derive(Debug)]
pub(crate) struct ObjectList {
    pub(crate) objects: Vec<Arc<StoredObject>>,
    pub(crate) revision: Revision,
    /// The token of the next page.
    pub(crate) next: Option<String>,
    /// How many objects follow this page, if that is known.
    pub(crate) remaining: Option<usize>,
}

/// Selects the objects of a request.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFilter {
    namespace: Option<String>,
    name: Option<String>,
    labels: Selector,
    fields: Vec<(FilterField, String, bool)>,
}

/// The source of a selectable field's value.
#[derive(Clone, Copy, Debug)]
enum FilterField {
    Name,
    Namespace,
    Field(usize),
}

impl ObjectFilter {
    /// Parses the selectors of a request.
    pub(crate) fn of(call: &ApiCall) -> Result<Self, Status> {
        let labels = Selector::parse(call.query.get("labelSelector").unwrap_or_default())
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let text = call.query.get("fieldSelector").unwrap_or_default();
        let selector = FieldSelector::parse(text).map_err(|error| Status::bad_request(error.to_string()))?;
        let mut fields = Vec::new();
        for term in selector.terms() {
            let filter_field =
                filter_field(&call.served, &term.field).ok_or_else(|| unsupported(call, &term.field))?;
            fields.push((filter_field, term.value.clone(), !term.differs));
        }
        Ok(Self { namespace: call.namespace.clone(), name: call.name.clone(), labels, fields })
    }

    /// Whether an object is selected.
    pub(crate) fn includes(&self, key: &ObjectKey, object: &StoredObject) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
            && self
                .fields
                .iter()
                .all(|(filter_field, wanted, equal)| (value(*filter_field, key, object) == wanted) == *equal)
            && self.labels.matches(|label| object.label(label))
    }

    /// Whether all objects of a namespace or of the cluster are selected.
    fn is_plain(&self) -> bool {
        self.name.is_none() && self.fields.is_empty() && self.labels.is_everything()
    }
}

fn filter_field(served: &ServedResource, name: &str) -> Option<FilterField> {
    match name {
        "metadata.name" => Some(FilterField::Name),
        "metadata.namespace" if served.namespaced => Some(FilterField::Namespace),
        _ => served.row()?.fields.iter().position(|field| field.name == name).map(FilterField::Field),
    }
}

fn value<'a>(filter_field: FilterField, key: &'a ObjectKey, object: &'a StoredObject) -> &'a str {
    match filter_field {
        FilterField::Name => &key.name,
        FilterField::Namespace => &key.namespace,
        FilterField::Field(index) => object.fields.get(index).map_or("", |value| value),
    }
}

/// The error for a field that is not selectable.
fn unsupported(call: &ApiCall, field: &str) -> Status {
    let selectable = call.served.row().is_none_or(|row| !row.fields.is_empty());
    Status::bad_request(if selectable {
        format!("field label not supported: {field}")
    } else {
        let known = r#"only "metadata.name", "metadata.namespace""#;
        format!("{field:?} is not a known field selector: {known}")
    })
}

/// One object.
pub(crate) fn get(call: &ApiCall) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    revision(call).map_err(Status::internal)?;
    let object = call.cluster.get(&call.served, &key).ok_or_else(|| call.not_found(&key.name))?;
    Ok(CallOutcome::stored(200, object))
}

/// Lists the selected objects.
pub(crate) fn list(call: &ApiCall) -> Result<CallOutcome, Status> {
    let choice = ObjectFilter::of(call)?;
    check_options(call, false)?;
    let limit = integer(call, "limit")?.unwrap_or_default().max(0).unsigned_abs();
    let asked =
        revision(call).map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
    let token = call.query.get("continue").filter(|token| !token.is_empty());
    if token.is_some() && asked.is_some_and(|asked| asked > 0) {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let page = token.map(ContinueToken::read).transpose()?;
    let exact = asked.filter(|_| call.query.get("resourceVersionMatch") == Some("Exact"));
    let store = call.cluster.store();
    if let Some(asked) = asked.filter(|asked| *asked > store.revision()) {
        return Err(Status::too_large_revision(asked, store.revision()));
    }
    let list = match page.as_ref().map(|page| page.revision).or(exact) {
        Some(then) if then != store.revision() => {
            let found = store.list_at(call.served.id, then);
            let objects = found.map_err(|forgotten| match &page {
                Some(_) => Status::expired_page(),
                None => Status::expired(then, forgotten.oldest),
            })?;
            take(&choice, objects.iter(), page.as_ref(), limit, then)
        }
        _ => {
            let after = page.as_ref().map(|page| &page.after);
            let objects = store.list(call.served.id, choice.namespace.as_deref(), after);
            take(&choice, objects, page.as_ref(), limit, store.revision())
        }
    };
    Ok(CallOutcome { code: 200, body: CallBody::List(list) })
}

/// Parses a numeric parameter.
pub(crate) fn integer(call: &ApiCall, name: &str) -> Result<Option<i64>, Status> {
    let text = call.query.get(name).filter(|text| !text.is_empty());
    let bad = |text: &str| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
    text.map(|text| text.parse().map_err(|_| bad(text))).transpose()
}

/// The requested revision, or the error text.
fn revision(call: &ApiCall) -> Result<Option<Revision>, String> {
    let text = call.query.get("resourceVersion").filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(|_| bad_revision(text))).transpose()
}

/// The error text for a revision that is not a number.
pub(crate) fn bad_revision(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Refuses contradictory options.
pub(crate) fn check_options(call: &ApiCall, watch: bool) -> Result<(), Status> {
    let query = |name: &str| call.query.get(name).unwrap_or_default();
    let (matching, version) = (query("resourceVersionMatch"), query("resourceVersion"));
    let initial = call.query.get("sendInitialEvents").is_some();
    let forbidden = |detail: &str| FieldError::forbidden("resourceVersionMatch", detail);
    let mut faults = Vec::new();
    if watch && initial {
        if matching != "NotOlderThan" {
            faults.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        if !matches!(matching, "" | "NotOlderThan") {
            faults.push(FieldError::not_supported("resourceVersionMatch", matching, &["NotOlderThan"]));
        }
    } else if watch && !matching.is_empty() {
        faults.push(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    } else if !watch && initial {
        faults.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    } else if !matching.is_empty() {
        if version.is_empty() {
            faults.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !query("continue").is_empty() {
            faults.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let known = ["Exact", "NotOlderThan", ""];
            faults.push(FieldError::not_supported("resourceVersionMatch", matching, &known));
        }
        if matching == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            faults.push(forbidden(detail));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(ApiCall::invalid_options("ListOptions", &faults)) }
}

/// The selected objects, up to the page limit.
fn take<'a>(
    choice: &ObjectFilter,
    objects: impl Iterator<Item = (&'a ObjectKey, &'a Arc<StoredObject>)>,
    page: Option<&ContinueToken>,
    limit: u64,
    revision: Revision,
) -> ObjectList {
    let rest = objects.filter(|(key, _)| page.is_none_or(|page| **key > page.after));
    let mut chosen = rest.filter(|(key, object)| choice.includes(key, object));
    let mut list = ObjectList { objects: Vec::new(), revision, next: None, remaining: None };
    let mut last: Option<&ObjectKey> = None;
    while let Some((key, object)) = chosen.next() {
        if limit > 0 && list.objects.len() as u64 == limit {
            list.next = last.map(|key| ContinueToken { revision, after: key.clone() }.token());
            list.remaining = choice.is_plain().then(|| 1 + chosen.count());
            break;
        }
        last = Some(key);
        list.objects.push(Arc::clone(object));
    }
    list
}

/// The start of a page, encoded in the `continue` parameter.
struct ContinueToken {
    revision: Revision,
    after: ObjectKey,
}

impl ContinueToken {
    fn token(&self) -> String {
        let ObjectKey { namespace, name } = &self.after;
        URL_SAFE_NO_PAD.encode(
            json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": [namespace, name]}).to_string(),
        )
    }

    fn read(token: &str) -> Result<Self, Status> {
        let invalid = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let refused = || invalid("server does not recognize this encoded version ");
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| invalid(&error.to_string()))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| invalid(&syntax::explain(&bytes)))?;
        let text =
            |index: usize| value.get("start").and_then(|start| start.get(index)).and_then(Value::as_str);
        let revision = value.get("rv").and_then(Value::as_u64).ok_or_else(refused)?;
        let after = ObjectKey::new(text(0).ok_or_else(refused)?, text(1).ok_or_else(refused)?);
        Ok(Self { revision, after })
    }
}
