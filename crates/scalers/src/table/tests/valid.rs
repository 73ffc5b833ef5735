//! Valid triggers of each scaler type, which tests vary one parameter at a time.

use std::time::Duration;

use crate::Trigger;
use crate::stage::{texts, trigger};

/// The protocol of a scaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// No network.
    Nothing,
    /// The shared HTTP client.
    Http,
    /// HTTPS only.
    Https,
    /// Another protocol over TCP.
    Other,
    /// A server whose address cannot be configured.
    Fixed,
}

type Texts = &'static [(&'static str, &'static str)];

/// The value of every password, key and token.
pub(super) const SECRET: &str = "hunter2";

/// Whether a text contains the secret, also as base64, alone or after a user.
pub(super) fn is_told(text: &str) -> bool {
    [SECRET, "aHVudGVyMg", "dTpodW50ZXIy"].iter().any(|form| text.contains(form))
}

/// `{}` is `host:port`, `{port}` the port.
const VALID: &[(&str, Speaks, Texts, Texts)] = &[
    (
        "activemq",
        Speaks::Http,
        &[("managementEndpoint", "{}"), ("destinationName", "q"), ("brokerName", "b")],
        USER,
    ),
    (
        "arangodb",
        Speaks::Http,
        &[
            ("endpoints", "http://{}"),
            ("collection", "c"),
            ("query", "RETURN 1"),
            ("queryValue", "1"),
            ("dbName", "d"),
        ],
        &[],
    ),
    (
        "artemis-queue",
        Speaks::Http,
        &[("managementEndpoint", "{}"), ("queueName", "q"), ("brokerName", "b"), ("brokerAddress", "a")],
        USER,
    ),
    (
        "aws-dynamodb",
        Speaks::Http,
        &[
            ("tableName", "t"),
            ("awsRegion", "eu-west-1"),
            ("keyConditionExpression", "#a = :a"),
            ("expressionAttributeNames", r##"{"#a": "a"}"##),
            ("expressionAttributeValues", r#"{":a": {"S": "x"}}"#),
            ("targetValue", "5"),
            ("awsEndpoint", "http://{}"),
        ],
        AWS,
    ),
    (
        "aws-dynamodb-streams",
        Speaks::Http,
        &[("tableName", "t"), ("awsRegion", "eu-west-1"), ("awsEndpoint", "http://{}")],
        AWS,
    ),
    (
        "aws-kinesis-stream",
        Speaks::Http,
        &[("streamName", "s"), ("awsRegion", "eu-west-1"), ("awsEndpoint", "http://{}")],
        AWS,
    ),
    (
        "aws-sqs-queue",
        Speaks::Http,
        &[
            ("queueURL", "https://sqs.eu-west-1.amazonaws.com/1/q"),
            ("awsRegion", "eu-west-1"),
            ("awsEndpoint", "http://{}"),
        ],
        AWS,
    ),
    (
        "azure-queue",
        Speaks::Http,
        &[("queueName", "q")],
        &[("connection", "AccountName=a;AccountKey=aHVudGVyMg==;QueueEndpoint=http://{}/a")],
    ),
    (
        "azure-servicebus",
        Speaks::Https,
        &[("queueName", "q")],
        &[("connection", "Endpoint=sb://{}/;SharedAccessKeyName=n;SharedAccessKey=hunter2")],
    ),
    ("beanstalkd", Speaks::Other, &[("server", "{}"), ("tube", "t"), ("value", "5")], &[]),
    (
        "couchdb",
        Speaks::Http,
        &[
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("dbName", "d"),
            ("query", r#"{"selector": {}}"#),
            ("queryValue", "1"),
            ("username", "u"),
        ],
        PASSWORD,
    ),
    ("cpu", Speaks::Nothing, &[("value", "50")], &[]),
    (
        "cron",
        Speaks::Nothing,
        &[
            ("start", "0 8 * * *"),
            ("end", "0 18 * * *"),
            ("timezone", "Europe/Berlin"),
            ("desiredReplicas", "3"),
        ],
        &[],
    ),
    (
        "datadog",
        Speaks::Https,
        &[
            ("useClusterAgentProxy", "true"),
            ("datadogMetricName", "m"),
            ("datadogMetricNamespace", "n"),
            ("targetValue", "5"),
            ("authMode", "bearer"),
        ],
        &[
            ("datadogNamespace", "0.1"),
            ("datadogMetricsService", "127.0"),
            ("datadogMetricsServicePort", "{port}"),
            ("token", SECRET),
            ("unsafeSsl", "true"),
        ],
    ),
    ("dynatrace", Speaks::Http, &[("host", "http://{}"), ("metricSelector", "m"), ("threshold", "5")], TOKEN),
    ("elasticsearch", Speaks::Http, SEARCH, PASSWORD),
    ("etcd", Speaks::Http, &[("endpoints", "{}"), ("watchKey", "k"), ("value", "5")], &[]),
    ("external", Speaks::Other, &[("scalerAddress", "{}")], &[]),
    ("external-push", Speaks::Other, &[("scalerAddress", "{}")], &[]),
    ("forgejo-runner", Speaks::Http, &[("address", "http://{}"), ("labels", "l"), ("global", "true")], TOKEN),
    (
        "github-runner",
        Speaks::Http,
        &[("githubApiURL", "http://{}"), ("owner", "o"), ("runnerScope", "repo"), ("repos", "r")],
        &[("personalAccessToken", SECRET)],
    ),
    (
        "graphite",
        Speaks::Http,
        &[("serverAddress", "http://{}"), ("query", "q"), ("queryTime", "-5min"), ("threshold", "5")],
        &[],
    ),
    (
        "ibmmq",
        Speaks::Http,
        &[("host", "http://{}/ibmmq/rest/v2/admin/action/qmgr/Q/mqsc"), ("queueName", "q")],
        USER,
    ),
    (
        "influxdb",
        Speaks::Http,
        &[
            ("serverURL", "http://{}"),
            ("query", "from(bucket: \"b\")"),
            ("thresholdValue", "5"),
            ("organizationName", "o"),
        ],
        &[("authToken", SECRET)],
    ),
    (
        "kubernetes-resource",
        Speaks::Nothing,
        &[("resourceKind", "ConfigMap"), ("resourceName", "c"), ("key", "k"), ("targetValue", "5")],
        &[],
    ),
    ("kubernetes-workload", Speaks::Nothing, &[("podSelector", "app=a"), ("value", "5")], &[]),
    ("loki", Speaks::Http, &[("serverAddress", "http://{}"), ("query", "q"), ("threshold", "5")], &[]),
    ("memory", Speaks::Nothing, &[("value", "50")], &[]),
    (
        "metrics-api",
        Speaks::Http,
        &[("url", "http://{}/m"), ("valueLocation", "a.b"), ("targetValue", "5")],
        &[],
    ),
    (
        "nats-jetstream",
        Speaks::Http,
        &[("natsServerMonitoringEndpoint", "{}"), ("account", "$G"), ("stream", "s"), ("consumer", "c")],
        &[],
    ),
    (
        "new-relic",
        Speaks::Fixed,
        &[("account", "1"), ("nrql", "SELECT 1"), ("threshold", "5")],
        &[("queryKey", SECRET)],
    ),
    ("nsq", Speaks::Http, &[("nsqLookupdHTTPAddresses", "{}"), ("topic", "t"), ("channel", "c")], &[]),
    ("opensearch", Speaks::Http, SEARCH, PASSWORD),
    (
        "postgresql",
        Speaks::Other,
        &[
            ("query", "SELECT 1"),
            ("targetQueryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("userName", "u"),
            ("dbName", "d"),
            ("sslmode", "disable"),
        ],
        PASSWORD,
    ),
    ("prometheus", Speaks::Http, &[("serverAddress", "http://{}"), ("query", "q"), ("threshold", "5")], &[]),
    (
        "pulsar",
        Speaks::Http,
        &[("adminURL", "http://{}"), ("topic", "persistent://a/b/c"), ("subscription", "s")],
        &[],
    ),
    ("rabbitmq", Speaks::Http, QUEUE, &[("host", "http://u:hunter2@{}")]),
    ("redis", Speaks::Other, &[("address", "{}"), ("listName", "l")], PASSWORD),
    ("redis-cluster", Speaks::Other, &[("addresses", "{}"), ("listName", "l")], PASSWORD),
    ("redis-cluster-streams", Speaks::Other, &[("addresses", "{}"), ("stream", "s")], PASSWORD),
    (
        "redis-sentinel",
        Speaks::Other,
        &[("addresses", "{}"), ("listName", "l"), ("sentinelMaster", "m")],
        PASSWORD,
    ),
    (
        "redis-sentinel-streams",
        Speaks::Other,
        &[("addresses", "{}"), ("stream", "s"), ("sentinelMaster", "m")],
        PASSWORD,
    ),
    ("redis-streams", Speaks::Other, &[("address", "{}"), ("stream", "s")], PASSWORD),
    ("selenium-grid", Speaks::Http, &[("url", "http://{}/graphql"), ("browserName", "chrome")], &[]),
    (
        "solace-event-queue",
        Speaks::Http,
        &[
            ("solaceSempBaseURL", "http://{}"),
            ("messageVpn", "v"),
            ("queueName", "q"),
            ("messageCountTarget", "5"),
        ],
        USER,
    ),
    ("solr", Speaks::Http, &[("host", "http://{}"), ("collection", "c"), ("targetQueryValue", "5")], USER),
    (
        "splunk",
        Speaks::Http,
        &[
            ("host", "http://{}"),
            ("savedSearchName", "s"),
            ("valueField", "v"),
            ("targetValue", "5"),
            ("activationValue", "1"),
        ],
        USER,
    ),
    // The same scaler over another protocol.
    ("rabbitmq", Speaks::Other, QUEUE, &[("host", "amqp://u:hunter2@{}")]),
];

const AWS: Texts = &[("awsAccessKeyID", "id"), ("awsSecretAccessKey", SECRET)];
const USER: Texts = &[("username", "u"), ("password", SECRET)];
const PASSWORD: Texts = &[("password", SECRET)];
const TOKEN: Texts = &[("token", SECRET)];
/// Metadata of both search products.
const SEARCH: Texts = &[
    ("addresses", "http://{}"),
    ("index", "i"),
    ("query", r#"{"query": {}}"#),
    ("valueLocation", "hits.total.value"),
    ("targetValue", "5"),
    ("username", "u"),
];
/// Metadata of a RabbitMQ queue, for both protocols.
const QUEUE: Texts = &[("queueName", "q"), ("mode", "QueueLength"), ("value", "5")];

/// All samples, with a server at this local port.
pub(super) fn valid(port: u16) -> Vec<(Speaks, Trigger)> {
    let address = format!("127.0.0.1:{port}");
    let at = |text: &str| text.replace("{port}", &port.to_string()).replace("{}", &address);
    let one = |(type_, speaks, metadata, auth): &(&str, Speaks, Texts, Texts)| {
        let mut trigger = trigger(type_, metadata);
        trigger.auth = texts(auth);
        for text in trigger.metadata.values_mut().chain(trigger.auth.values_mut()) {
            // JSON values may contain empty braces.
            if !text.starts_with('{') || text == "{}" || text == "{port}" {
                *text = at(text);
            }
        }
        trigger.http_timeout = Duration::from_millis(500);
        if matches!(*type_, "cpu" | "memory") {
            trigger.metric_type = "Utilization".to_owned();
        }
        (*speaks, trigger)
    };
    VALID.iter().map(one).collect()
}

#[test]
fn every_type_has_a_sample_that_can_be_built() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    let _inside = runtime.enter();
    let valid = valid(1);
    for scaler in super::SCALER_TYPES {
        assert!(valid.iter().any(|(_, trigger)| trigger.type_ == scaler.name), "{} is missing", scaler.name);
    }
    for (_, trigger) in valid {
        if let Err(error) = crate::stage::build(&trigger) {
            panic!("{}: {error}", trigger.type_);
        }
    }
}
