//! RabbitMQ with its management API.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::{DEADLINE, write_identity};
use crate::cache::Cache;
use crate::components::local;
use crate::error::{Attempt as _, Error};
use crate::parts::RABBITMQ;
use crate::pki::Identity;
use crate::plain;
use crate::ports;
use crate::program::{Program, Restartable, TempFolder};
use crate::progress::Progress;

/// A running RabbitMQ; user and password are `guest`.
pub struct Rabbitmq {
    programs: PathBuf,
    ports: RabbitmqPorts,
    server: Restartable,
    /// Erlang's port mapper daemon.
    mapper: Option<Program>,
}

#[derive(Clone, Copy)]
struct RabbitmqPorts {
    amqp: u16,
    amqps: u16,
    http: u16,
    https: u16,
    mapper: u16,
    nodes: u16,
}

impl Rabbitmq {
    /// Starts the server; with a certificate it also serves TLS.
    pub async fn start(tls: Option<&Identity>) -> Result<Self, Error> {
        let programs = Cache::of_user()?.ensure(&RABBITMQ, &mut Progress::stderr())?;
        let [amqp, amqps, http, https, mapper, nodes] = ports::several()?;
        let ports = RabbitmqPorts { amqp, amqps, http, https, mapper, nodes };
        let temp_folder = TempFolder::new()?;
        if let Some(identity) = tls {
            write_identity(&temp_folder, identity)?;
        }
        temp_folder.write("rabbitmq.conf", &config(ports, tls.is_some(), temp_folder.root()))?;
        temp_folder.write("enabled_plugins", "[rabbitmq_management].\n")?;
        let mut server = Self { programs, ports, server: Restartable::new(temp_folder), mapper: None };
        server.resume().await?;
        Ok(server)
    }

    /// The URL of the management API, with user and password.
    pub fn http(&self) -> String {
        format!("http://guest:guest@127.0.0.1:{}", self.ports.http)
    }

    /// The same URL with TLS.
    pub fn https(&self) -> String {
        format!("https://guest:guest@127.0.0.1:{}", self.ports.https)
    }

    /// The URL of AMQP, with user and password.
    pub fn amqp(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.ports.amqp)
    }

    /// The same URL with TLS.
    pub fn amqps(&self) -> String {
        format!("amqps://guest:guest@127.0.0.1:{}", self.ports.amqps)
    }

    /// Kills the server. Durable queues and messages are kept.
    pub fn stop(&mut self) {
        self.server.stop();
        self.mapper = None;
    }

    /// Starts the server again after [`Rabbitmq::stop`], and returns when it is ready.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(temp_folder) = self.server.take_idle() else { return Ok(()) };
        let RabbitmqPorts { amqp, mapper, nodes, .. } = self.ports;
        // Without this, Erlang starts a port mapper that runs forever.
        let listen = ["-port", &mapper.to_string(), "-address", "127.0.0.1"].map(str::to_owned);
        let mapper_program =
            Program::start("epmd", &self.programs.join("epmd"), &listen, TempFolder::new()?)?;
        let file = |name: &str| temp_folder.path(name).display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let server = self.programs.join("rabbitmq-server").display().to_string();
        let arguments = [
            format!("PATH={}:{path}", self.programs.display()),
            format!("HOME={}", temp_folder.root().display()),
            format!("ERL_EPMD_PORT={mapper}"),
            "ERL_EPMD_ADDRESS=127.0.0.1".to_owned(),
            format!("RABBITMQ_MNESIA_BASE={}", file("mnesia")),
            format!("RABBITMQ_LOG_BASE={}", file("log")),
            format!("RABBITMQ_CONFIG_FILE={}", file("rabbitmq")),
            format!("RABBITMQ_ENABLED_PLUGINS_FILE={}", file("enabled_plugins")),
            "RABBITMQ_CONF_ENV_FILE=/dev/null".to_owned(),
            format!("RABBITMQ_PID_FILE={}", file("pid")),
            format!("RABBITMQ_NODENAME=testbed{amqp}@localhost"),
            format!("RABBITMQ_DIST_PORT={nodes}"),
            // The shell is replaced by the server, so that it ends with the server.
            "RABBITMQ_ALLOW_INPUT=1".to_owned(),
            "RABBITMQ_SERVER_START_ARGS=-noinput".to_owned(),
            server,
        ];
        let mut program = Program::start("rabbitmq", Path::new("/usr/bin/env"), &arguments, temp_folder)?;
        let overview = format!("{}/api/overview", local("http", self.ports.http));
        program
            .until(DEADLINE, async || {
                let response = request(Method::GET, &overview, Value::Null).await;
                response.is_ok() && tokio::net::TcpStream::connect(("127.0.0.1", amqp)).await.is_ok()
            })
            .await?;
        self.server.started(program);
        self.mapper = Some(mapper_program);
        Ok(())
    }

    /// Creates a durable queue in the default virtual host.
    pub async fn declare(&self, queue: &str) -> Result<(), Error> {
        self.manage(Method::PUT, &format!("queues/%2F/{queue}"), json!({"durable": true})).await.map(|_| ())
    }

    /// Publishes messages to a queue.
    pub async fn publish(&self, queue: &str, count: usize) -> Result<(), Error> {
        for number in 0..count {
            let message = json!({
                "properties": {"delivery_mode": 2},
                "routing_key": queue,
                "payload": number.to_string(),
                "payload_encoding": "string",
            });
            self.manage(Method::POST, "exchanges/%2F/amq.default/publish", message).await?;
        }
        Ok(())
    }

    /// Consumes messages of a queue.
    pub async fn take(&self, queue: &str, count: usize) -> Result<(), Error> {
        let body = json!({"count": count, "ackmode": "ack_requeue_false", "encoding": "auto"});
        self.manage(Method::POST, &format!("queues/%2F/{queue}/get"), body).await.map(|_| ())
    }

    /// Sends a request to the management API.
    pub async fn manage(&self, method: Method, path: &str, body: Value) -> Result<Value, Error> {
        let url = format!("{}/api/{path}", local("http", self.ports.http));
        request(method, &url, body).await.attempt(|| format!("ask RabbitMQ for {path}"))
    }
}

async fn request(method: Method, url: &str, body: Value) -> io::Result<Value> {
    let authorization = format!("Basic {}", STANDARD.encode("guest:guest"));
    plain::send_json(method, url, ("authorization", &authorization), &body).await
}

fn config(ports: RabbitmqPorts, tls: bool, folder: &Path) -> String {
    let RabbitmqPorts { amqp, amqps, http, https, .. } = ports;
    let mut config = format!(
        "listeners.tcp.1 = 127.0.0.1:{amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = {http}
collect_statistics_interval = 1000
log.console = true
log.console.level = warning
log.file = false
"
    );
    if tls {
        let folder = folder.display();
        for prefix in ["ssl_options", "management.ssl"] {
            config.push_str(&format!(
                "{prefix}.certfile = {folder}/server.crt\n{prefix}.keyfile = {folder}/server.key\n"
            ));
        }
        config.push_str(&format!(
            "listeners.ssl.1 = 127.0.0.1:{amqps}\nssl_options.verify = verify_none\n\
             management.ssl.ip = 127.0.0.1\nmanagement.ssl.port = {https}\n"
        ));
    }
    config
}
