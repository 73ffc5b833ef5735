//! Changes of an HPA's status, read without decoding the object.
//!
//! The controller writes the status with every pass, so nearly every event of the watch has only new counts and metric values. The rest
//! of the object is compared by a hash, and an object in which it differs is decoded as usual. The metric values are decoded when a
//! row shows them: a row with passes does not.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use api::autoscaling::v2::HorizontalPodAutoscaler;

use super::skim::{OtherForm, SkimCursor};

/// The key of all hashes: random, so that no user can write an object whose hash is that of another.
static HASH_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The part of an event about an HPA that rows show.
#[derive(Debug, Default)]
pub(super) struct StatusEvent<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// The hash of what is shown besides the counts and values of the status.
    rest: u64,
    current_replicas: i32,
    desired_replicas: i32,
    /// `currentMetrics`; empty if they are absent.
    current_metrics: &'a [u8],
}

/// The last event about an HPA, of which what rows do not show from the status is a hash. Labels, owner references and finalizers
/// are not part of it, because no row is made from them; a row that shows them needs them in [`StatusEvent::read`].
#[derive(Debug)]
pub(super) struct LastStatus {
    version: u64,
    rest: u64,
    /// Whether the event was applied. An event that was decoded may have been too old.
    is_applied: bool,
    /// Whether the counts and values below are newer than those of the decoded object.
    is_newer: bool,
    current_replicas: i32,
    desired_replicas: i32,
    current_metrics: Vec<u8>,
    /// Whether the row shows the values of passes, so that new values of the status do not change it.
    pub(super) has_passes: bool,
}

impl<'a> StatusEvent<'a> {
    /// Reads the object at the start of a text.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, OtherForm> {
        let mut event = Self::default();
        let mut rest = HASH_KEY.build_hasher();
        let mut has_status = false;
        let mut cursor = SkimCursor::new(text);
        cursor.enter()?;
        while let Some(key) = cursor.key()? {
            match key {
                b"metadata" => {
                    cursor.enter()?;
                    while let Some(key) = cursor.key()? {
                        match key {
                            b"namespace" => event.namespace = cursor.string()?,
                            b"name" => event.name = cursor.string()?,
                            b"resourceVersion" => event.version = cursor.string()?,
                            b"annotations" => (key, cursor.value()?).hash(&mut rest),
                            _ => _ = cursor.value()?,
                        }
                    }
                }
                b"spec" => (key, cursor.value()?).hash(&mut rest),
                b"status" => {
                    has_status = true;
                    cursor.enter()?;
                    while let Some(key) = cursor.key()? {
                        match key {
                            b"currentReplicas" => event.current_replicas = cursor.number()?,
                            b"desiredReplicas" => event.desired_replicas = cursor.number()?,
                            b"currentMetrics" => event.current_metrics = cursor.value()?,
                            b"lastScaleTime" | b"conditions" => (key, cursor.value()?).hash(&mut rest),
                            _ => _ = cursor.value()?,
                        }
                    }
                }
                _ => _ = cursor.value()?,
            }
        }
        event.rest = rest.finish();
        let is_known = has_status && !event.name.is_empty() && event.number().is_some();
        if is_known { Ok(event) } else { Err(OtherForm) }
    }

    /// The version as a number.
    fn number(&self) -> Option<u64> {
        self.version.parse().ok()
    }
}

impl LastStatus {
    /// An event that has to be decoded.
    pub(super) fn undecoded(event: &StatusEvent<'_>) -> Self {
        Self {
            version: event.number().unwrap_or_default(),
            rest: event.rest,
            is_applied: false,
            is_newer: false,
            current_replicas: 0,
            desired_replicas: 0,
            current_metrics: Vec::new(),
            has_passes: false,
        }
    }

    /// The object of a version was decoded and stored.
    pub(super) fn decoded(&mut self, version: &str) {
        self.is_applied = version.parse() == Ok(self.version);
    }

    /// Keeps the counts and values of an event. False if something else may differ, so that the object must be decoded.
    pub(super) fn keep(&mut self, event: &StatusEvent<'_>) -> bool {
        let newer = event.number().filter(|version| *version > self.version);
        let Some(version) = newer.filter(|_| self.is_applied && event.rest == self.rest) else {
            return false;
        };
        self.version = version;
        self.is_newer = true;
        (self.current_replicas, self.desired_replicas) = (event.current_replicas, event.desired_replicas);
        self.current_metrics.clear();
        self.current_metrics.extend_from_slice(event.current_metrics);
        true
    }

    /// Writes the counts and values into the decoded object, if they are newer.
    pub(super) fn write_to(&mut self, hpa: &mut HorizontalPodAutoscaler) {
        if !std::mem::take(&mut self.is_newer) {
            return;
        }
        hpa.metadata.resource_version = self.version.to_string();
        hpa.status.current_replicas = self.current_replicas;
        hpa.status.desired_replicas = self.desired_replicas;
        // Values that cannot be read are missing, and shown so.
        hpa.status.current_metrics = serde_json::from_slice(&self.current_metrics).unwrap_or_default();
    }
}
