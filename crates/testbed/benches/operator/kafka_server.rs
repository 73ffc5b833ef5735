//! A real Kafka broker behind a proxy that counts requests, and its topics and consumer groups.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::program::{Program, TempFolder};
use testbed::servers::{KEDA_SCALER, server};
use testbed::{Cache, Progress, ports};

use crate::kafka_proxy::KafkaProxy;
use crate::workloads::name;

const TOPICS: usize = 20;
const PARTITIONS: usize = 5;
/// The number of messages in each partition.
const MESSAGES: usize = 10;
/// The offset that every group commits in each partition.
const COMMITTED_OFFSET: usize = 4;
/// How long the broker may take to become ready or to accept a request.
const BROKER_TIMEOUT: Duration = Duration::from_mins(2);

/// A broker; it ends when this is dropped.
pub(crate) struct KafkaServer {
    pub(crate) proxy: KafkaProxy,
    _broker: Program,
}

impl KafkaServer {
    /// Starts a broker and creates `groups` consumer groups, each with a lag of 30 messages in one topic.
    pub(crate) async fn start(groups: usize) -> Self {
        let cache = Cache::of_user().unwrap();
        let programs = cache.ensure(server("kafka").unwrap(), &mut Progress::stderr()).unwrap();
        let (port, controller) = (ports::free().unwrap(), ports::free().unwrap());
        let proxy = KafkaProxy::start(port).await;
        let temp_folder = TempFolder::new().unwrap();
        let data = temp_folder.path("data");
        let settings = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{}\n\
             controller.listener.names=CONTROLLER\n\
             log.dirs={}\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             auto.create.topics.enable=false\n",
            proxy.port,
            data.display()
        );
        let settings = temp_folder.write("server.properties", &settings).unwrap().display().to_string();
        let format = ["format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA", "--config", settings.as_str()];
        let formatted = Command::new(programs.join("kafka-storage")).args(format).output().unwrap();
        assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stderr));
        let broker = Program::start("kafka", &programs.join("kafka"), &[settings], temp_folder).unwrap();
        fill(proxy.port, groups).await;
        Self { proxy, _broker: broker }
    }

    /// The trigger of a ScaledObject for one of the groups.
    pub(crate) fn trigger(port: u16, number: usize) -> Value {
        let metadata = json!({
            "bootstrapServers": format!("127.0.0.1:{port}"), "consumerGroup": name(number),
            "topic": topic(number), "lagThreshold": "10",
        });
        json!({"type": "kafka", "metadata": metadata})
    }
}

fn topic(number: usize) -> String {
    format!("orders-{:02}", number % TOPICS)
}

/// Creates the topics, their messages and the groups.
async fn fill(port: u16, groups: usize) {
    let broker = format!("127.0.0.1:{port}");
    let mut filler = KafkaFiller::start();
    filler.until_filled(&json!({"broker": broker})).await;
    for number in 0..TOPICS {
        let topic = topic(number);
        let error = filler.fill(&json!({"broker": broker, "topic": topic, "partitions": PARTITIONS}));
        assert!(error.is_none(), "{topic}: {error:?}");
        filler.until_filled(&json!({"broker": broker, "topic": topic, "messages": MESSAGES})).await;
    }
    eprintln!("creating {groups} consumer groups");
    for number in 0..groups {
        let (topic, group) = (topic(number), name(number));
        let committed = json!({"broker": broker, "topic": topic, "group": group, "offset": COMMITTED_OFFSET});
        filler.until_filled(&committed).await;
    }
}

/// The program of the testbed that fills servers; it ends when this is dropped.
struct KafkaFiller {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl KafkaFiller {
    fn start() -> Self {
        let folder = Cache::of_user().unwrap().ensure(&KEDA_SCALER, &mut Progress::stderr()).unwrap();
        let mut command = Command::new(folder.join("keda-scaler"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Sends one request to the program, and returns the error if there is one.
    fn fill(&mut self, kafka: &Value) -> Option<String> {
        writeln!(self.input, "{}", json!({"fill": {"kafka": kafka}})).unwrap();
        self.input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).unwrap();
        response["error"].as_str().filter(|error| !error.is_empty()).map(str::to_owned)
    }

    /// Repeats a request until the broker accepts it, because a new broker or topic is not ready at once.
    async fn until_filled(&mut self, kafka: &Value) {
        let begun = Instant::now();
        while let Some(error) = self.fill(kafka) {
            assert!(begun.elapsed() < BROKER_TIMEOUT, "{kafka}: {error}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

impl Drop for KafkaFiller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
