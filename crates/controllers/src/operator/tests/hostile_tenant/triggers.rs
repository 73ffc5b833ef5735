//! Triggers whose parameters a hostile tenant chose.

use std::collections::BTreeMap;
use std::time::Duration;

use scalers::parameters::{Parameter, ParameterSource};
use scalers::table::sample::{Protocol, Sample, SamplePairs};
use scalers::table::{SCALER_TYPES, ScalerType};
use scalers::{Owner, Trigger};

use super::canaries::{RecordingServer, VARIABLE};
use super::cases::HostileValue;

/// A valid trigger of a type, with the tenant's server as its source.
pub(super) fn valid(type_: &ScalerType, sample: &Sample, server: &RecordingServer) -> Trigger {
    let port = server.address.rsplit_once(':').unwrap().1;
    let at = |pairs: SamplePairs| -> BTreeMap<String, String> {
        let place = |text: &str| match text {
            // JSON may contain empty braces.
            json if json.starts_with('{') && json != "{}" && json != "{port}" => json.to_owned(),
            text => text.replace("{port}", port).replace("{}", &server.address),
        };
        pairs.iter().map(|(key, text)| ((*key).to_owned(), place(text))).collect()
    };
    let metric_type = if matches!(type_.name, "cpu" | "memory") { "Utilization" } else { "" };
    Trigger {
        owner: Owner { kind: "ScaledObject".to_owned(), namespace: "shop".to_owned(), name: "x".to_owned() },
        type_: type_.name.to_owned(),
        metric_type: metric_type.to_owned(),
        metadata: at(sample.metadata),
        auth: at(sample.auth),
        http_timeout: Duration::from_secs(1),
        ..Trigger::default()
    }
}

/// All types and their samples, without those whose server is always the vendor's.
pub(super) fn samples() -> Vec<(&'static ScalerType, &'static Sample)> {
    let all = SCALER_TYPES.iter().flat_map(|type_| type_.samples.iter().map(move |sample| (*type_, sample)));
    all.filter(|(_, sample)| sample.protocol != Protocol::Fixed).collect()
}

/// The trigger with one parameter replaced, in each of its sources.
pub(super) fn hostile(
    valid: &Trigger,
    parameter: &Parameter,
    value: &HostileValue,
) -> Vec<(ParameterSource, Trigger)> {
    let replace = |source: &ParameterSource| {
        let mut trigger = valid.clone();
        for key in parameter.keys {
            trigger.metadata.remove(*key);
            trigger.auth.remove(*key);
        }
        let key = parameter.keys[0].to_owned();
        match source {
            ParameterSource::Metadata => trigger.metadata.insert(key, value.text.clone()),
            ParameterSource::Authentication => trigger.auth.insert(key, value.text.clone()),
            ParameterSource::Environment => {
                trigger.environment.insert("CHOSEN".to_owned(), value.text.clone());
                trigger.metadata.insert(format!("{key}FromEnv"), "CHOSEN".to_owned())
            }
        };
        (*source, trigger)
    };
    parameter.sources.iter().map(replace).collect()
}

/// The trigger with one parameter taken from a variable of this process.
pub(super) fn from_operator_variable(valid: &Trigger, parameter: &Parameter) -> Trigger {
    let mut trigger = valid.clone();
    for key in parameter.keys {
        trigger.metadata.remove(*key);
        trigger.auth.remove(*key);
    }
    trigger.metadata.insert(format!("{}FromEnv", parameter.keys[0]), VARIABLE.to_owned());
    trigger
}
