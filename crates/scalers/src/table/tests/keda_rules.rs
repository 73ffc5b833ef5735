//! What KEDA refuses, and in which words: rules over several parameters, their order, and values that are left out.

use api::keda::KedaProfile;

use super::samples::samples;
use crate::Trigger;
use crate::test_support::{build, texts};

/// A sample of a type, with other metadata and parameters of its TriggerAuthentication; empty ones are missing.
fn changed(type_: &str, metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> Trigger {
    let (_, mut given) = samples(1).into_iter().find(|(_, sample)| sample.type_ == type_).unwrap();
    given.metadata.extend(texts(metadata));
    given.auth.extend(texts(auth));
    given
}

fn refusal(given: &Trigger) -> String {
    build(given).err().map(|error| error.message).unwrap_or_default()
}

fn in_both_releases(type_: &str, metadata: &[(&str, &str)], auth: &[(&str, &str)], expected: &str) {
    for profile in KedaProfile::ALL {
        let given = Trigger { profile, ..changed(type_, metadata, auth) };
        assert_eq!(refusal(&given), expected, "{type_} {metadata:?} {auth:?} {profile}");
    }
}

#[tokio::test]
async fn values_that_are_not_allowed_are_empty_in_later_checks() {
    let modes = "must be one of [apiKey basic tls bearer custom oauth]";
    let prefix = "error parsing loki metadata: error parsing loki metadata: ";
    let refused = format!("{prefix}parameter \"authModes,authMode\" value \"bearer,x\" {modes}");
    in_both_releases("loki", &[("authModes", "bearer,x")], &[], &refused);
    let refused = format!(
        "{prefix}parameter \"authModes,authMode\" value \"bearer,basic\" must contain only one of [bearer basic oauth]"
    );
    in_both_releases("loki", &[("authModes", "bearer,basic")], &[], &refused);
}

#[tokio::test]
async fn incomplete_authentication() {
    let incomplete = "username=<empty> is required when basic auth is enabled";
    let loki = "error parsing loki metadata: error parsing loki metadata";
    in_both_releases("loki", &[("authModes", "basic")], &[], &format!("{loki}: {incomplete}\n{incomplete}"));
    let pulsar = "error parsing pulsar metadata: error parsing pulsar metadata";
    in_both_releases("pulsar", &[("authModes", "basic")], &[], &format!("{pulsar}: {incomplete}"));
    let incomplete = "oauthTokenURI=<present> and clientID=<empty> are required when oauth is enabled";
    let oauth = [("authModes", "oauth"), ("oauthTokenURI", "http://t")];
    in_both_releases("pulsar", &oauth, &[], &format!("{pulsar}: {incomplete}"));
    let method = "parameter \"method\" value \"cookie\" must be one of [header query]";
    in_both_releases("pulsar", &[("method", "cookie")], &[], &format!("{pulsar}: {method}"));
    in_both_releases("pulsar", &[("endpointParams", "a;b")], &[], "");
    let opensearch = "failed to parse opensearch metadata";
    let expected = format!("{opensearch}: both username and password must be provided for basic auth");
    in_both_releases("opensearch", &[], &[("password", "")], &expected);
    in_both_releases("opensearch", &[("username", "")], &[], &expected);
    let both =
        "API token and Password were all set. If APIToken is set, username and password must not be used";
    in_both_releases("splunk", &[], &[("apiToken", "t")], both);
}

#[tokio::test]
async fn github_checks_credentials_beside_authentication_modes() {
    let prefix = "error parsing GitHub Runner metadata: error parsing github runner metadata: ";
    let (modes, bearer) = (("authModes", "x"), ("bearerToken", "t"));
    let refused = format!(
        "{prefix}parameter \"authModes,authMode\" value \"x\" must be one of [apiKey basic tls bearer custom oauth]"
    );
    let newer = |auth: &[(&str, &str)]| {
        let profile = KedaProfile::V2_21;
        refusal(&Trigger { profile, ..changed("github-runner", &[modes], auth) })
    };
    assert_eq!(newer(&[]), refused);
    let no_token = format!("{refused}\nno personalAccessToken/bearerToken or appKey given");
    assert_eq!(newer(&[("personalAccessToken", ""), bearer]), no_token);
    assert_eq!(newer(&[("appKey", "k")]), format!("{refused}\nno applicationID given"));
}

#[tokio::test]
async fn targets_and_hosts() {
    in_both_releases("mssql", &[("targetValue", "0")], &[], "no targetValue given");
    let solr = "error parsing Solr metadata: no targetQueryValue given";
    in_both_releases("solr", &[("targetQueryValue", "0")], &[], solr);
    let port = refusal(&changed("mssql", &[("port", "abc")], &[]));
    assert!(port.starts_with("unable to set param \"port\" value \"abc\": unable to unmarshal"), "{port}");
    let splunk = "error parsing Splunk metadata: invalid value for host. Must be a valid URL such as \
                  https://localhost:8089";
    in_both_releases("splunk", &[("host", "UPPER_lower-1")], &[], splunk);
    let solarwinds = "error parsing SolarWinds metadata: error parsing solarwinds metadata: parameter \
                      \"aggregation\" value \"avg\" must be one of [COUNT MIN MAX AVG SUM LAST]";
    in_both_releases("solarwinds", &[("aggregation", "avg")], &[], solarwinds);
    let address = refusal(&changed("liiklus", &[("address", "a/b.c:d%e(f)g")], &[]));
    assert!(address.starts_with("parse \"dns:///a/b.c:d%e(f)g\": "), "{address}");
    let mut given = changed("mssql", &[], &[]);
    given.identity.provider = "gcp".to_owned();
    assert_eq!(refusal(&given), "pod identity gcp is not supported for mssql scaler");
}

#[tokio::test]
async fn formulas_have_their_own_target() {
    for (type_, zero) in [("new-relic", true), ("loki", true), ("solr", false), ("mssql", false)] {
        let given = Trigger { feeds_formula: true, ..changed(type_, &[], &[]) };
        let specs = build(&given).unwrap().specs().await.unwrap();
        let target = &specs.first().unwrap().external.as_ref().unwrap().target;
        let expected = if zero { "0" } else { "5" };
        assert_eq!(target.average_value.as_ref().unwrap().canonical(), expected, "{type_}");
    }
}

#[tokio::test]
async fn temporal_rules() {
    let prefix = "failed to parse Temporal metadata: error parsing temporal metadata: ";
    for key in ["targetQueueSize", "activationTargetQueueSize", "minConnectTimeout"] {
        let expected = format!("{prefix}{key} must be a positive number");
        in_both_releases("temporal", &[(key, "-1")], &[], &expected);
    }
    let expected = format!("{prefix}both cert and key must be provided when using TLS");
    in_both_releases("temporal", &[], &[("key", "k")], &expected);
    let given = Trigger { metric_type: "Utilization".to_owned(), ..changed("temporal", &[], &[]) };
    assert!(refusal(&given).starts_with("failed to get scaler metric type: 'Utilization' metric type is"));
}

#[tokio::test]
async fn sumologic_rules() {
    let prefix = "error parsing metadata: error parsing metadata: ";
    let both = format!(
        "{prefix}invalid metadata: only one of query or query.<RowId> must be defined for metrics queryType"
    );
    in_both_releases("sumologic", &[("query.A", "a")], &[], &both);
    let none = format!(
        "{prefix}missing metadata: either of query or query.<RowId> must be defined for metrics queryType"
    );
    in_both_releases("sumologic", &[("query", "")], &[], &none);
    let empty = "error parsing metadata: malformed metadata, invalid value for key: query.A";
    in_both_releases("sumologic", &[("query.A", "")], &[], empty);
    let logs = ("queryType", "logs");
    let field = format!("{prefix}missing required metadata: resultField (required for logs queryType)");
    in_both_releases("sumologic", &[logs], &[], &field);
    let rows = format!("{prefix}invalid metadata, query.<RowId> not supported for logs queryType");
    in_both_releases("sumologic", &[logs, ("query.A", "a")], &[], &rows);
    let quantization = format!("{prefix}missing required metadata: quantization for metrics queryType");
    in_both_releases("sumologic", &[("quantization", "0")], &[], &quantization);
}

#[tokio::test]
async fn rules_of_redis_and_rabbitmq_have_an_order() {
    let both = "error parsing redis metadata: error parsing redis metadata: unable to set `tls` in both \
                ScaledObject and TriggerAuthentication together";
    in_both_releases("redis", &[("enableTLS", "false")], &[("tls", "disable")], both);
    let streams = "error parsing redis streams metadata: error parsing redis stream metadata";
    let expected = format!(
        "{streams}: missing required parameter \"stream\" in [triggerMetadata]\nno addresses or hosts given. address \
         should be a comma separated list of host:port or set the host/port values"
    );
    in_both_releases("redis-streams", &[("address", ""), ("stream", "")], &[], &expected);
    let rabbitmq = "error parsing RabbitMQ metadata: error parsing RabbitMQ metadata";
    let broken = [("pageSize", "0"), ("useRegex", "true")];
    let expected = format!("{rabbitmq}: pageSize should be 1 or greater");
    in_both_releases("rabbitmq", &broken, &[("host", "amqp://r")], &expected);
    let expected = format!("{rabbitmq}: username and password must be given together");
    in_both_releases("rabbitmq", &[], &[("host", "no scheme"), ("username", "u")], &expected);
    in_both_releases("rabbitmq", &[("mode", "Unknown"), ("value", "")], &[], "");
}

#[tokio::test]
async fn wrong_parameters_come_in_the_order_of_keda() {
    let user = changed("activemq", &[("targetQueueSize", "x")], &[("username", "")]);
    let version = changed("influxdb", &[("thresholdValue", "x"), ("influxVersion", "9")], &[]);
    let list = changed("redis", &[("listName", ""), ("listLength", "x")], &[]);
    let stream = changed("redis-streams", &[("activationLagCount", "x"), ("databaseIndex", "x")], &[]);
    for (given, expected) in [
        (user, ["username", "targetQueueSize"]),
        (version, ["influxVersion", "thresholdValue"]),
        (list, ["listLength", "listName"]),
        (stream, ["databaseIndex", "activationLagCount"]),
    ] {
        let refused = refusal(&given);
        let [first, second] = expected.map(|name| refused.find(&format!("\"{name}\"")).unwrap());
        assert!(first < second, "{refused}");
    }
}
