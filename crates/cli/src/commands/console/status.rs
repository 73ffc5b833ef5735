//! Changes of an HPA's status, read without decoding the whole object.
//!
//! The controller writes the status with every pass, so nearly every event of the watch has only new counts and metric values. Decoding
//! the rest was half of the time that an open page took. The rest is compared by hashes instead, and an object in which it
//! differs is decoded as usual.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricStatus};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The key of all hashes: random, so that nobody can write an object whose hash is that of another.
static HASH_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What an event says about an HPA.
#[derive(Deserialize)]
pub(super) struct StatusEvent<'a> {
    #[serde(borrow)]
    metadata: EventMetadata<'a>,
    #[serde(default)]
    spec: ValueHash,
    status: EventStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventMetadata<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    annotations: ValueHash,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EventStatus {
    current_replicas: i32,
    desired_replicas: i32,
    current_metrics: Option<Vec<MetricStatus>>,
    last_scale_time: ValueHash,
    conditions: ValueHash,
}

/// An HPA without the counts and values of its status, as hashes. Labels, owner references and finalizers are not among them,
/// because no row is made from them: whoever shows them adds them here.
#[derive(Debug)]
pub(super) struct HpaDigest {
    /// The resource version of the state that it describes.
    version: String,
    rest: [ValueHash; 4],
}

/// The hash of a JSON value; that of an absent value is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ValueHash(u64);

struct HashVisitor<'h>(&'h mut DefaultHasher);

impl<'a> StatusEvent<'a> {
    /// Reads the object at the start of a text; none if it has another form.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        Self::deserialize(&mut serde_json::Deserializer::from_slice(text)).ok()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Changes the status of an HPA. False if something else may differ, so that the whole object must be decoded. The digest becomes
    /// that of this event.
    pub(super) fn apply(self, hpa: &mut HorizontalPodAutoscaler, digest: &mut Option<HpaDigest>) -> bool {
        let Self { metadata, spec, status } = self;
        let version = metadata.resource_version.into_owned();
        let rest = [metadata.annotations, spec, status.last_scale_time, status.conditions];
        let stored = &hpa.metadata.resource_version;
        // A digest of another version is of an event that was not applied.
        let has_same_rest =
            digest.as_ref().is_some_and(|known| known.version == *stored && known.rest == rest);
        let is_applied = has_same_rest && is_newer(&version, stored);
        if is_applied {
            hpa.metadata.resource_version.clone_from(&version);
            hpa.status.current_replicas = status.current_replicas;
            hpa.status.desired_replicas = status.desired_replicas;
            hpa.status.current_metrics = status.current_metrics;
        }
        *digest = Some(HpaDigest { version, rest });
        is_applied
    }
}

/// Whether a version is certainly newer than another.
fn is_newer(version: &str, than: &str) -> bool {
    matches!((version.parse::<u64>(), than.parse::<u64>()), (Ok(version), Ok(than)) if version > than)
}

impl<'de> Deserialize<'de> for ValueHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut hasher = HASH_KEY.build_hasher();
        HashVisitor(&mut hasher).deserialize(deserializer)?;
        Ok(Self(hasher.finish()))
    }
}

impl<'de> DeserializeSeed<'de> for HashVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HashVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.write_u8(b'0');
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        value.hash(self.0);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        value.hash(self.0);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        value.hash(self.0);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        value.to_bits().hash(self.0);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        value.hash(self.0);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.0.write_u8(b'[');
        while values.next_element_seed(HashVisitor(&mut *self.0))?.is_some() {}
        self.0.write_u8(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.0.write_u8(b'{');
        while fields.next_key_seed(HashVisitor(&mut *self.0))?.is_some() {
            fields.next_value_seed(HashVisitor(&mut *self.0))?;
        }
        self.0.write_u8(b'}');
        Ok(())
    }
}
