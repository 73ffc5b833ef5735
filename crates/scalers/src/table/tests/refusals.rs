//! Why triggers are refused, in KEDA's words; one parameter of a valid trigger is changed at a time.

use crate::test_support::{build, texts, trigger};

/// Type, metadata and authentication of a valid trigger.
type ValidTrigger =
    (&'static str, &'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]);

/// A valid trigger, what stands in front of its errors, the changes, and the end of the error.
type RefusalCase<'a> = (ValidTrigger, &'a str, &'a [(&'a str, &'a str)], &'a str);

const CASSANDRA: ValidTrigger = (
    "cassandra",
    &[
        ("username", "u"),
        ("clusterIPAddress", "c"),
        ("port", "9042"),
        ("keyspace", "k"),
        ("query", "q"),
        ("targetQueryValue", "2"),
    ],
    &[("password", "p")],
);

const DATA_EXPLORER: ValidTrigger = (
    "azure-data-explorer",
    &[
        ("databaseName", "d"),
        ("endpoint", "https://e.example"),
        ("query", "q"),
        ("threshold", "5"),
        ("tenantId", "t"),
        ("clientId", "c"),
    ],
    &[("clientSecret", "s")],
);

const DYNATRACE: ValidTrigger =
    ("dynatrace", &[("host", "https://h"), ("query", "q"), ("threshold", "3")], &[("token", "t")]);

const FORECAST: ValidTrigger = (
    "elastic-forecast",
    &[("addresses", "http://e:9200"), ("jobID", "j"), ("targetValue", "5"), ("username", "u")],
    &[("password", "p")],
);

const IBMMQ: ValidTrigger =
    ("ibmmq", &[("host", "https://h/x"), ("queueName", "q")], &[("username", "u"), ("password", "p")]);

const INFLUXDB: ValidTrigger = (
    "influxdb",
    &[("serverURL", "http://i:8086"), ("query", "q"), ("thresholdValue", "5"), ("organizationName", "o")],
    &[("authToken", "t")],
);

const LOG_ANALYTICS: ValidTrigger = (
    "azure-log-analytics",
    &[("tenantId", "t"), ("clientId", "c"), ("workspaceId", "w"), ("query", "q"), ("threshold", "1")],
    &[("clientSecret", "s")],
);

const MONITOR: ValidTrigger = (
    "azure-monitor",
    &[
        ("resourceURI", "a/b/c"),
        ("tenantId", "t"),
        ("subscriptionId", "s"),
        ("resourceGroupName", "g"),
        ("metricName", "m"),
        ("metricAggregationType", "Average"),
        ("targetValue", "5"),
        ("activeDirectoryClientId", "c"),
    ],
    &[("activeDirectoryClientPassword", "p")],
);

/// The last part of the error of a trigger with one parameter changed in its metadata, or in its authentication if the key
/// begins with `@`; empty if it is accepted.
fn refused((type_, metadata, auth): ValidTrigger, changed: &[(&str, &str)], prefix: &str) -> String {
    let mut given = trigger(type_, metadata);
    given.auth = texts(auth);
    for (key, value) in changed {
        match key.strip_prefix('@') {
            Some(key) => given.auth.insert((*key).to_owned(), (*value).to_owned()),
            None => given.metadata.insert((*key).to_owned(), (*value).to_owned()),
        };
    }
    match build(&given) {
        Ok(_) => String::new(),
        Err(error) => error.message.replace(prefix, ""),
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let cassandra = "error parsing cassandra metadata: ";
    let data = "failed to parse azure data explorer metadata: ";
    let kusto = "failed to create azure data explorer client: failed to create kusto client: ";
    let clear = "Op(OpServConn): Kind(KClientArgs): cannot use token provider with http endpoint, as it would send the token in \
                 clear text";
    let dynatrace = "error parsing dynatrace metadata: ";
    let forecast = "error parsing elastic-forecast metadata: ";
    let ibmmq = "error parsing IBM MQ metadata: ";
    let influxdb = "error parsing influxdb metadata: ";
    let logs = "failed to initialize Log Analytics scaler. Scaled object: so. Namespace: ns. Inner Error: error parsing azure \
                loganalytics metadata: ";
    let monitor = "error parsing azure monitor metadata: ";
    for valid in [CASSANDRA, DATA_EXPLORER, DYNATRACE, FORECAST, IBMMQ, INFLUXDB, LOG_ANALYTICS, MONITOR] {
        assert_eq!(refused(valid, &[], ""), "", "{valid:?}");
    }
    let cases: &[RefusalCase<'_>] = &[
        (CASSANDRA, cassandra, &[("port", "")], "no port given"),
        (CASSANDRA, cassandra, &[("port", ""), ("clusterIPAddress", "c:9042")], ""),
        (CASSANDRA, cassandra, &[("port", ""), ("clusterIPAddress", "[fd00::1]:9042")], ""),
        (CASSANDRA, cassandra, &[("port", ""), ("clusterIPAddress", "fd00::1")], "no port given"),
        (CASSANDRA, cassandra, &[("@tls", "enable")], "both cert and key are required when TLS is enabled"),
        (DATA_EXPLORER, data, &[("tenantId", ""), ("clientId", "")], "missing required parameter tenantId"),
        (DATA_EXPLORER, data, &[("cloud", " ")], "invalid cloud environment  "),
        (DATA_EXPLORER, kusto, &[("endpoint", "HTTPS://e.example")], ""),
        (DATA_EXPLORER, kusto, &[("endpoint", "https://e.example; ;")], ""),
        (DATA_EXPLORER, kusto, &[("endpoint", "http://e.example")], clear),
        (DATA_EXPLORER, kusto, &[("endpoint", "日本")], clear),
        (
            DATA_EXPLORER,
            kusto,
            &[("endpoint", "x,y;z=w")],
            "endpoint must be a URL without the other keys of a connection string",
        ),
        (
            DYNATRACE,
            dynatrace,
            &[("from", "now-1h")],
            "'from' can't be used with query, set time range in the DQL query itself",
        ),
        (FORECAST, forecast, &[("lookAhead", "0")], "lookAhead must be positive"),
        (
            FORECAST,
            forecast,
            &[("addresses", "")],
            "username and password provided but no addresses specified",
        ),
        (
            FORECAST,
            forecast,
            &[("cloudID", "c")],
            "cannot provide both cloud config (cloudID/apiKey) and endpoint addresses",
        ),
        (IBMMQ, ibmmq, &[("@cert", "c")], "both cert and key must be provided when using TLS"),
        (INFLUXDB, influxdb, &[("thresholdValue", "0")], "no threshold value given"),
        (
            LOG_ANALYTICS,
            logs,
            &[("tenantId", ""), ("clientId", "")],
            "error parsing metadata. Details: clientId was not found in metadata. Check your ScaledObject configuration",
        ),
        (LOG_ANALYTICS, logs, &[("cloud", "x")], "there is no cloud environment matching the name x"),
        (MONITOR, monitor, &[("targetValue", "0")], "no targetValue given"),
        (MONITOR, monitor, &[("metricAggregationInterval", "a:b:c")], ""),
        (
            MONITOR,
            monitor,
            &[("metricAggregationInterval", "1"), ("metricAggregationType", "x")],
            "invalid metricAggregationType given",
        ),
    ];
    for (valid, prefix, changed, expected) in cases {
        assert_eq!(refused(*valid, changed, prefix), *expected, "{valid:?} {changed:?}");
    }
}
