//! Where parameters are read, in KEDA's order: those that were once read elsewhere, or not at all.

use crate::table::find;

/// Type, key, and the sources as KEDA's errors name them.
const SOURCES: [(&str, &str, &str); 35] = [
    ("arangodb", "collection", "triggerMetadata"),
    ("arangodb", "connectionLimit", "triggerMetadata"),
    ("arangodb", "dbName", "triggerMetadata authParams"),
    ("arangodb", "endpoints", "authParams triggerMetadata"),
    ("artemis-queue", "ca", "authParams"),
    ("artemis-queue", "cert", "authParams"),
    ("artemis-queue", "key", "authParams"),
    ("artemis-queue", "keyPassword", "authParams"),
    ("aws-dynamodb", "awsRegion", "triggerMetadata authParams"),
    ("aws-dynamodb", "filterExpression", "triggerMetadata"),
    ("aws-dynamodb-streams", "awsRegion", "triggerMetadata authParams"),
    ("azure-app-insights", "activeDirectoryClientId", "triggerMetadata authParams resolvedEnv"),
    ("azure-app-insights", "activeDirectoryClientPassword", "authParams resolvedEnv"),
    ("azure-app-insights", "applicationInsightsId", "triggerMetadata authParams resolvedEnv"),
    ("azure-app-insights", "tenantId", "triggerMetadata authParams resolvedEnv"),
    ("azure-blob", "connection", "authParams resolvedEnv triggerMetadata"),
    ("azure-data-explorer", "clientId", "triggerMetadata authParams resolvedEnv"),
    ("azure-data-explorer", "tenantId", "triggerMetadata authParams resolvedEnv"),
    ("azure-monitor", "activeDirectoryClientId", "triggerMetadata resolvedEnv authParams"),
    ("azure-monitor", "activeDirectoryClientPassword", "triggerMetadata resolvedEnv authParams"),
    ("couchdb", "connectionString", "authParams triggerMetadata resolvedEnv"),
    ("couchdb", "dbName", "authParams triggerMetadata"),
    ("couchdb", "host", "authParams triggerMetadata"),
    ("couchdb", "password", "authParams triggerMetadata resolvedEnv"),
    ("couchdb", "port", "authParams triggerMetadata"),
    ("couchdb", "username", "authParams triggerMetadata"),
    ("opensearch", "caCert", "authParams triggerMetadata"),
    ("opensearch", "clientCert", "authParams triggerMetadata"),
    ("opensearch", "clientKey", "authParams triggerMetadata"),
    ("opensearch", "enableTLS", "triggerMetadata authParams"),
    // KEDA does not read the type of the token from metadata.
    ("selenium-grid", "authType", "authParams triggerMetadata resolvedEnv"),
    ("selenium-grid", "accessToken", "authParams resolvedEnv"),
    ("selenium-grid", "password", "authParams resolvedEnv"),
    ("selenium-grid", "url", "authParams triggerMetadata"),
    ("selenium-grid", "username", "authParams resolvedEnv"),
];

#[test]
fn parameters_are_read_where_keda_reads_them() {
    for (type_, key, sources) in SOURCES {
        let scaler = find(type_).unwrap();
        let parameter = scaler.parameters.iter().find(|one| one.keys.contains(&key));
        let found: Vec<_> = parameter.unwrap().sources.iter().map(|source| source.name()).collect();
        assert_eq!(found.join(" "), sources, "{type_} {key}");
    }
}
