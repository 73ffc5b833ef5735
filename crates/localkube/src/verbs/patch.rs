//! The verb `patch`.

use serde_json::{Value, json};

use super::{ApiCall, CallOutcome, WriteMode, create, decode, expect_name, expect_namespace, update};
use crate::catalog::ResourceOrigin;
use crate::fields;
use crate::object::{set, string};
use crate::patch::{self, PatchKind};
use crate::schema;
use crate::status::Status;
use crate::syntax;

/// The content type of server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Patches an object.
pub(crate) async fn patch(call: &ApiCall, content_type: &str, body: &[u8]) -> Result<CallOutcome, Status> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if media == APPLY {
        return apply(call, configuration(call, body)?).await;
    }
    let custom = matches!(call.served.origin, ResourceOrigin::Custom(_));
    let kind = PatchKind::from_content_type(content_type)
        .filter(|kind| !(custom && *kind == PatchKind::Strategic))
        .ok_or_else(|| Status::unsupported_patch(custom && media.starts_with("application/strategic")))?;
    let change: Value = serde_json::from_slice(body).map_err(|_| {
        if call.cluster.behavior().checks_patch_text {
            return Status::bad_request("invalid JSON patch");
        }
        let before = if kind == PatchKind::Strategic { "" } else { "error decoding patch: " };
        Status::bad_request(format!("{before}{}", syntax::explain(body)))
    })?;
    let key = call.key()?;
    let schema = call.served.schema(&call.version);
    let readable = schema.as_deref().filter(|_| !custom);
    update::change(call, &key, WriteMode::Part, |old| {
        let patched = patch::apply(kind, schema.as_deref(), old, &change)?;
        expect_name(&key.name, &patched)?;
        expect_namespace(call, &key, &patched)?;
        let Some(schema) = readable else {
            decode::expect_kind(call, &patched, body)?;
            return Ok(patched);
        };
        patch::check(kind, schema, &patched, &change)?;
        match decode::strict(call, schema, &patched) {
            Some(why) => Err(patch::refuse(kind, &patched, &change, &why)),
            None => Ok(patched),
        }
    })
    .await
}

/// Decodes an applied configuration.
pub(crate) fn configuration(call: &ApiCall, body: &[u8]) -> Result<Value, Status> {
    let what = call.cluster.behavior().applied_configuration;
    let read =
        decode::yaml(body).map_err(|why| Status::bad_request(format!("error decoding {what}: {why}")))?;
    match read {
        Value::Null => Ok(json!({})),
        Value::Object(_) => Ok(read),
        other => Err(Status::bad_request(format!(
            "error decoding {what}: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            schema::go::word(&other)
        ))),
    }
}

/// Server-side apply.
async fn apply(call: &ApiCall, config: Value) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    let force = call.query.is_set("force");
    let schema = call.served.schema(&call.version).ok_or_else(Status::no_path)?;
    let (kind, name) = (string(&config, &["kind"]), string(&config, &["metadata", "name"]));
    if kind != call.served.kind {
        let group_version = string(&config, &["apiVersion"]);
        let group_version =
            if group_version.contains('/') { group_version.to_owned() } else { format!("/{group_version}") };
        return Err(Status::bad_request(format!("invalid object type: {group_version}, Kind={kind}")));
    }
    if !name.is_empty() {
        expect_name(&key.name, &config)?;
    }
    if call.cluster.get(&call.served, &key).is_none() {
        if call.subresource.is_some() {
            return Err(call.not_found(&key.name));
        }
        let mut new = call.writing(|who| fields::apply(&schema, None, &config, who, force))?;
        set(&mut new, &["metadata", "name"], key.name.clone().into());
        return create::applied(call, new).await;
    }
    update::change(call, &key, WriteMode::Applied, |old| {
        call.writing(|who| fields::apply(&schema, Some(old), &config, who, force))
    })
    .await
}
