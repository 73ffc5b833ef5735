//! A watched autoscaler of either API.

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2;
use api::convert;
use api::decisions::{DecisionMode, MODE_ANNOTATION};
use api::plimsoll::{self, Autoscaler};
use cluster::AutoscalerKey;
use cluster::events::ObjectReference;
use cluster::request::below;
use engine::spec::MetricSource;
use engine::{Decision, Gates, Spec, Status};

use super::settings::HpaSettings;

/// The annotation with the persisted state: windows and scale events.
pub(crate) const PERSISTED_STATE_ANNOTATION: &str = "plimsoll.dev/memory";

/// A watched object.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all of them are HPAs, and each has an allocation of its own"
)]
#[derive(Clone, Debug)]
pub(crate) enum AutoscalerObject {
    Hpa(v2::HorizontalPodAutoscaler),
    Autoscaler(Box<Autoscaler>),
}

/// A watched autoscaler, converted once.
#[derive(Clone, Debug)]
pub(crate) struct AutoscalerEntry {
    pub(crate) key: AutoscalerKey,
    pub(crate) object: Arc<AutoscalerObject>,
    pub(crate) spec: Arc<Spec>,
    /// The period of the object, if it sets one.
    own_period: Option<Duration>,
    /// The mode of the object, if it sets one.
    own_mode: Option<DecisionMode>,
    /// `spec.dryRun`: decisions are reported in the status, but the scale is not written.
    pub(crate) is_dry_run: bool,
    /// Whether it has resource metrics.
    pub(crate) has_resource_metrics: bool,
    /// What is wrong with its annotations, reported by an event.
    pub(crate) annotation_error: Option<String>,
}

impl AutoscalerObject {
    pub(crate) fn metadata(&self) -> &api::meta::ObjectMeta {
        match self {
            Self::Hpa(hpa) => &hpa.metadata,
            Self::Autoscaler(autoscaler) => &autoscaler.metadata,
        }
    }

    fn metadata_mut(&mut self) -> &mut api::meta::ObjectMeta {
        match self {
            Self::Hpa(hpa) => &mut hpa.metadata,
            Self::Autoscaler(autoscaler) => &mut autoscaler.metadata,
        }
    }

    pub(crate) fn status(&self) -> &v2::HorizontalPodAutoscalerStatus {
        match self {
            Self::Hpa(hpa) => &hpa.status,
            Self::Autoscaler(autoscaler) => &autoscaler.status,
        }
    }

    pub(crate) fn target(&self) -> &v2::CrossVersionObjectReference {
        match self {
            Self::Hpa(hpa) => &hpa.spec.scale_target_ref,
            Self::Autoscaler(autoscaler) => &autoscaler.spec.scale_target_ref,
        }
    }

    /// The same object with another status and persisted state.
    pub(crate) fn with(&self, status: v2::HorizontalPodAutoscalerStatus, snapshot: Option<String>) -> Self {
        let mut new = self.clone();
        match &mut new {
            Self::Hpa(hpa) => hpa.status = status,
            Self::Autoscaler(autoscaler) => autoscaler.status = status,
        }
        if let Some(snapshot) = snapshot {
            new.metadata_mut().annotations.insert(PERSISTED_STATE_ANNOTATION.to_owned(), snapshot);
        }
        new
    }

    /// The same object with the `resourceVersion` after a write.
    pub(crate) fn at_version(mut self, version: String) -> Self {
        self.metadata_mut().resource_version = version;
        self
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Hpa(hpa) => serde_json::to_vec(hpa),
            Self::Autoscaler(autoscaler) => serde_json::to_vec(autoscaler),
        }
    }
}

impl AutoscalerEntry {
    pub(crate) fn of_hpa(mut hpa: v2::HorizontalPodAutoscaler) -> Self {
        api::autoscaling::Defaults::set_defaults(&mut hpa);
        hpa.kind = "HorizontalPodAutoscaler".into();
        hpa.api_version = v2::API_VERSION.into();
        let key = AutoscalerKey::hpa(&hpa.metadata.namespace, &hpa.metadata.name);
        let spec = convert::spec_of_hpa(&hpa);
        Self::new(key, AutoscalerObject::Hpa(hpa), spec)
    }

    pub(crate) fn of_autoscaler(mut autoscaler: Autoscaler) -> Self {
        api::autoscaling::Defaults::set_defaults(&mut autoscaler);
        autoscaler.kind = plimsoll::KIND.into();
        autoscaler.api_version = plimsoll::API_VERSION.into();
        let key = AutoscalerKey::autoscaler(&autoscaler.metadata.namespace, &autoscaler.metadata.name);
        let spec = convert::spec_of_autoscaler(&autoscaler);
        let period = autoscaler.spec.sync_period_seconds.filter(|s| *s > 0);
        let is_dry_run = autoscaler.spec.dry_run;
        let mut entry = Self::new(key, AutoscalerObject::Autoscaler(Box::new(autoscaler)), spec);
        entry.own_period = period.map(|s| Duration::from_secs(u64::from(s.unsigned_abs())));
        entry.is_dry_run = is_dry_run;
        entry
    }

    fn new(key: AutoscalerKey, object: AutoscalerObject, spec: Spec) -> Self {
        let mode = object.metadata().annotations.get(MODE_ANNOTATION).map(String::as_str);
        let (own_mode, annotation_error) = match mode {
            None => (None, None),
            Some("active") => (Some(DecisionMode::Active), None),
            Some("shadow") => (Some(DecisionMode::Shadow), None),
            Some("dry-run") => (Some(DecisionMode::DryRun), None),
            Some("off") => (Some(DecisionMode::Off), None),
            // An unknown mode must not scale.
            Some(other) => (
                Some(DecisionMode::DryRun),
                Some(format!(
                    "annotation {MODE_ANNOTATION}: {other:?} is not known; write active, shadow, dry-run or off"
                )),
            ),
        };
        let resource = |source: &MetricSource| {
            matches!(source, MetricSource::Resource { .. } | MetricSource::ContainerResource { .. })
        };
        let has_resource_metrics = spec.metrics.iter().any(|metric| resource(&metric.source));
        Self {
            key,
            object: Arc::new(object),
            spec: Arc::new(spec),
            own_period: None,
            own_mode,
            is_dry_run: false,
            has_resource_metrics,
            annotation_error,
        }
    }

    /// Whether everything that affects decisions is equal.
    pub(crate) fn decides_the_same(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.own_period == other.own_period
            && self.own_mode == other.own_mode
            && self.is_dry_run == other.is_dry_run
            && self.object.metadata().generation == other.object.metadata().generation
            && self.object.target() == other.object.target()
    }

    pub(crate) fn period(&self, settings: &HpaSettings) -> Duration {
        self.own_period.unwrap_or(settings.period)
    }

    pub(crate) fn mode(&self, settings: &HpaSettings) -> DecisionMode {
        self.own_mode.unwrap_or(settings.mode)
    }

    /// Whether `other`, which selects the same pods, makes this autoscaler ambiguous.
    ///
    /// Only an autoscaler that writes can disturb one that writes. Where the whole controller is in shadow or dry-run mode, its
    /// autoscalers conflict with each other nevertheless, so that the decisions are those of active mode.
    pub(crate) fn conflicts_with(&self, other: &Self, settings: &HpaSettings) -> bool {
        let only_looks = |entry: &Self| {
            entry.is_dry_run || matches!(entry.own_mode, Some(DecisionMode::DryRun | DecisionMode::Off))
        };
        let mode = self.mode(settings);
        if only_looks(self) || only_looks(other) || mode != other.mode(settings) {
            return false;
        }
        // The acting controller that shadow mode is compared with does not know our own kind.
        let hpa = |entry: &Self| matches!(entry.object.as_ref(), AutoscalerObject::Hpa(_));
        mode != DecisionMode::Shadow || !hpa(self) || hpa(other)
    }

    /// The stored status, for the engine.
    pub(crate) fn status(&self) -> Status {
        convert::engine_status(self.object.status())
    }

    /// The status to store after a decision with these gates.
    pub(crate) fn stored_status(
        &self,
        gates: Gates,
        decision: &Decision,
    ) -> v2::HorizontalPodAutoscalerStatus {
        let old = self.object.status();
        let generation = gates.generation.then_some(self.object.metadata().generation);
        match self.object.as_ref() {
            AutoscalerObject::Hpa(hpa) => convert::stored_status(&hpa.spec, generation, decision, old),
            AutoscalerObject::Autoscaler(autoscaler) => {
                let view = plimsoll::v2_view((**autoscaler).clone());
                let mut status = convert::stored_status(&view.spec, None, decision, old);
                // A server that does not count generations sends none.
                let generation = Some(autoscaler.metadata.generation).filter(|generation| *generation > 0);
                status.observed_generation = generation;
                status
            }
        }
    }

    /// The reference of the object in events.
    pub(crate) fn about(&self) -> ObjectReference {
        let meta = self.object.metadata();
        ObjectReference {
            api_version: self.key.kind.api_version(),
            kind: self.key.kind.name(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        }
    }

    /// The path of the object.
    pub(crate) fn path(&self) -> String {
        let (group, plural) = (self.key.kind.api_version(), self.key.kind.plural());
        let meta = self.object.metadata();
        below(&format!("/apis/{group}"), ["namespaces", &meta.namespace, plural, &meta.name])
    }

    /// Resource and group in messages.
    pub(crate) fn group_resource(&self) -> &'static str {
        match self.object.as_ref() {
            AutoscalerObject::Hpa(_) => "horizontalpodautoscalers.autoscaling",
            AutoscalerObject::Autoscaler(_) => "autoscalers.plimsoll.dev",
        }
    }
}
