//! Every parameter of every scaler type: missing, empty, of the wrong type, out of range, huge, with control characters, or an
//! unexpanded template. It is accepted or the error names it; nothing panics, and errors stay short.

use std::collections::BTreeMap;
use std::time::Duration;

use api::provider::Compat;

use super::samples::{Protocol, samples};
use crate::backends::Backends;
use crate::parameters::{Parameter, ParameterSource, unknown};
use crate::table::{build, find};
use crate::web::HttpSettings;
use crate::{ScalerError, Trigger};

/// Maximum length of an error, in bytes.
const MAX_ERROR_BYTES: usize = 2_000;

/// KEDA's errors that do not contain the name of the parameter.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("nats-jetstream account", "no account name or id given"),
    ("influxdb thresholdValue", "no threshold value given"),
    ("azure-servicebus queueName", "no service bus entity type set"),
    ("solace-event-queue messageCountTarget", "no target value found in the scaler configuration"),
    ("solace-direct-messaging solaceSempBaseURL", "host url value found in the scaler configuration"),
    (
        "solace-direct-messaging aggregatedClientTxMsgRateTarget",
        "no target value found in the scaler configuration",
    ),
    // Parameters that exclude each other: the error names the other one.
    ("azure-servicebus topicName", "both topic and queue name metadata provided"),
    ("elasticsearch cloudID", "can't provide both cloud config and endpoint addresses"),
    ("elasticsearch apiKey", "can't provide both cloud config and endpoint addresses"),
    ("github-runner appKey", "no applicationID given"),
    ("github-runner applicationID", "no installationID given"),
    ("github-runner installationID", "no applicationID given"),
    ("ibmmq host", "invalid URL"),
    ("rabbitmq oauthTokenURI", "OAuth2 requires tokenUrl"),
    ("rabbitmq workloadIdentityResource", "workload identity is not supported for the AMQP protocol"),
    ("external scalerAddress", "error acquiring connection for external scaler"),
    ("external-push scalerAddress", "error acquiring connection for external push scaler"),
    ("gcp-pubsub subscriptionName", "exactly one of subscription or topic name must be given"),
    ("azure-cosmosdb leaseEndpoint", "are required for both data and lease accounts"),
    ("rabbitmq clientSecret", "are required when oauth is enabled"),
    ("sumologic query.*", "only one of query or query.<RowId>"),
    // Without the cluster agent other parameters are required.
    ("datadog useClusterAgentProxy", "missing AppKey"),
];

fn backends() -> Backends {
    Backends::without_cluster(
        HttpSettings { fresh: Duration::ZERO, ..HttpSettings::allowing_loopback() },
        Compat::Better,
    )
}

pub(super) fn parameters(trigger: &Trigger) -> &'static [Parameter] {
    find(&trigger.type_).map_or(&[], |scaler| scaler.parameters)
}

/// Removes a parameter from all its sources.
fn without(trigger: &Trigger, parameter: &Parameter) -> Trigger {
    let mut out = trigger.clone();
    for key in parameter.keys {
        // Another parameter may have this key in another source.
        let own = |source: ParameterSource| parameter.sources.contains(&source);
        if own(ParameterSource::Metadata) || own(ParameterSource::Environment) {
            out.metadata.remove(*key);
            out.metadata.remove(&format!("{key}FromEnv"));
        }
        if own(ParameterSource::Authentication) {
            out.auth.remove(*key);
        }
    }
    out
}

/// Sets a parameter in one of its sources.
pub(super) fn with(
    trigger: &Trigger,
    parameter: &Parameter,
    source: ParameterSource,
    value: &str,
) -> Trigger {
    let mut out = without(trigger, parameter);
    let key = parameter.keys.first().copied().unwrap_or_default().to_owned();
    match source {
        ParameterSource::Metadata => out.metadata.insert(key, value.to_owned()),
        ParameterSource::Authentication => out.auth.insert(key, value.to_owned()),
        ParameterSource::Environment => {
            out.environment.insert("GIVEN".to_owned(), value.to_owned());
            out.metadata.insert(format!("{key}FromEnv"), "GIVEN".to_owned())
        }
    };
    out
}

/// Whether an error names the parameter.
fn names(error: &ScalerError, type_: &str, parameter: &Parameter) -> bool {
    // KEDA splits some names into words: `no management endpoint given`.
    let text = error.message.to_lowercase().replace(' ', "");
    let other = OTHER_WORDS.iter().filter(|(which, _)| *which == format!("{type_} {}", parameter.name()));
    parameter.keys.iter().any(|key| text.contains(&key.to_lowercase()))
        || other.into_iter().any(|(_, words)| error.message.contains(words))
}

/// Collects the findings of all samples, so that one run shows all.
fn wrong(judge: impl Fn(&Trigger, &Parameter) -> Vec<String>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let mut wrong = Vec::new();
    for (_, trigger) in samples(1) {
        for parameter in parameters(&trigger) {
            let reported = judge(&trigger, parameter);
            wrong.extend(
                reported.iter().map(|text| format!("{} {}: {text}", trigger.type_, parameter.name())),
            );
        }
    }
    wrong
}

#[test]
fn missing_and_empty_parameters_are_named() {
    let none: [String; 0] = [];
    let found = wrong(|trigger, parameter| {
        let missing = without(trigger, parameter);
        let mut cases = vec![("missing", missing.clone())];
        for source in parameter.sources {
            cases.push(("empty", with(trigger, parameter, *source, "")));
            cases.push(("blank", with(trigger, parameter, *source, " \t\n ")));
        }
        // An environment variable that does not exist.
        let mut unset = missing;
        if let Some(key) = parameter.keys.first() {
            unset.metadata.insert(format!("{key}FromEnv"), "UNSET".to_owned());
            cases.push(("unset", unset));
        }
        let judge = |(what, given): (&str, Trigger)| match build(&given, &backends()) {
            Ok(_) if parameter.required => Some(format!("{what}: taken, but it is required")),
            Err(error) if !names(&error, &given.type_, parameter) => Some(format!("{what}: {error}")),
            _ => None,
        };
        cases.into_iter().filter_map(judge).collect()
    });
    assert_eq!(found, none);
}

/// Values that are invalid for the type of a parameter.
fn impossible(parameter: &Parameter) -> Vec<&'static str> {
    if parameter.removed.is_some() {
        return vec!["x"];
    }
    if !parameter.one_of.is_empty() {
        return vec!["none-of-these", "0", "{{ .Values.x }}"];
    }
    match parameter.kind {
        "whole number" => {
            vec!["many", "1.5", "99999999999999999999", "0x10", "1,000", "{{ .x }}", "5 5", "null"]
        }
        "number" => vec!["many", "NaN", "Infinity", "1e400", "0x10", "1,5", "${X}", "5 5", "null"],
        "number or null" => vec!["many", "NaN", "Infinity", "1e400", "0x10", "1,5", "${X}", "5 5"],
        "true or false" => vec!["maybe", "yes", "2", "{{ .x }}"],
        "duration" => vec!["soon", "-5s", "-1", "99999999999999h", "{{ .x }}", "5 s"],
        "list of numbers" => vec!["a", "1-2-3", "0-2147483647"],
        "key=value list" => vec!["x", "a=b=c", "a=b,,"],
        "query string" => vec!["%zz", "a;b"],
        _ => vec![],
    }
}

#[test]
fn invalid_values_are_refused_by_name() {
    let none: [String; 0] = [];
    let found = wrong(|trigger, parameter| {
        let mut reported = Vec::new();
        for value in impossible(parameter) {
            for source in parameter.sources {
                let given = with(trigger, parameter, *source, value);
                match build(&given, &backends()) {
                    Ok(_) => reported.push(format!("{value:?} was taken")),
                    Err(error) if parameter.removed.is_some() => {
                        assert!(error.message.contains("info"), "{error}");
                    }
                    Err(error) if !names(&error, &given.type_, parameter) => {
                        reported.push(format!("{value:?}: {error}"));
                    }
                    Err(_) => {}
                }
            }
        }
        reported
    });
    assert_eq!(found, none);
}

/// Unusual values.
fn odd() -> Vec<String> {
    let words = [
        "-1",
        "0",
        "1",
        "9223372036854775807",
        "-9223372036854775808",
        "1e308",
        "-1e308",
        "0.0000001",
        "true",
        "false",
        "\u{0}",
        "\u{feff}x\u{202e}y\u{1f600}",
        "a\r\nb: c",
        "\u{fffd}\u{fffd}",
        "{{ .Values.x | default \"y\" }}",
        "${X}",
        "$(X)",
        "%s%n%d",
        "../../etc/passwd",
        "'; DROP TABLE x; --",
        "<!-- -->",
        "[",
        "{\"a\":",
        "*",
        "(?P<x>",
        "http://",
        "https://[::1",
        "host:99999999",
        ":",
        "://",
        "@",
        "#?&=",
        "a=b",
        "a,b",
        "1s",
        "\\",
    ];
    let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    all.extend(["x".repeat(1 << 18), "9".repeat(1 << 16), "[".repeat(1 << 16), "a,".repeat(1 << 15)]);
    all
}

#[test]
fn unusual_values_are_accepted_or_refused_by_name_in_short_errors() {
    let none: [String; 0] = [];
    let odd = odd();
    let found = wrong(|trigger, parameter| {
        let mut reported = Vec::new();
        let shown = |value: &str| value.chars().take(40).collect::<String>();
        for value in &odd {
            let Some(source) = parameter.sources.first() else { continue };
            let Err(error) = build(&with(trigger, parameter, *source, value), &backends()) else { continue };
            if error.message.len() > MAX_ERROR_BYTES {
                reported.push(format!("{:?}: the error has {} bytes", shown(value), error.message.len()));
            }
            if parameter.removed.is_none() && !names(&error, &trigger.type_, parameter) {
                reported.push(format!("{:?}: {}", shown(value), shown(&error.message)));
            }
        }
        reported
    });
    assert_eq!(found, none);
}

/// Accepted unusual values lead to errors when the scaler is read, not to panics or numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_unusual_values_yield_no_numbers() {
    let backends = backends();
    let mut requested = tokio::task::JoinSet::new();
    for (protocol, trigger) in samples(1) {
        if matches!(protocol, Protocol::Offline | Protocol::Fixed) {
            continue;
        }
        for parameter in parameters(&trigger) {
            for value in [
                "\u{0}",
                "a\r\nb: c",
                "ä\u{202e}\u{1f600} x",
                "%zz{{ .x }}",
                "../..",
                "(?P<x>",
                "9223372036854775807",
            ] {
                let Some(source) = parameter.sources.first() else { continue };
                let given = with(&trigger, parameter, *source, value);
                // Only errors matter here, because unknown host names are looked up in the network of the test machine.
                let Ok(scaler) = build(&given, &backends) else { continue };
                let what = format!("{} {} {value:?}", given.type_, parameter.name());
                requested.spawn(async move {
                    let answer = tokio::time::timeout(Duration::from_secs(20), scaler.read("s0-m")).await;
                    match answer {
                        Ok(Ok(reading)) => Some(format!("{what}: {reading:?}")),
                        Ok(Err(error)) if error.message.len() > MAX_ERROR_BYTES => {
                            Some(format!("{what}: too long an error"))
                        }
                        Ok(Err(_)) | Err(_) => None,
                    }
                });
            }
        }
    }
    let mut wrong = Vec::new();
    while let Some(done) = requested.join_next().await {
        // Fails the test if the task panicked.
        wrong.extend(done.unwrap());
    }
    assert_eq!(wrong, [] as [String; 0]);
}

#[test]
fn unknown_parameters_suggest_the_nearest() {
    for (_, trigger) in samples(1) {
        let known = parameters(&trigger);
        assert_eq!(unknown(known, &trigger).next(), None, "{}", trigger.type_);
        for parameter in known.iter().filter(|one| one.sources.contains(&ParameterSource::Metadata)) {
            for key in parameter.keys.iter().filter(|key| key.len() > 4) {
                // A key with a missing letter, or two swapped letters.
                let (left, right) = key.split_at(key.len() / 2);
                let missing = format!("{left}{}", right.get(1..).unwrap_or_default());
                let mut letters: Vec<char> = key.chars().collect();
                letters.swap(1, 2);
                for wrong in [missing, letters.into_iter().collect()] {
                    let all: Vec<&str> = known.iter().flat_map(|one| one.keys).copied().collect();
                    if all.contains(&&*wrong) {
                        continue;
                    }
                    let mut given = trigger.clone();
                    given.metadata = BTreeMap::from([(wrong.clone(), "x".to_owned())]);
                    let reported = unknown(known, &given).next();
                    let nearest = reported.as_ref().and_then(|one| one.nearest.clone()).unwrap_or_default();
                    let near = nearest == **key || all.contains(&nearest.trim_end_matches("FromEnv"));
                    assert!(near, "{} {wrong}: {reported:?}", trigger.type_);
                    assert!(reported.is_some_and(|one| one.to_string().contains("did you mean")));
                }
            }
        }
    }
}
