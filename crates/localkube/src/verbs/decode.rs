//! Decodes request bodies.

use api::field::FieldError;
use serde_json::{Map, Value};

use super::{ApiCall, cause, in_version};
use crate::catalog::ResourceOrigin;
use crate::duplicates;
use crate::kinds::KINDS;
use crate::object::string;
use crate::protobuf::{self, ProtobufError};
use crate::schema;
use crate::status::{About, Status};
use crate::syntax;

/// Decodes an object from a body.
pub(crate) fn object(call: &ApiCall, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let mut value = json(call, content_type, body)?;
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    if let Some(wrong) = not_an_object(&value) {
        return Err(unrecognized(call, body, &wrong));
    }
    expect_kind(call, &value, body)?;
    Ok(value)
}

/// The error if kind and version cannot be decoded.
fn not_an_object(value: &Value) -> Option<String> {
    if !value.is_object() {
        let whole = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        return Some(format!(
            "json: cannot unmarshal {} into Go value of type {whole}",
            schema::go::word(value)
        ));
    }
    ["apiVersion", "kind"].into_iter().find_map(|field| match value.get(field) {
        None | Some(Value::Null | Value::String(_)) => None,
        Some(other) => Some(format!(
            "json: cannot unmarshal {} into Go struct field .{field} of type string",
            schema::go::word(other)
        )),
    })
}

/// Decodes JSON, YAML or protobuf.
pub(crate) fn json(call: &ApiCall, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => {
            let (value, twice) =
                duplicates::read(body).map_err(|()| unrecognized(call, body, &syntax::explain(body)))?;
            repeated(call, &twice)?;
            Ok(value)
        }
        "application/yaml" => {
            yaml(body).map_err(|why| Status::bad_request(format!("error converting YAML to JSON: {why}")))
        }
        // Custom resources have no protobuf messages, but their scale has.
        protobuf::MEDIA_TYPE
            if call.served.row().is_some() || call.subresource.as_deref() == Some("scale") =>
        {
            let expected = call.served.api_version(&call.version);
            protobuf::read(body, &expected, &call.served.kind).map_err(|error| match error {
                ProtobufError::Envelope(why) => unreadable(call, body, &why.to_string()),
                ProtobufError::Object { version, kind, why } => {
                    schema::unreadable(&kind, &version, &why.to_string())
                }
            })
        }
        _ => Err(Status::unsupported_media_type()),
    }
}

/// Reports duplicate fields as an error, as warnings or not at all, as the request asks.
fn repeated(call: &ApiCall, twice: &[String]) -> Result<(), Status> {
    let texts = twice.iter().map(|path| format!("duplicate field \"{path}\""));
    match call.query.get("fieldValidation").unwrap_or("Warn") {
        "Strict" if !twice.is_empty() => {
            let strict = format!("strict decoding error: {}", texts.collect::<Vec<_>>().join(", "));
            Err(schema::unreadable(&call.served.kind, &call.version, &strict))
        }
        "Warn" => {
            texts.for_each(|text| call.warn(text));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Parses one YAML document.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(body);
    let source = api::yaml::SourceFile::new("body", text.as_ref());
    let documents = api::yaml::parse(&source).map_err(|problem| problem.to_string())?;
    match documents.as_slice() {
        [] => Ok(Value::Null),
        [one] => Ok(one.root.to_json()),
        _ => Err("more than one document".to_owned()),
    }
}

/// Checks that the object has the kind and version of the path; built-in kinds may omit them.
pub(crate) fn expect_kind(call: &ApiCall, value: &Value, body: &[u8]) -> Result<(), Status> {
    let (kind, api_version) = (string(value, &["kind"]), string(value, &["apiVersion"]));
    let expected = call.served.api_version(&call.version);
    let custom = call.served.row().is_none();
    if custom && kind.is_empty() {
        let text = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body));
        return Err(unreadable(call, body, &text));
    }
    if api_version.matches('/').count() > 1 {
        let text = format!("unexpected GroupVersion string: {api_version}");
        return Err(unreadable(call, body, &text));
    }
    let same_version = api_version.is_empty() || api_version == expected;
    let same_kind = kind.is_empty() || kind == call.served.kind;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let registered =
        KINDS.iter().any(|row| row.group == group && row.versions.contains(&version) && row.kind == kind);
    let served = &call.served.kind;
    Err(match (same_version, same_kind) {
        (true, true) => return Ok(()),
        (true, false) if custom => {
            let fault = FieldError::invalid("kind", kind, format!("must be {served}"));
            let about = About::new(&call.served.group, kind, string(value, &["metadata", "name"]));
            Status::invalid(about, vec![cause(&fault)])
        }
        (_, false) if registered => {
            let package = match call.served.group.split('.').next() {
                None | Some("") => "core",
                Some(group) => group,
            };
            let converting =
                format!("converting ({version}.{kind}) to ({package}.{served}): unknown conversion");
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {served}: {converting}"
            ))
        }
        (false, _) if registered || custom => Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )),
        _ => Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {served}: no kind {kind:?} is registered for version \
             {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    })
}

/// Checks types and fields, drops unknown fields and applies defaults.
pub(crate) fn shape(call: &ApiCall, value: &mut Value) -> Result<(), Status> {
    if let Some(map) = value.as_object_mut() {
        map.insert("kind".to_owned(), call.served.kind.clone().into());
        map.insert("apiVersion".to_owned(), call.served.api_version(&call.version).into());
    }
    if let Some(schema) = call.served.schema(&call.version) {
        if let Some(wrong) = schema::type_error(&schema, value) {
            return Err(schema::unreadable(&call.served.kind, &call.version, &wrong));
        }
        unknown_fields(call, &schema, value)?;
        schema::prune(&schema, value);
    }
    match &call.served.origin {
        ResourceOrigin::BuiltIn(kind) => {
            // Nulls count as absent, but an explicitly empty list is not defaulted.
            drop_nulls(value);
            kind.rules.complete(value, &call.version, call.cluster.gates());
            if kind.kind == api::autoscaling::KIND {
                // Crate `api` encodes autoscalers; each version adds its own defaults.
                through_storage(call, value);
            } else if let Some(schema) = call.served.schema(&call.version) {
                schema::normalize(&schema, value);
            }
        }
        ResourceOrigin::Custom(definition) => definition.default(&call.version, value),
    }
    Ok(())
}

/// Applies the defaults of the storage version as well.
fn through_storage(call: &ApiCall, value: &mut Value) {
    let Some(storage) = call.served.versions.first().filter(|storage| **storage != call.version) else {
        return;
    };
    let mut stored = in_version(&call.served, value.clone(), storage);
    if let Some(row) = call.served.row() {
        (row.rules.default)(&mut stored, storage);
    }
    *value = in_version(&call.served, stored, &call.version);
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Reports unknown fields as an error, as warnings or not at all, as the request asks.
fn unknown_fields(call: &ApiCall, schema: &schema::Schema, value: &Value) -> Result<(), Status> {
    let wanted = call.query.get("fieldValidation").unwrap_or("Warn");
    if wanted == "Ignore" {
        return Ok(());
    }
    if let Some(strict) = strict(call, schema, value) {
        return Err(schema::unreadable(&call.served.kind, &call.version, &strict));
    }
    let unknown = schema::unknown_fields(schema, value);
    for path in unknown {
        call.warn(format!("unknown field \"{path}\""));
    }
    Ok(())
}

/// The error of a request with strict field validation.
pub(crate) fn strict(call: &ApiCall, schema: &schema::Schema, value: &Value) -> Option<String> {
    if call.query.get("fieldValidation") != Some("Strict") {
        return None;
    }
    let unknown = schema::unknown_fields(schema, value);
    let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    (!texts.is_empty()).then(|| format!("strict decoding error: {}", texts.join(", ")))
}

/// 400: the body is not valid JSON.
fn unrecognized(call: &ApiCall, body: &[u8], why: &str) -> Status {
    unreadable(call, body, &format!("couldn't get version/kind; json parse error: {why}"))
}

/// 400: the body is not an object of the kind.
fn unreadable(call: &ApiCall, body: &[u8], why: &str) -> Status {
    let (kind, shown) = (&call.served.kind, syntax::excerpt(body));
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}
