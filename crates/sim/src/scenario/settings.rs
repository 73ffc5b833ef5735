//! Settings of the whole scenario: time, controller, metrics pipeline.

use std::sync::Arc;

use engine::profile::GateError;
use engine::{ControllerConfig, KubernetesVersion};

use super::document::ScenarioSpec;
use super::faults::{Faults, meant};
use super::limits::{MAX_SCENARIO_DELAY, MAX_SCENARIO_DURATION};
use crate::time::Millis;
use crate::workload::ModelTiming;

/// The first Monday of 2026.
const START: &str = "2026-01-05T00:00:00Z";

/// Settings of the whole scenario.
pub(super) struct Settings {
    pub(super) duration: Millis,
    pub(super) sync_period: Millis,
    pub(super) delay: Millis,
    pub(super) config: Arc<ControllerConfig>,
    pub(super) cadence: ModelTiming,
}

/// Checks the settings of a scenario and fills in defaults.
pub(super) fn read(faults: &mut Faults<'_>, spec: &ScenarioSpec, kubernetes: KubernetesVersion) -> Settings {
    let second = Millis::from_secs(1);
    let duration = faults.length("spec.duration", spec.duration, second, MAX_SCENARIO_DURATION);
    let start = spec.start.or_else(|| START.parse().ok()).unwrap_or_default();
    if MAX_SCENARIO_DURATION.after(start).checked_add(MAX_SCENARIO_DURATION.duration()).is_err()
        || start < jiff::Timestamp::UNIX_EPOCH
    {
        faults.add("spec.start", "`start` must be from 1970 to 9990");
    }
    let tick =
        spec.tick.map_or(second, |tick| faults.length("spec.tick", tick, Millis(100), MAX_SCENARIO_DELAY));

    let pipeline = &spec.metrics_pipeline;
    let resolution = pipeline.resolution.map_or(Millis::from_secs(15), |resolution| {
        faults.length("spec.metricsPipeline.resolution", resolution, second, Millis::from_hours(1))
    });
    let delay = pipeline.delay.map_or(Millis::from_secs(5), |delay| {
        faults.length("spec.metricsPipeline.delay", delay, Millis::ZERO, MAX_SCENARIO_DELAY)
    });

    let sync_period = spec.controller.sync_period.map_or(Millis::from_secs(15), |period| {
        faults.length("spec.controller.syncPeriod", period, second, MAX_SCENARIO_DELAY)
    });
    let config = Arc::new(config(faults, spec, kubernetes));
    let cadence = ModelTiming { start, tick, resolution, oldest: delay };
    Settings { duration, sync_period, delay, config, cadence }
}

fn config(faults: &mut Faults<'_>, spec: &ScenarioSpec, kubernetes: KubernetesVersion) -> ControllerConfig {
    let mut config = ControllerConfig::of(kubernetes);
    let controller = &spec.controller;
    let at = |field: &str| format!("spec.controller.{field}");
    if let Some(tolerance) = controller.tolerance {
        config.tolerance = faults.number(&at("tolerance"), tolerance, 0.0, 1000.0);
    }
    for (field, given, setting) in [
        ("downscaleStabilization", controller.downscale_stabilization, &mut config.downscale_stabilization),
        (
            "cpuInitializationPeriod",
            controller.cpu_initialization_period,
            &mut config.cpu_initialization_period,
        ),
        ("initialReadinessDelay", controller.initial_readiness_delay, &mut config.initial_readiness_delay),
    ] {
        if let Some(given) = given {
            *setting = faults.length(&at(field), given, Millis::ZERO, MAX_SCENARIO_DELAY).duration();
        }
    }
    for (name, on) in &controller.feature_gates {
        let path = at(&format!("featureGates[{name}]"));
        match config.profile().set_gate(&mut config.gates, name, *on) {
            Ok(()) => {}
            Err(GateError::Unknown { .. }) => {
                let known = config.profile().feature_gates.iter().map(|gate| gate.name);
                let text = format!("feature gate `{name}` makes no difference here");
                faults.add_with_hint(&path, text, meant(name, known));
            }
            Err(error @ GateError::Locked { .. }) => faults.add(&path, error.to_string()),
        }
    }
    config
}
