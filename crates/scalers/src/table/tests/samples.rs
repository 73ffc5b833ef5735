//! Valid triggers of each scaler type, which tests vary one parameter at a time.

use std::time::Duration;

use api::keda::KedaProfile;

use crate::Trigger;
use crate::table::SCALER_TYPES;
pub(super) use crate::table::sample::{Protocol, SECRET};
use crate::test_support::{texts, trigger};

/// Whether a text contains the secret, also as base64, alone or after a user.
pub(super) fn contains_secret(text: &str) -> bool {
    [SECRET, "aHVudGVyMg", "dTpodW50ZXIy"].iter().any(|form| text.contains(form))
}

/// All samples, with a server at this local port.
pub(super) fn samples(port: u16) -> Vec<(Protocol, Trigger)> {
    let address = format!("127.0.0.1:{port}");
    let at = |text: &str| text.replace("{port}", &port.to_string()).replace("{}", &address);
    let all = SCALER_TYPES.iter().flat_map(|scaler| scaler.samples.iter().map(|one| (scaler.name, one)));
    let one = |(type_, sample): (&str, &crate::table::sample::Sample)| {
        let mut trigger = trigger(type_, sample.metadata);
        trigger.auth = texts(sample.auth);
        for text in trigger.metadata.values_mut().chain(trigger.auth.values_mut()) {
            // JSON values may contain empty braces.
            if !text.starts_with('{') || text == "{}" || text == "{port}" {
                *text = at(text);
            }
        }
        trigger.http_timeout = Duration::from_millis(500);
        // The newest release has all parameters.
        trigger.profile = KedaProfile::V2_21;
        if matches!(type_, "cpu" | "memory") {
            trigger.metric_type = "Utilization".to_owned();
        }
        (sample.protocol, trigger)
    };
    all.map(one).collect()
}

#[test]
fn every_type_has_a_sample_that_can_be_built() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    let _inside = runtime.enter();
    for scaler in SCALER_TYPES.iter() {
        assert!(!scaler.name.is_empty() && !scaler.samples.is_empty(), "{} has no sample", scaler.name);
    }
    for (_, trigger) in samples(1) {
        if let Err(error) = crate::test_support::build(&trigger) {
            panic!("{}: {error}", trigger.type_);
        }
    }
}
