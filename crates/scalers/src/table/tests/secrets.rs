//! Secrets appear neither in errors nor in the Debug output of a trigger.

use std::time::Duration;

use super::bad_values::{parameters, with};
use super::samples::{Protocol, SECRET, contains_secret, samples};
use crate::parameters::{ParameterValue as _, QueryValues, Secret};
use crate::table::SCALER_TYPES;
use crate::{Trigger, test_support};

/// Substrings of keys that are credentials.
const CREDENTIAL_WORDS: [&str; 7] =
    ["password", "secret", "token", "apikey", "accesskey", "connection", "authvalue"];
/// Keys with such a substring that are no credentials.
const PUBLIC_KEYS: [&str; 6] = [
    "awsAccessKeyID",
    "awsAccessKeyId",
    "connectionLimit",
    "oauthTokenEndpointUri",
    "oauthTokenURI",
    "saslTokenProvider",
];

#[test]
fn parameters_named_like_credentials_are_secrets() {
    let is_one = |key: &&str| {
        let small = key.to_lowercase();
        CREDENTIAL_WORDS.iter().any(|word| small.contains(word)) && !PUBLIC_KEYS.contains(key)
    };
    let mut plain = Vec::new();
    for scaler in SCALER_TYPES.iter() {
        let kinds = [Secret::KIND, QueryValues::KIND, ""];
        let open = scaler.parameters.iter().filter(|one| !kinds.contains(&one.kind));
        plain.extend(open.filter(|one| one.keys.iter().any(is_one)).map(|one| (scaler.name, one.name())));
    }
    assert_eq!(plain, []);
}

/// The error of building a trigger's scaler, or else of reading it from a server that does not exist.
async fn reported(trigger: &Trigger) -> String {
    let scaler = match test_support::build(trigger) {
        Ok(scaler) => scaler,
        Err(error) => return format!("{error:?}"),
    };
    match tokio::time::timeout(Duration::from_secs(20), scaler.read("m")).await {
        Ok(Ok(reading)) => format!("{reading:?}"),
        Ok(Err(error)) => format!("{error:?}"),
        Err(_) => "hangs".to_owned(),
    }
}

#[tokio::test]
async fn errors_never_contain_secrets() {
    let values = [
        SECRET.to_owned(),
        format!("{SECRET}\u{1}\nword"),
        format!("http://u:{SECRET}/word@127.0.0.1:1"),
        format!("host=127.0.0.1 port=x password={SECRET}"),
        format!("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey={SECRET}"),
    ];
    let (mut tried, mut wrong) = (0, Vec::new());
    for (protocol, trigger) in samples(1) {
        let secret = |kind| kind == Secret::KIND || kind == QueryValues::KIND;
        for parameter in parameters(&trigger).iter().filter(|one| secret(one.kind)) {
            for (source, value) in
                parameter.sources.iter().flat_map(|source| values.iter().map(move |v| (source, v)))
            {
                let given = with(&trigger, parameter, *source, value);
                // Servers at fixed addresses are not contacted.
                let shown = if protocol == Protocol::Fixed {
                    test_support::build(&given).err().map(|error| error.message).unwrap_or_default()
                } else {
                    reported(&given).await
                };
                tried += 1;
                for text in [shown, format!("{given:?}")] {
                    if contains_secret(&text) {
                        wrong.push(format!("{} {} in {source:?}: {text}", trigger.type_, parameter.name()));
                    }
                }
            }
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
    assert!(tried > 300, "{tried}: there are more secrets than that");
}
