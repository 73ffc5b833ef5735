//! 1,000 ScaledObjects on a real API server: first KEDA looks after them, then ours after their twins in another namespace.
//!
//! Both poll the same Prometheus every 30 s, all objects are active, and both are asked for every metric every 15 s, through
//! the API server, as Kubernetes' HPA controller would: KEDA's adapter, which asks its operator, and our operator itself.

use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::keda::{Keda, KedaOptions, prepare};
use testbed::proxy::{Proxy, ProxyOptions, Rules};
use testbed::{Access, ControlPlane, Options, twin};

use crate::figures::{Measured, measure};
use crate::questions::Questions;
use crate::source::Source;
use crate::stage::register;
use crate::subject::Subject;
use crate::table::{Beside, mebibytes};
use crate::world::{Queries, World, send};
use crate::{INTERVAL, WINDOW};

const OBJECTS: usize = 1_000;
const CPU: f64 = 1.0 / 8.0;
const MEMORY: f64 = 1.0 / 5.0;
const HOME: &str = "keda";

/// What one side did.
struct Side {
    processes: Vec<(&'static str, Measured)>,
    queries: u64,
    answered: u64,
    failed: u64,
    requests: u64,
}

impl Side {
    fn all(&self) -> Measured {
        self.processes.iter().map(|(_, measured)| *measured).reduce(Measured::and).unwrap()
    }
}

pub(crate) async fn run() -> bool {
    // Nobody else is to act on deployments and HPAs.
    let options = Options { controller_manager: false, ..Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await.unwrap();
    match plane {
        Ok(plane) => compare(plane.access()).await,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

async fn compare(access: &Access) -> bool {
    let kubeconfig = access.kubeconfig_for(access.admin());
    let client = twin::connect(&kubeconfig).await.unwrap_or_else(|_| panic!("the cluster cannot be reached"));
    prepare(access, HOME).await.unwrap();
    let source = Source::start(5).await;
    let worlds =
        ["theirs", "ours"].map(|namespace| World::new(namespace, OBJECTS, &source.url, Queries::Distinct));
    for world in &worlds {
        world.make(&client).await;
    }
    eprintln!("KEDA");
    let theirs = theirs(access, &client, &source, &worlds[0]).await;
    eprintln!("ours");
    let ours = ours(&kubeconfig, &client, &source, &worlds[1]).await;

    let title = format!(
        "{OBJECTS} ScaledObjects on a real API server, polled every 30 s and asked for every 15 s, measured for {} s",
        WINDOW.as_secs()
    );
    let mut table = Beside::new(&title);
    let (their, our) = (theirs.all(), ours.all());
    table.row("CPU, thousandths of a core", their.millicores(), our.millicores(), 1, Some(CPU));
    table.row("resident memory, MiB", mebibytes(their.resident), mebibytes(our.resident), 1, Some(MEMORY));
    table.row("… at most since the start, MiB", mebibytes(their.peak), mebibytes(our.peak), 1, None);
    table.row("queries to Prometheus", theirs.queries as f64, ours.queries as f64, 0, None);
    table.row("questions answered", theirs.answered as f64, ours.answered as f64, 0, None);
    table.row("requests to the API server", theirs.requests as f64, ours.requests as f64, 0, None);
    for (name, measured) in theirs.processes.iter().chain(&ours.processes) {
        println!("{name:<44} {:>8.1} m {:>8.1} MiB", measured.millicores(), mebibytes(measured.resident));
    }
    println!("questions that failed: theirs {}, ours {}", theirs.failed, ours.failed);
    table.good() && theirs.failed == 0 && ours.failed == 0
}

async fn theirs(access: &Access, client: &Client, source: &Source, world: &World) -> Side {
    let options = KedaOptions {
        namespace: Some(world.namespace.to_owned()),
        home: HOME.to_owned(),
        adapter: true,
        counted: true,
        ..KedaOptions::default()
    };
    let keda = Keda::start(access, &options).await.unwrap();
    let processes = [
        ("KEDA's operator", keda.pid().unwrap()),
        ("KEDA's metrics adapter", keda.adapter().unwrap().pid().unwrap()),
    ];
    side(client, source, world, keda.rules(), processes).await
}

async fn ours(kubeconfig: &str, client: &Client, source: &Source, world: &World) -> Side {
    let settings = ProxyOptions { remember_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(kubeconfig, settings).await.unwrap();
    let mut subject = Subject::start(&proxy.kubeconfig(), world.namespace).await;
    register(client, world.namespace, subject.port).await;
    let processes = [("plimsoll operator", subject.pid())];
    let side = side(client, source, world, Some(proxy.rules()), processes).await;
    subject.check();
    side
}

/// Waits until all is at work, and measures.
async fn side<const N: usize>(
    client: &Client,
    source: &Source,
    world: &World,
    rules: Option<Rules>,
    processes: [(&'static str, u32); N],
) -> Side {
    let path =
        format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers?limit=2000", world.namespace);
    let hpas = async || {
        let (_, said) = send(client, Method::GET, &path, &Value::Null).await;
        serde_json::from_str::<Value>(&said).unwrap()["items"].as_array().map_or(0, Vec::len)
    };
    let begun = std::time::Instant::now();
    while hpas().await < world.objects {
        assert!(begun.elapsed() < Duration::from_mins(5), "there are {} HPAs", hpas().await);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    eprintln!("all HPAs after {:.0} s", begun.elapsed().as_secs_f64());
    source.until_asked(world.objects as u64, 1).await;
    let questions = Questions::start(client, world);
    tokio::time::sleep(INTERVAL * 2).await;
    let (_, early) = questions.counts();
    if early > 0 {
        eprintln!("{early} questions failed before all was at work");
    }
    if let Some(rules) = &rules {
        rules.clear_log();
    }
    let before = source.asked();
    let measured = measure(processes.map(|(_, pid)| pid), WINDOW).await;
    let (answered, failed) = questions.counts();
    let requests = rules.map_or(0, |rules| {
        let counts = rules.counts();
        for ((method, shape), count) in &counts {
            eprintln!("  {count:>8}  {method} {shape}");
        }
        counts.values().sum()
    });
    Side {
        processes: processes.iter().map(|(name, _)| *name).zip(measured).collect(),
        queries: source.asked() - before,
        answered,
        failed,
        requests,
    }
}
