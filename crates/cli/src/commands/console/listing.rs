//! What the user may list: everything, or what is allowed namespace by namespace.

use std::collections::BTreeSet;

use cluster::AutoscalerKind;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::live::decisions::Unavailable;
use crate::live::objects::{Object, ObjectFilter};
use crate::live::{ClusterClient, RequestError, Scope};
use api::decisions::DecisionRecord;

/// Namespaces that are listed concurrently.
const CONCURRENT_NAMESPACES: usize = 8;
/// Namespaces that a note names.
const MAX_LISTED_NAMESPACES: usize = 5;

/// All that could be listed.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) objects: Vec<Object>,
    pub(super) records: Vec<DecisionRecord>,
    pub(super) unavailable: Option<Unavailable>,
    /// What is missing, and the remedy.
    pub(super) notes: Vec<Value>,
    /// The kinds that could be listed as a whole.
    pub(super) kinds: Vec<AutoscalerKind>,
    /// Whether the user may not list some kind as a whole.
    pub(super) is_partial: bool,
}

impl Listing {
    /// Reads everything that the user may see, in one namespace or all.
    pub(super) async fn read(client: &ClusterClient, only: Option<&str>) -> Result<Self, RequestError> {
        let mut found = Self::default();
        let mut namespaces = None;
        let scope = only.map_or(Scope::All, Scope::Namespace);
        let mut shown = BTreeSet::new();
        for kind in AutoscalerKind::ALL {
            let listed = list(client, kind, scope).await;
            let is_forbidden = matches!(listed, Err(RequestError::Refused { code: 403, .. }));
            // A user who may not list a kind is refused, also if the cluster does not have the kind.
            if is_forbidden && kind != AutoscalerKind::Hpa && !is_served(client, kind).await {
                continue;
            }
            found.is_partial |= is_forbidden;
            match listed {
                Ok(objects) => {
                    found.objects.extend(objects);
                    found.kinds.push(kind);
                }
                Err(RequestError::Refused { code: 403, .. }) if only.is_none() => {
                    if namespaces.is_none() {
                        namespaces = Some(candidates(client).await);
                    }
                    let (objects, allowed) = by_namespace(client, kind, namespaces.iter().flatten()).await;
                    found.objects.extend(objects);
                    found.notes.push(forbidden(kind.plural(), &allowed));
                    shown.extend(allowed);
                }
                Err(RequestError::Refused { code: 403, message }) => {
                    found.notes.push(json!({"text": message, "remedy": LIST_PERMISSION_REMEDY}));
                }
                Err(error) => return Err(error),
            }
        }
        if namespaces.is_none() {
            let (records, unavailable) = client.latest_about(&found.objects, scope).await;
            found.records = records;
            found.unavailable = unavailable;
        }
        for namespace in &shown {
            let scope = Scope::Namespace(namespace);
            let (records, unavailable) = client.latest_about(&found.objects, scope).await;
            found.records.extend(records);
            found.unavailable = found.unavailable.or(unavailable);
        }
        Ok(found)
    }
}

const LIST_PERMISSION_REMEDY: &str =
    "ask for the right to list them; `kubectl auth can-i --list` shows what you may do";

async fn list(
    client: &ClusterClient,
    kind: AutoscalerKind,
    scope: Scope<'_>,
) -> Result<Vec<Object>, RequestError> {
    client.objects(ObjectFilter { kinds: &[kind], scope, labels: None, cached: true }).await
}

/// Whether discovery has the API of a kind, as far as is known.
async fn is_served(client: &ClusterClient, kind: AutoscalerKind) -> bool {
    let group = client.get::<Value>(&format!("/apis/{}", kind.api_version())).await;
    !group.is_err_and(|error| error.code() == Some(404))
}

/// The namespaces to try; without the right to list them, that of the context.
async fn candidates(client: &ClusterClient) -> Vec<String> {
    let listed: Result<Value, _> = client.get("/api/v1/namespaces?resourceVersion=0").await;
    let items = listed.ok().and_then(|list| list.get("items").and_then(Value::as_array).cloned());
    let name = |item: &Value| item.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    let names = items.map(|items| items.iter().filter_map(name).collect());
    names.unwrap_or_else(|| vec![client.namespace.clone()])
}

/// The objects of the namespaces in which they may be listed, and these namespaces.
async fn by_namespace(
    client: &ClusterClient,
    kind: AutoscalerKind,
    namespaces: impl Iterator<Item = &String>,
) -> (Vec<Object>, Vec<String>) {
    let names: Vec<String> = namespaces.cloned().collect();
    let answers = stream::iter(names)
        .map(|name| async move {
            let found = list(client, kind, Scope::Namespace(&name)).await.ok();
            found.map(|objects| (name, objects))
        })
        .buffered(CONCURRENT_NAMESPACES)
        .collect::<Vec<_>>()
        .await;
    let (mut objects, mut allowed) = (Vec::new(), Vec::new());
    for (name, found) in answers.into_iter().flatten() {
        allowed.push(name);
        objects.extend(found);
    }
    (objects, allowed)
}

fn forbidden(plural: &str, allowed: &[String]) -> Value {
    let mut names =
        allowed.iter().take(MAX_LISTED_NAMESPACES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if allowed.len() > MAX_LISTED_NAMESPACES {
        names += &format!(" and {} more", allowed.len() - MAX_LISTED_NAMESPACES);
    }
    let text = if allowed.is_empty() {
        format!("you may not list {plural} in any namespace that is known")
    } else {
        format!("you may not list {plural} of all namespaces; shown: {names}")
    };
    json!({"text": text, "remedy": LIST_PERMISSION_REMEDY})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_names_the_namespaces_that_are_shown() {
        let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>();
        let text =
            |count: usize| forbidden("scaledobjects", &names(count))["text"].as_str().unwrap().to_owned();
        assert_eq!(text(0), "you may not list scaledobjects in any namespace that is known");
        assert_eq!(text(1), "you may not list scaledobjects of all namespaces; shown: n0");
        assert!(text(7).ends_with("n3, n4 and 2 more"), "{}", text(7));
    }
}
