//! rabbitmq over AMQP and over the management API.

use testbed::backends::Rabbitmq;

use super::{assert_error_contains, certificates, read, scaler, spec, until};

#[tokio::test]
async fn queues_are_measured_over_both_protocols() {
    let mut server = Rabbitmq::start(None).await.unwrap();
    let (amqp, http) = (server.amqp(), server.http());
    server.declare("jobs").await.unwrap();
    server.declare("jobs2").await.unwrap();
    server.publish("jobs", 3).await.unwrap();
    server.publish("jobs2", 5).await.unwrap();

    let scaler_with = |host: &str, queue: &str, more: super::ParameterPairs<'_>| {
        scaler("rabbitmq", &[&[("host", host), ("queueName", queue)], more].concat(), &[])
    };
    let queue = scaler_with(&amqp, "jobs", &[("mode", "QueueLength"), ("value", "2.5")]);
    assert_eq!(spec(&queue).await, ("s0-rabbitmq-jobs".to_owned(), "2.500".to_owned()));
    assert_eq!(read(&queue).await, Ok(("3".into(), true)));
    assert_eq!(read(&scaler_with(&amqp, "jobs", &[("activationValue", "3")])).await, Ok(("3".into(), false)));

    // The management API serves statistics that it collects periodically.
    until(&scaler_with(&http, "jobs", &[]), "3", true).await;
    until(&scaler_with(&format!("{http}/%2F"), "jobs", &[]), "3", true).await;
    until(&scaler_with(&http, "jobs", &[("vhostName", "/")]), "3", true).await;
    let pattern = |operation: &str, size: &str| {
        scaler_with(&http, "^jobs.*", &[("useRegex", "true"), ("operation", operation), ("pageSize", size)])
    };
    until(&pattern("sum", "100"), "8", true).await;
    until(&pattern("max", "100"), "5", true).await;
    until(&pattern("avg", "100"), "4", true).await;
    assert_error_contains(&read(&pattern("sum", "1")).await.unwrap_err(), &["regex matches more queues"]);
    until(&scaler_with(&http, "^none$", &[("useRegex", "true")]), "0", false).await;
    until(&scaler_with(&http, "jobs", &[("excludeUnacknowledged", "true")]), "3", true).await;
    // The publish rate counts messages that were published recently; none was delivered.
    let time = [("mode", "ExpectedQueueConsumptionTime"), ("value", "1"), ("activationValue", "7")];
    assert_eq!(read(&scaler_with(&http, "jobs", &time)).await, Ok(("7".into(), true)));

    // A queue that does not exist, and wrong credentials.
    assert_error_contains(
        &read(&scaler_with(&amqp, "gone", &[])).await.unwrap_err(),
        &["NOT_FOUND", "gone", "error inspecting RabbitMQ"],
    );
    assert_eq!(read(&scaler_with(&amqp, "jobs", &[])).await, Ok(("3".into(), true)));
    assert_error_contains(&read(&scaler_with(&http, "gone", &[])).await.unwrap_err(), &["404"]);
    let wrong = |host: &str| {
        let auth = [("username", "guest"), ("password", "hunter2")];
        scaler("rabbitmq", &[("host", host), ("queueName", "jobs")], &auth)
    };
    assert_error_contains(&read(&wrong(&amqp)).await.unwrap_err(), &["ACCESS_REFUSED"]);
    assert_error_contains(&read(&wrong(&http)).await.unwrap_err(), &["401"]);
    let nowhere = scaler_with(&format!("{amqp}/none"), "jobs", &[]);
    assert_error_contains(&read(&nowhere).await.unwrap_err(), &["none"]);

    // The server is killed and started again.
    let (over_amqp, over_http) = (scaler_with(&amqp, "jobs", &[]), scaler_with(&http, "jobs", &[]));
    server.stop();
    for scaler in [&over_amqp, &over_http] {
        assert_error_contains(&read(scaler).await.unwrap_err(), &["connection refused"]);
    }
    server.resume().await.unwrap();
    until(&over_amqp, "3", true).await;
    until(&over_http, "3", true).await;
    server.take("jobs", 3).await.unwrap();
    until(&over_amqp, "0", false).await;
    until(&over_http, "0", false).await;
}

#[tokio::test]
async fn both_protocols_work_over_tls() {
    let (authority, identity) = certificates();
    let server = Rabbitmq::start(Some(&identity)).await.unwrap();
    server.declare("jobs").await.unwrap();
    server.publish("jobs", 2).await.unwrap();
    let ca = [("ca", authority.certificate()), ("tls", "enable")];
    for host in [server.amqps(), server.https()] {
        let scaler_with = |more: super::ParameterPairs<'_>, auth: super::ParameterPairs<'_>| {
            scaler("rabbitmq", &[&[("host", &*host), ("queueName", "jobs")], more].concat(), auth)
        };
        until(&scaler_with(&[], &ca), "2", true).await;
        until(&scaler_with(&[("unsafeSsl", "true")], &[]), "2", true).await;
        assert_error_contains(&read(&scaler_with(&[], &[])).await.unwrap_err(), &["unknown authority"]);
    }
}
