//! A Lease object.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The annotation that says where the holder serves the other replicas: its identity, a space, address and port. The identity is
/// part of it, because a holder that does not know the annotation leaves that of an earlier one.
const LEADER_ADDRESS_ANNOTATION: &str = "plimsoll.dev/leader-address";

/// A Lease. The whole object is kept, so that an update changes only the fields of the election. Its fields may be missing or
/// invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease(Map<String, Value>);

impl Lease {
    /// Parses a response body; none if it is not a JSON object.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let Value::Object(mut object) = serde_json::from_slice(text).ok()? else { return None };
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            // The server keeps these fields by itself; without them an update has a quarter of the size.
            metadata.remove("managedFields");
        }
        Some(Self(object))
    }

    /// A lease that does not exist yet.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!("coordination.k8s.io/v1"));
        object.insert("kind".to_owned(), json!("Lease"));
        object.insert("metadata".to_owned(), json!({"name": name, "namespace": namespace}));
        Self(object)
    }

    /// The holder; empty if there is none.
    pub fn holder(&self) -> &str {
        self.field("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }

    /// Where the holder serves the other replicas; none if it has not written an address.
    pub fn address(&self) -> Option<SocketAddr> {
        let text = self.0.get("metadata")?.get("annotations")?.get(LEADER_ADDRESS_ANNOTATION)?.as_str()?;
        let (identity, address) = text.rsplit_once(' ')?;
        if identity.is_empty() || identity != self.holder() {
            return None;
        }
        address.parse().ok()
    }

    /// The lease duration; none if it is missing or invalid.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = self.field("leaseDurationSeconds").and_then(Value::as_u64)?;
        (1..=i32::MAX as u64).contains(&seconds).then(|| Duration::from_secs(seconds))
    }

    /// The number of transitions to another holder.
    pub fn transitions(&self) -> u32 {
        let stored = self.field("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        stored.clamp(0, i64::from(i32::MAX)) as u32
    }

    /// The fields by which a change is noticed.
    pub(super) fn spec(&self) -> Option<&Value> {
        self.0.get("spec")
    }

    /// This lease, taken or renewed by `identity`.
    pub(super) fn held(&self, identity: &str, seconds: u64, at: Timestamp) -> Self {
        let renewed = self.holder() == identity;
        // A lease that is not yet stored has had no transition.
        let stored = self.0.get("metadata").and_then(|metadata| metadata.get("resourceVersion")).is_some();
        let acquired = self.field("acquireTime").filter(|time| renewed && time.is_string()).cloned();
        let transitions = match (renewed, stored) {
            (true, _) => self.transitions(),
            (false, true) => self.transitions().saturating_add(1).min(i32::MAX as u32),
            (false, false) => 0,
        };
        self.with([
            ("holderIdentity", json!(identity)),
            ("leaseDurationSeconds", json!(seconds)),
            ("acquireTime", acquired.unwrap_or_else(|| micro(at))),
            ("renewTime", micro(at)),
            ("leaseTransitions", json!(transitions)),
        ])
    }

    /// This lease with the address of its holder, or without one.
    pub(super) fn with_address(mut self, address: Option<SocketAddr>) -> Self {
        let text = address.map(|address| format!("{} {address}", self.holder()));
        let metadata = self.0.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return self };
        match text {
            Some(text) => {
                let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
                if !annotations.is_object() {
                    *annotations = json!({});
                }
                if let Some(annotations) = annotations.as_object_mut() {
                    annotations.insert(LEADER_ADDRESS_ANNOTATION.to_owned(), json!(text));
                }
            }
            None => {
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.remove(LEADER_ADDRESS_ANNOTATION);
                }
            }
        }
        self
    }

    /// This lease, released: another candidate can take it at once.
    pub(super) fn released(&self, at: Timestamp) -> Self {
        self.with([
            ("holderIdentity", json!("")),
            ("leaseDurationSeconds", json!(1)),
            ("acquireTime", micro(at)),
            ("renewTime", micro(at)),
            ("leaseTransitions", json!(self.transitions())),
        ])
    }

    /// The request body.
    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.spec()?.get(name)
    }

    fn with<const N: usize>(&self, fields: [(&str, Value); N]) -> Self {
        let mut object = self.0.clone();
        let mut spec = match object.remove("spec") {
            Some(Value::Object(spec)) => spec,
            _ => Map::new(),
        };
        spec.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        object.insert("spec".to_owned(), Value::Object(spec));
        Self(object)
    }
}

/// A MicroTime: always six digits.
fn micro(at: Timestamp) -> Value {
    json!(format!("{at:.6}"))
}
