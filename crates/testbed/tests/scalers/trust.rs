//! Authorities that the process trusts (`--ca-dir`) apply to the clients of all protocols.

use testbed::backends::{AuthScheme, GoScaler, HttpApi, Postgresql, Rabbitmq, Redis, RedisSetup};

use super::{ParameterPairs, assert_error_contains, certificates, read, scaler, scaler_trusting, until};

#[tokio::test]
async fn process_wide_cas_apply_to_every_client() {
    let (authority, identity) = certificates();
    let redis = Redis::start(&RedisSetup { tls: Some(&identity), ..RedisSetup::default() }).await.unwrap();
    redis.command(&["RPUSH", "jobs", "a"]).await.unwrap();
    let postgresql = Postgresql::start("hunter2", Some(&identity)).await.unwrap();
    let rabbitmq = Rabbitmq::start(Some(&identity)).await.unwrap();
    rabbitmq.declare("jobs").await.unwrap();
    rabbitmq.publish("jobs", 1).await.unwrap();
    let external = GoScaler::start(Some(&identity)).await.unwrap();
    let api = HttpApi::start(&identity, &authority).unwrap();
    api.set_number("1");

    let (address, port) = (redis.tls_address(), postgresql.port().to_string());
    let (amqps, https) = (rabbitmq.amqps(), rabbitmq.https());
    let (scaler_address, url) = (external.address(), api.tls_url(AuthScheme::Open, "json"));
    let queue = [("queueName", "jobs"), ("mode", "QueueLength"), ("value", "5")];
    let database = [
        ("host", "127.0.0.1"),
        ("port", &*port),
        ("userName", "plimsoll"),
        ("dbName", "plimsoll"),
        ("sslmode", "verify-full"),
        ("query", "SELECT 1"),
        ("targetQueryValue", "5"),
    ];
    let all: [(&str, ParameterPairs<'_>, ParameterPairs<'_>); 6] = [
        ("redis", &[("address", &address), ("listName", "jobs"), ("enableTLS", "true")], &[]),
        ("postgresql", &database, &[("password", "hunter2")]),
        ("rabbitmq", &queue, &[("host", &amqps)]),
        ("rabbitmq", &queue, &[("host", &https)]),
        ("external", &[("scalerAddress", &scaler_address), ("value", "1"), ("enableTLS", "true")], &[]),
        ("metrics-api", &[("url", &url), ("valueLocation", "tasks.waiting.1"), ("targetValue", "5")], &[]),
    ];
    let others = testbed::pki::Authority::new("others").unwrap();
    for (type_, metadata, auth) in all {
        let tested_scaler = scaler_trusting(authority.certificate(), type_, metadata, auth);
        until(&tested_scaler, "1", true).await;
        for tested_scaler in
            [scaler(type_, metadata, auth), scaler_trusting(others.certificate(), type_, metadata, auth)]
        {
            let error = read(&tested_scaler).await.unwrap_err();
            assert_error_contains(&error, &[]);
            assert!(error.contains("certificate") || error.contains("unknown authority"), "{type_}: {error}");
        }
    }
}
