//! 1,000 consumer groups on one Kafka cluster, each with a ScaledObject: first KEDA polls them, then Plimsoll polls copies in another
//! namespace. A proxy in front of the broker counts requests. No metrics are requested, so all of these requests are polls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::keda::{Keda, KedaOptions, prepare};
use testbed::{Access, harness};

use crate::env::on_control_plane;
use crate::kafka_proxy::{KafkaProxy, KafkaTraffic, request_name};
use crate::kafka_server::KafkaServer;
use crate::operator_process;
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL};

const GROUPS: usize = 1_000;
/// The maximum number of our requests, divided by KEDA's.
const MAX_REQUEST_RATIO: f64 = 1.0 / 20.0;
const KEDA_NAMESPACE: &str = "keda";
/// How long it may take until all objects are active.
const ACTIVE_TIMEOUT: Duration = Duration::from_mins(10);

/// What one side did in a measurement window.
struct KafkaMeasurement {
    traffic: KafkaTraffic,
    used: ProcessMeasurement,
    /// The number of active objects at the end. All should be active, because every group has a lag.
    active: usize,
}

pub(crate) async fn run() -> bool {
    on_control_plane(compare).await
}

async fn compare(access: &Access) -> bool {
    let kubeconfig = access.kubeconfig_for(access.admin());
    let client =
        harness::connect(&kubeconfig).await.unwrap_or_else(|_| panic!("the cluster cannot be reached"));
    prepare(access, KEDA_NAMESPACE).await.unwrap();
    let kafka = KafkaServer::start(GROUPS).await;
    let port = kafka.proxy.port;
    let [theirs, ours] = ["theirs", "ours"].map(|namespace| OperatorWorkloads {
        trigger: Arc::new(move |number| KafkaServer::trigger(port, number)),
        ..OperatorWorkloads::new(namespace, GROUPS, "", Queries::Distinct)
    });
    theirs.create(&client).await;
    ours.create(&client).await;

    eprintln!("KEDA");
    let options = KedaOptions {
        namespace: Some(theirs.namespace.to_owned()),
        own_namespace: KEDA_NAMESPACE.to_owned(),
        ..KedaOptions::default()
    };
    let keda = Keda::start(access, &options).await.unwrap();
    let theirs = side(&client, theirs.namespace, keda.pid().unwrap(), &kafka.proxy).await;
    drop(keda);

    eprintln!("ours");
    let mut operator = operator_process::start(&kubeconfig, ours.namespace).await;
    let ours = side(&client, ours.namespace, operator.pid(), &kafka.proxy).await;
    operator.check();
    show(&theirs, &ours)
}

/// Waits until all objects are active, and measures one side.
async fn side(client: &Client, namespace: &str, pid: u32, proxy: &KafkaProxy) -> KafkaMeasurement {
    let begun = Instant::now();
    loop {
        let found = active(client, namespace).await;
        if found == GROUPS {
            break;
        }
        assert!(begun.elapsed() < ACTIVE_TIMEOUT, "{found} ScaledObjects in {namespace} are active");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    eprintln!("all active after {:.0} s", begun.elapsed().as_secs_f64());
    tokio::time::sleep(POLLING_INTERVAL * 2).await;
    proxy.take();
    let [used] = measure([pid], MEASUREMENT_WINDOW).await;
    let traffic = proxy.take();
    KafkaMeasurement { traffic, used, active: active(client, namespace).await }
}

/// The number of active ScaledObjects.
async fn active(client: &Client, namespace: &str) -> usize {
    let path = format!("/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects?limit=2000");
    let (_, list) = harness::send(client, Method::GET, &path, None).await;
    list["items"].as_array().map_or(0, |items| items.iter().filter(|item| is_active(item)).count())
}

fn is_active(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Active" && one["status"] == "True"))
}

/// Prints the comparison, and returns whether the limit is kept.
fn show(theirs: &KafkaMeasurement, ours: &KafkaMeasurement) -> bool {
    let title = format!(
        "{GROUPS} consumer groups on one Kafka cluster, a ScaledObject each, polled every 30 s, measured for {} s",
        MEASUREMENT_WINDOW.as_secs()
    );
    let mut table = ComparisonTable::new(&title);
    let (their, our) = (&theirs.traffic, &ours.traffic);
    table.row("requests to the broker", their.total(), our.total(), 0, Some(MAX_REQUEST_RATIO));
    let keys: BTreeSet<i16> = their.requests.keys().chain(our.requests.keys()).copied().collect();
    for key in keys {
        table.row(&format!("… {}", request_name(key)), their.of(key), our.of(key), 0, None);
    }
    let (theirs_open, ours_open) = (their.connections as f64, our.connections as f64);
    table.row("connections to the broker", theirs_open, ours_open, 0, None);
    let (their, our) = (&theirs.used, &ours.used);
    table.row("CPU, thousandths of a core", their.millicores(), our.millicores(), 1, None);
    table.row("resident memory, MiB", mebibytes(their.resident), mebibytes(our.resident), 1, None);
    println!("active at the end: theirs {}, ours {}", theirs.active, ours.active);
    table.good() && theirs.active == GROUPS && ours.active == GROUPS
}
