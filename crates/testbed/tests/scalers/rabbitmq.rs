//! rabbitmq over AMQP and over the management API.

use testbed::backends::Rabbitmq;

use super::{assert_says, certificates, read, scaler, spec, until};

#[tokio::test]
async fn queues_are_measured_over_both_protocols() {
    let mut server = Rabbitmq::start(None).await.unwrap();
    let (amqp, http) = (server.amqp(), server.http());
    server.declare("jobs").await.unwrap();
    server.declare("jobs2").await.unwrap();
    server.publish("jobs", 3).await.unwrap();
    server.publish("jobs2", 5).await.unwrap();

    let asked = |host: &str, queue: &str, more: super::Pairs<'_>| {
        scaler("rabbitmq", &[&[("host", host), ("queueName", queue)], more].concat(), &[])
    };
    let queue = asked(&amqp, "jobs", &[("mode", "QueueLength"), ("value", "2.5")]);
    assert_eq!(spec(&queue).await, ("s0-rabbitmq-jobs".to_owned(), "2.500".to_owned()));
    assert_eq!(read(&queue).await, Ok(("3".into(), true)));
    assert_eq!(read(&asked(&amqp, "jobs", &[("activationValue", "3")])).await, Ok(("3".into(), false)));

    // The management API serves statistics that it collects periodically.
    until(&asked(&http, "jobs", &[]), "3", true).await;
    until(&asked(&format!("{http}/%2F"), "jobs", &[]), "3", true).await;
    until(&asked(&http, "jobs", &[("vhostName", "/")]), "3", true).await;
    let pattern = |operation: &str, size: &str| {
        asked(&http, "^jobs.*", &[("useRegex", "true"), ("operation", operation), ("pageSize", size)])
    };
    until(&pattern("sum", "100"), "8", true).await;
    until(&pattern("max", "100"), "5", true).await;
    until(&pattern("avg", "100"), "4", true).await;
    assert_says(&read(&pattern("sum", "1")).await.unwrap_err(), &["regex matches more queues"]);
    until(&asked(&http, "^none$", &[("useRegex", "true")]), "0", false).await;
    until(&asked(&http, "jobs", &[("excludeUnacknowledged", "true")]), "3", true).await;
    // Published a while ago, delivered never.
    let time = [("mode", "ExpectedQueueConsumptionTime"), ("value", "1"), ("activationValue", "7")];
    assert_eq!(read(&asked(&http, "jobs", &time)).await, Ok(("7".into(), true)));

    // What is not there, and who is not let in.
    assert_says(
        &read(&asked(&amqp, "gone", &[])).await.unwrap_err(),
        &["NOT_FOUND", "gone", "error inspecting RabbitMQ"],
    );
    assert_eq!(read(&asked(&amqp, "jobs", &[])).await, Ok(("3".into(), true)));
    assert_says(&read(&asked(&http, "gone", &[])).await.unwrap_err(), &["404"]);
    let wrong = |host: &str| {
        let auth = [("username", "guest"), ("password", "hunter2")];
        scaler("rabbitmq", &[("host", host), ("queueName", "jobs")], &auth)
    };
    assert_says(&read(&wrong(&amqp)).await.unwrap_err(), &["ACCESS_REFUSED"]);
    assert_says(&read(&wrong(&http)).await.unwrap_err(), &["401"]);
    let nowhere = asked(&format!("{amqp}/none"), "jobs", &[]);
    assert_says(&read(&nowhere).await.unwrap_err(), &["none"]);

    // It dies and comes back.
    let (over_amqp, over_http) = (asked(&amqp, "jobs", &[]), asked(&http, "jobs", &[]));
    server.stop();
    for scaler in [&over_amqp, &over_http] {
        assert_says(&read(scaler).await.unwrap_err(), &["connection refused"]);
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
        let asked = |more: super::Pairs<'_>, auth: super::Pairs<'_>| {
            scaler("rabbitmq", &[&[("host", &*host), ("queueName", "jobs")], more].concat(), auth)
        };
        until(&asked(&[], &ca), "2", true).await;
        until(&asked(&[("unsafeSsl", "true")], &[]), "2", true).await;
        assert_says(&read(&asked(&[], &[])).await.unwrap_err(), &["unknown authority"]);
    }
}
