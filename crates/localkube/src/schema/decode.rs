//! Type errors with the texts of Go's decoder.

use quantity::Quantity;
use serde_json::{Number, Value};

use super::go::word;
use super::{FieldSchema, ObjectSchema, Scalar, Schema, SchemaShape};
use crate::status::Status;

/// Fields with named Go types, by struct.
const NAMED_GO_TYPES: &[(&str, &str, &str)] = &[
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("Container", "terminationMessagePolicy", "v1.TerminationMessagePolicy"),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("ServicePort", "protocol", "v1.Protocol"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("Secret", "type", "v1.SecretType"),
    ("DeploymentStrategy", "type", "v1.DeploymentStrategyType"),
    ("StatefulSetUpdateStrategy", "type", "v1.StatefulSetUpdateStrategyType"),
    ("StatefulSetSpec", "podManagementPolicy", "v1.PodManagementPolicyType"),
    ("JobSpec", "completionMode", "v1.CompletionMode"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodStatus", "phase", "v1.PodPhase"),
    ("PodStatus", "qosClass", "v1.PodQOSClass"),
    ("PodCondition", "type", "v1.PodConditionType"),
    ("PodCondition", "status", "v1.ConditionStatus"),
    ("NodeCondition", "type", "v1.NodeConditionType"),
    ("NodeCondition", "status", "v1.ConditionStatus"),
    ("DeploymentCondition", "type", "v1.DeploymentConditionType"),
    ("DeploymentCondition", "status", "v1.ConditionStatus"),
    ("Condition", "status", "v1.ConditionStatus"),
    ("NamespaceStatus", "phase", "v1.NamespacePhase"),
    ("Taint", "effect", "v1.TaintEffect"),
    ("Toleration", "effect", "v1.TaintEffect"),
    ("Toleration", "operator", "v1.TolerationOperator"),
    ("HTTPGetAction", "scheme", "v1.URIScheme"),
    ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
    ("ObjectReference", "uid", "types.UID"),
    ("ObjectMeta", "uid", "types.UID"),
    ("OwnerReference", "uid", "types.UID"),
    ("ManagedFieldsEntry", "operation", "v1.ManagedFieldsOperationType"),
];

/// Embedded Go structs, which appear in error paths.
const EMBEDDED_GO_STRUCTS: &[(&str, &[&str], &str)] =
    &[("Probe", &["exec", "httpGet", "tcpSocket", "grpc"], "ProbeHandler")];

/// The type error of an object with Go's text, without the surrounding sentence.
///
/// The first error is reported, but a type with its own decoder, such as a quantity or a time, ends decoding immediately.
pub fn type_error(schema: &Schema, value: &Value) -> Option<String> {
    let mut reader = TypeChecker::default();
    let ended = if schema.name.is_empty() {
        // Only the metadata of custom resources is decoded, separately.
        let metadata = schema.field("metadata").schema().zip(value.get("metadata"));
        metadata.and_then(|(schema, metadata)| reader.read(schema, metadata, None).err())
    } else {
        reader.read(schema, value, None).err()
    };
    ended.or(reader.first)
}

/// 400: the object cannot be decoded as its kind.
pub fn unreadable(kind: &str, version: &str, why: &str) -> Status {
    Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

#[derive(Default)]
struct TypeChecker {
    path: Vec<String>,
    first: Option<String>,
}

/// The current field: name of its struct, and its own.
type FieldContext<'a> = Option<(&'a str, &'a str)>;

impl TypeChecker {
    fn read(&mut self, schema: &Schema, value: &Value, at: FieldContext<'_>) -> Result<(), String> {
        match (&schema.shape, value) {
            (_, Value::Null) | (SchemaShape::Any, _) => Ok(()),
            (SchemaShape::Object(object), Value::Object(map)) => {
                for (key, value) in map {
                    if let Some(field) = object.fields.get(key) {
                        self.field(schema.short_name(), key, field, value)?;
                    } else if let Some(values) = &object.values {
                        self.read(values.schema(), value, at)?;
                    }
                }
                Ok(())
            }
            (SchemaShape::List(list), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.read(list.items.schema(), item, at))
            }
            (SchemaShape::Object(_) | SchemaShape::List(_), _) => {
                self.remember(word(value), &type_name(schema), at);
                Ok(())
            }
            (SchemaShape::Scalar(scalar), _) => self.scalar(*scalar, value, at),
        }
    }

    fn field(
        &mut self,
        structure: &str,
        key: &str,
        field: &FieldSchema,
        value: &Value,
    ) -> Result<(), String> {
        let depth = self.path.len();
        if let Some(embedded) = embedded(structure, key) {
            self.path.push(embedded.to_owned());
        }
        self.path.push(key.to_owned());
        let read = self.read(field.schema.schema(), value, Some((structure, key)));
        self.path.truncate(depth);
        read
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value, at: FieldContext<'_>) -> Result<(), String> {
        let named = at.and_then(|(structure, key)| named(structure, key));
        match (scalar, value) {
            (Scalar::Text | Scalar::IntOrString, Value::String(_))
            | (Scalar::Bool, Value::Bool(_))
            | (Scalar::Number, Value::Number(_)) => Ok(()),
            (Scalar::Int32, Value::Number(number)) => {
                self.fits(number, "int32", at);
                Ok(())
            }
            (Scalar::Int64, Value::Number(number)) => {
                self.fits(number, "int64", at);
                Ok(())
            }
            (Scalar::IntOrString, Value::Number(number)) if fits(number, "int32") => Ok(()),
            (Scalar::IntOrString, Value::Number(number)) => {
                Err(self.mistake(&format!("number {number}"), "int32", at))
            }
            (Scalar::IntOrString, _) => Err(self.mistake(word(value), "int32", at)),
            (Scalar::Quantity, _) => {
                Quantity::from_json_text(&value.to_string()).map(drop).map_err(|error| error.to_string())
            }
            (Scalar::Time, Value::String(text)) => {
                api::instant::parse(text).map(drop).map_err(|error| error.to_string())
            }
            (Scalar::MicroTime, Value::String(text)) => micro_time(text),
            (Scalar::Time | Scalar::MicroTime, _) => Err(self.mistake(word(value), "string", at)),
            (Scalar::Bytes, Value::String(text)) => {
                if let Some(at) = base64_error(text) {
                    self.first.get_or_insert(format!("illegal base64 data at input byte {at}"));
                }
                Ok(())
            }
            (Scalar::Text, _) => {
                self.remember(word(value), named.unwrap_or("string"), at);
                Ok(())
            }
            (Scalar::Bytes | Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Number, _) => {
                self.remember(word(value), scalar_name(scalar), at);
                Ok(())
            }
        }
    }

    fn fits(&mut self, number: &Number, go_type: &str, at: FieldContext<'_>) {
        if !fits(number, go_type) {
            self.remember(&format!("number {number}"), go_type, at);
        }
    }

    fn remember(&mut self, found: &str, expected: &str, at: FieldContext<'_>) {
        if self.first.is_none() {
            self.first = Some(self.mistake(found, expected, at));
        }
    }

    fn mistake(&self, found: &str, expected: &str, at: FieldContext<'_>) -> String {
        let cursor = match at {
            Some((structure, _)) => format!("struct field {structure}.{}", self.path.join(".")),
            None => "value".to_owned(),
        };
        format!("json: cannot unmarshal {found} into Go {cursor} of type {expected}")
    }
}

fn fits(number: &Number, go_type: &str) -> bool {
    number.as_i64().is_some_and(|number| go_type == "int64" || i32::try_from(number).is_ok())
}

fn named(structure: &str, key: &str) -> Option<&'static str> {
    NAMED_GO_TYPES.iter().find(|(s, k, _)| *s == structure && *k == key).map(|(_, _, name)| *name)
}

fn embedded(structure: &str, key: &str) -> Option<&'static str> {
    if structure == "Volume" && key != "name" {
        return Some("VolumeSource");
    }
    EMBEDDED_GO_STRUCTS
        .iter()
        .find(|(s, keys, _)| *s == structure && keys.contains(&key))
        .map(|(_, _, name)| *name)
}

/// The Go name of a type: `v1.PodSpec`, `[]string`, `map[string]string`.
fn type_name(schema: &Schema) -> String {
    match &schema.shape {
        SchemaShape::List(list) => format!("[]{}", type_name(list.items.schema())),
        SchemaShape::Object(ObjectSchema { values: Some(values), .. }) => match values.schema().shape {
            SchemaShape::Scalar(Scalar::Quantity) => "v1.ResourceList".to_owned(),
            _ => format!("map[string]{}", type_name(values.schema())),
        },
        SchemaShape::Scalar(scalar) => scalar_name(*scalar).to_owned(),
        SchemaShape::Any | SchemaShape::Object(_) => {
            let package = schema.name.rsplit('.').nth(1).unwrap_or_default();
            format!("{package}.{}", schema.short_name())
        }
    }
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Text | Scalar::Time | Scalar::MicroTime => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Bool => "bool",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 => "int64",
        Scalar::Number => "float64",
        Scalar::Quantity => "resource.Quantity",
    }
}

/// A MicroTime must have six fractional digits.
fn micro_time(text: &str) -> Result<(), String> {
    const WHOLE: &str = "\"2006-01-02T15:04:05Z07:00\"";
    const MICRO: &str = "\"2006-01-02T15:04:05.000000Z07:00\"";
    api::instant::parse(text).map_err(|error| error.to_string().replace(WHOLE, MICRO))?;
    let rest = text.get(19..).unwrap_or_default();
    let digits = rest.strip_prefix('.').map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match digits {
        Some(6) => Ok(()),
        _ => Err(format!("parsing time \"{text}\" as {MICRO}: cannot parse \"{rest}\" as \".000000\"")),
    }
}

/// The position of Go's base64 error; line ends are skipped.
fn base64_error(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let (mut filled, mut start) = (0, 0);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => {
                start = if filled == 0 { at } else { start };
                filled = (filled + 1) % 4;
            }
            b'=' if filled >= 2 => {
                if filled == 2 {
                    match bytes.next() {
                        Some((_, b'=')) => {}
                        other => return Some(other.map_or(text.len(), |(at, _)| at)),
                    }
                }
                return bytes.next().map(|(at, _)| at);
            }
            _ => return Some(at),
        }
    }
    (filled != 0).then_some(start)
}
