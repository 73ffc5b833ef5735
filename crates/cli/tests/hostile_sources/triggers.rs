//! Triggers with hostile servers, over every protocol.

use serde_json::{Value, json};

use super::answers;
use super::servers::{Answer, Flow, Start};

/// A trigger and the response of its server.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The trigger, by the address of the server.
    pub(crate) trigger: Box<dyn Fn(String) -> Value + Send>,
    /// The value of `CONNECTION` in the container, by the address of the server.
    pub(crate) connection: fn(String) -> String,
    pub(crate) answer: Answer,
}

fn metrics_api(address: &str, format: &str, location: &str) -> Value {
    json!({"type": "metrics-api", "metadata": {
        "url": format!("http://{address}/"), "format": format, "valueLocation": location, "targetValue": "5"}})
}

/// A trigger for `{"a": 7}`.
pub(crate) fn json_value(address: &str) -> Value {
    metrics_api(address, "json", "a")
}

fn case(
    name: &str,
    type_: &'static str,
    metadata: fn(&str) -> Value,
    connection: fn(String) -> String,
    answer: Answer,
) -> Case {
    let trigger = Box::new(move |address: String| json!({"type": type_, "metadata": metadata(&address)}));
    Case { name: name.to_owned(), trigger, connection, answer }
}

fn none(_: String) -> String {
    String::new()
}

fn redis(address: &str) -> Value {
    json!({"address": address, "listName": "l"})
}

fn redis_cluster(address: &str) -> Value {
    json!({"addresses": address, "listName": "l"})
}

fn rabbitmq(address: &str) -> Value {
    json!({"protocol": "amqp", "host": format!("amqp://guest:guest@{address}/"), "queueName": "q",
        "mode": "QueueLength", "value": "5"})
}

fn kafka(address: &str) -> Value {
    json!({"bootstrapServers": address, "consumerGroup": "g", "topic": "t", "lagThreshold": "5"})
}

fn mysql(_: &str) -> Value {
    json!({"connectionStringFromEnv": "CONNECTION", "query": "SELECT 1", "queryValue": "5"})
}

fn mongodb(_: &str) -> Value {
    json!({"connectionStringFromEnv": "CONNECTION", "dbName": "d", "collection": "c", "query": "{\"a\": 1}", "queryValue": "5"})
}

fn postgresql(_: &str) -> Value {
    json!({"connectionFromEnv": "CONNECTION", "query": "SELECT 1", "targetQueryValue": "5"})
}

fn mssql(_: &str) -> Value {
    json!({"connectionStringFromEnv": "CONNECTION", "query": "SELECT 1", "targetValue": "5"})
}

fn azure_pipelines(address: &str) -> Value {
    let demands: Vec<String> = (0..answers::DEMANDS).map(|number| format!("d{number}")).collect();
    // With a name instead of the id, the many pools in the answer would be refused before any job is asked for.
    json!({"organizationURL": format!("http://{address}/org"), "poolID": "7", "demands": demands.join(","),
        "personalAccessTokenFromEnv": "CONNECTION"})
}

fn beanstalkd(address: &str) -> Value {
    json!({"server": address, "tube": "t", "value": "5"})
}

fn external(address: &str) -> Value {
    json!({"scalerAddress": address})
}

fn prometheus(address: &str) -> Value {
    json!({"serverAddress": format!("http://{address}"), "query": "q", "threshold": "5"})
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    for (name, format, answer) in answers::bodies() {
        let location = if format == "prometheus" { "q{a=\"1\"}" } else { "a.b" };
        let trigger = Box::new(move |address: String| metrics_api(&address, format, location));
        all.push(Case { name: name.to_owned(), trigger, connection: none, answer });
    }
    let endless = |head: &[u8], piece: &[u8]| Answer::new(head, piece.repeat(10_000), Flow::Endless);
    // A frame of AMQP that announces 2 GiB, and heartbeats without end.
    let frame = [1, 0, 0, 0x7f, 0xff, 0xff, 0xff];
    let heartbeat = [8, 0, 0, 0, 0, 0, 0, 0xce];
    // Messages that announce as much as their length can say, or as much as is allowed.
    let kafka_length = 0x7fff_ffff_u32.to_be_bytes();
    let kafka_allowed = (16_u32 << 20).to_be_bytes();
    let mysql_length = [0xff, 0xff, 0xff, 0];
    let mongodb_length = 0x7fff_ffff_u32.to_le_bytes();
    let postgresql_length = [b'R', 0x7f, 0xff, 0xff, 0xff];
    let many = b"\x0a\x00".repeat(30_000);
    let mysql_address = |address: String| format!("user:password@tcp({address})/database");
    let mongodb_address = |address: String| format!("mongodb://{address}/database");
    let postgresql_address = |address: String| {
        let (host, port) = address.split_once(':').unwrap();
        format!("host={host} port={port} user=u password=p dbname=d sslmode=disable")
    };
    let mssql_address = |address: String| {
        let (host, port) = address.split_once(':').unwrap();
        format!("server={host},{port};user id=u;password=p;database=d")
    };
    let token = |_: String| "token".to_owned();
    all.extend([
        case("prometheus-endless", "prometheus", prometheus, none, answers::endless_vector()),
        case("redis-long", "redis", redis, none, endless(b"$536870912\r\n", b"x")),
        case("redis-many", "redis", redis, none, endless(b"*100000000\r\n", b":1\r\n")),
        case("redis-deep", "redis", redis, none, endless(b"", b"*4096\r\n")),
        case("redis-slow", "redis", redis, none, Answer::new("$1000\r\n", "x", Flow::Drip)),
        case(
            "redis-cluster",
            "redis-cluster",
            redis_cluster,
            none,
            endless(b"*90000\r\n", b"$9\r\n123456789\r\n"),
        ),
        case("amqp-huge", "rabbitmq", rabbitmq, none, endless(&frame, &[0])),
        case("amqp-endless", "rabbitmq", rabbitmq, none, endless(&[], &heartbeat)),
        case("amqp-malformed", "rabbitmq", rabbitmq, none, Answer::new("AMQP\0\0\0\0", "", Flow::Once)),
        case("kafka-huge", "kafka", kafka, none, endless(&kafka_length, &[0])),
        case("kafka-endless", "kafka", kafka, none, endless(&kafka_allowed, &[0])),
        case(
            "mysql-huge",
            "mysql",
            mysql,
            mysql_address,
            endless(&mysql_length, &[0]).starting(Start::AtOnce),
        ),
        case("mongodb-huge", "mongodb", mongodb, mongodb_address, endless(&mongodb_length, &[0])),
        case(
            "postgresql-huge",
            "postgresql",
            postgresql,
            postgresql_address,
            endless(&postgresql_length, &[0]),
        ),
        case("mssql-many", "mssql", mssql, mssql_address, answers::rows_of_no_bytes()),
        case("azure-pipelines-many", "azure-pipelines", azure_pipelines, token, answers::many_jobs()),
        case("beanstalkd-huge", "beanstalkd", beanstalkd, none, endless(b"OK 99999999\r\n", b"a: 1\n")),
        case("beanstalkd-endless", "beanstalkd", beanstalkd, none, endless(b"", b"x")),
        case("protobuf-huge", "external", external, none, answers::grpc(u32::MAX, b"")),
        case("protobuf-many", "external", external, none, answers::grpc(60_000, &many)),
        case("protobuf-malformed", "external", external, none, answers::grpc(4, b"\xff\xff\xff\xff")),
    ]);
    all
}
