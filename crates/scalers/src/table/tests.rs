//! Tests over all scaler types.
mod bad_servers;
mod bad_values;
mod bodies;
mod hostile;
mod keda_rules;
mod outbound;
mod rebuilds;
mod refusals;
mod samples;
mod secrets;
mod sources;

use std::collections::BTreeSet;

use api::provider::Compat;
use proptest::prelude::*;

use super::*;
use crate::parameters::ParameterSource;
use crate::test_support::trigger;
use crate::web::HttpSettings;

#[test]
fn types_and_parameters_are_unique_and_documented() {
    let names: BTreeSet<_> = SCALER_TYPES.iter().map(|scaler| scaler.name).collect();
    assert_eq!(names.len(), SCALER_TYPES.len());
    let mut wrong = Vec::new();
    for ScalerType { name, about, display, parameters, .. } in SCALER_TYPES.iter() {
        assert!(about.ends_with('.') && !display.is_empty(), "{name}");
        for parameter in *parameters {
            let default = parameter.default.unwrap_or_default();
            let right = [
                parameter.removed.is_some() || parameter.about.ends_with(['.', ')']),
                !parameter.keys.is_empty() && !parameter.sources.is_empty(),
                default.is_empty() || parameter.one_of.is_empty() || parameter.one_of.contains(&default),
                !parameter.required || parameter.default.is_none(),
            ];
            if right != [true; 4] {
                wrong.push(format!("{name} {}: {right:?}", parameter.name()));
            }
        }
        for source in
            [ParameterSource::Metadata, ParameterSource::Authentication, ParameterSource::Environment]
        {
            let here = parameters.iter().filter(|one| one.removed.is_none() && one.sources.contains(&source));
            let mut seen = BTreeSet::new();
            wrong.extend(
                here.flat_map(|one| one.keys)
                    .filter(|key| !seen.insert(**key))
                    .map(|key| format!("{name} has {key} twice")),
            );
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn unknown_type_suggests_the_nearest() {
    let error = |type_: &str, compat| {
        let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), compat);
        build(&trigger(type_, &[]), &backends).err().unwrap().message
    };
    assert_eq!(error("promehteus", Compat::Strict), "no scaler found for type: promehteus");
    assert_eq!(
        error("promehteus", Compat::Better),
        "no scaler found for type: promehteus; did you mean prometheus?"
    );
    assert_eq!(error("xyzzy", Compat::Better), "no scaler found for type: xyzzy");
    assert_eq!(error("", Compat::Better), "no scaler found for type: ");
}

/// Errors name the missing parameters, for every scaler.
#[tokio::test]
async fn missing_parameters_are_named() {
    let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), Compat::Better);
    for scaler in SCALER_TYPES.iter() {
        let Err(error) = build(&trigger(scaler.name, &[]), &backends) else { continue };
        for missing in scaler.parameters.iter().filter(|one| one.required) {
            assert!(error.message.contains(&missing.name()), "{}: {error}", scaler.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Any value of any parameter is accepted or refused with a message, without connecting.
    #[test]
    fn arbitrary_input_does_not_panic(values in prop::collection::vec(
        prop_oneof![".{0,20}", "-?[0-9]{1,20}(\\.[0-9]+)?", "true|false|null|NaN|http://h/|a,b|k=v|1-2"], 64)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), Compat::Better);
        for scaler in SCALER_TYPES.iter() {
            let mut given = trigger(scaler.name, &[]);
            for (parameter, value) in scaler.parameters.iter().zip(values.iter().cycle()) {
                let key = parameter.keys.first().copied().unwrap_or_default().to_owned();
                given.metadata.insert(key.clone(), value.clone());
                given.auth.insert(key, value.clone());
            }
            if let Err(error) = build(&given, &backends) {
                prop_assert!(!error.message.is_empty());
            }
            // One parameter is invalid, all others are missing.
            for (parameter, value) in scaler.parameters.iter().zip(&values) {
                let key = parameter.keys.first().copied().unwrap_or_default();
                let _ = build(&trigger(scaler.name, &[(key, value)]), &backends);
            }
        }
    }
}
