//! What it costs to know which pods an autoscaler selects and who else selects them: time and memory.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../engine/benches/table/mod.rs"]
#[allow(dead_code)]
mod table;

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use api::pod::{Container, Pod, PodCondition};
use api::selector::Selector;
use cluster::AutoscalerKey;
use cluster::index::PodIndex;

use table::Table;

/// How pods are labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labels {
    /// As Deployments do it: all pods of a revision alike.
    Shared,
    /// As StatefulSets do it: every pod differently.
    Own,
}

/// A cluster of targets with an autoscaler each.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    autoscalers: usize,
    pods_each: usize,
    namespaces: usize,
    labels: Labels,
    /// How many autoscalers select the pods of one target.
    rivals: usize,
}

const AUTOSCALERS: usize = 10_000;
const SPREAD: Fleet =
    Fleet { autoscalers: AUTOSCALERS, pods_each: 100, namespaces: 100, labels: Labels::Shared, rivals: 1 };
const CROWDED: Fleet = Fleet { namespaces: 1, ..SPREAD };

/// Limits: seconds that the check may take, and MiB for 100,000 pods and their autoscalers.
const MAX_CHECK_SECONDS: f64 = 5e-6;
const MAX_INDEX_MIB: f64 = 60.0;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("memory") {
        let labels = if args.next().as_deref() == Some("own") { Labels::Own } else { Labels::Shared };
        let namespaces = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        print!("{}", memory_here(Fleet { pods_each: 10, labels, namespaces, ..SPREAD }));
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new("index: 10,000 autoscalers with 100 pods each");
    for (fleet, place) in [(CROWDED, "one namespace"), (SPREAD, "100 namespaces")] {
        let (mut index, keys) = built(fleet);
        table.row(&format!("sharing, {place}"), sharing(&index, &keys), MAX_CHECK_SECONDS, table::micros);
        costs(&mut index, &keys, fleet, place);
    }
    for (labels, what) in [(Labels::Shared, "labels alike"), (Labels::Own, "labels of their own")] {
        let (index, keys) = built(Fleet { labels, rivals: 2, ..CROWDED });
        assert_eq!(index.sharing(&keys[7]).len(), 2, "two select the same pods");
        table.row(
            &format!("sharing with another, pods with {what}"),
            sharing(&index, &keys),
            MAX_CHECK_SECONDS,
            table::micros,
        );
    }
    let (index, keys) = built(Fleet { pods_each: 10, ..CROWDED });
    table::note(
        "selected, 10 pods",
        rotating(&keys, |key| _ = black_box(index.selected(key))),
        table::micros,
    );
    let started = Instant::now();
    let (index, keys) = built(Fleet { labels: Labels::Own, rivals: AUTOSCALERS, ..CROWDED });
    table::note("all 10,000 on one target: from nothing", started.elapsed().as_secs_f64(), table::micros);
    table::note("all 10,000 on one target: sharing", sharing(&index, &keys), table::micros);
    memory(&mut table);
    table.verdict()
}

fn costs(index: &mut PodIndex, keys: &[AutoscalerKey], fleet: Fleet, place: &str) {
    let note = |what: &str, seconds| table::note(&format!("{what}, {place}"), seconds, table::micros);
    let selectors: Vec<Selector> = (0..keys.len()).map(|number| selector(fleet, number)).collect();
    let mut number = 0;
    let unchanged = table::time(|| {
        number = (number + 7) % keys.len();
        index.select(&keys[number], &selectors[number]);
    });
    note("select, unchanged", unchanged);
    note("selected, 100 pods", rotating(keys, |key| _ = black_box(index.selected(key))));
    // One more pod for every target, and then one of a new revision.
    let more: Vec<Pod> = (0..keys.len()).map(|target| pod(fleet, target, fleet.pods_each)).collect();
    note("apply, new pod", each(&more, |pod| index.apply(pod)));
    note("apply, unchanged pod", each(&more, |pod| index.apply(pod)));
    let remove = |index: &mut PodIndex, pod: &Pod| index.remove(&pod.metadata.namespace, &pod.metadata.name);
    note("remove", each(&more, |pod| remove(index, pod)));
    let revised: Vec<Pod> = more.into_iter().map(revised).collect();
    note("apply, new pod with new labels", each(&revised, |pod| index.apply(pod)));
    for pod in &revised {
        remove(index, pod);
    }
    let other = Selector::parse("app=none").unwrap();
    note("select, away", each(keys, |key| index.select(key, &other)));
    note(
        "select, back",
        each(&keys.iter().zip(&selectors).collect::<Vec<_>>(), |(key, own)| index.select(key, own)),
    );
}

/// Seconds of the check, one autoscaler after the other, so that none is found in a cache by luck.
fn sharing(index: &PodIndex, keys: &[AutoscalerKey]) -> f64 {
    rotating(keys, |key| _ = black_box(index.sharing(key)))
}

fn rotating(keys: &[AutoscalerKey], mut work: impl FnMut(&AutoscalerKey)) -> f64 {
    let mut number = 0;
    table::time(|| {
        number = (number + 7) % keys.len();
        work(&keys[number]);
    })
}

/// Seconds for each of several things that can be done once only.
fn each<T>(all: &[T], work: impl FnMut(&T)) -> f64 {
    let started = Instant::now();
    all.iter().for_each(work);
    started.elapsed().as_secs_f64() / all.len() as f64
}

fn memory(table: &mut Table) {
    println!(
        "\n{:<58} {:>14} {:>14}   verdict",
        "index: 10,000 autoscalers with 10 pods each", "measured", "limit"
    );
    let show = |mib: f64| format!("{mib:.1} MiB");
    for (args, what) in [
        (["memory", "shared", "1"], "memory, labels alike, one namespace"),
        (["memory", "shared", "100"], "memory, labels alike, 100 namespaces"),
        (["memory", "shared", "10000"], "memory, labels alike, 10,000 namespaces"),
        (["memory", "own", "1"], "memory, labels of their own, one namespace"),
        (["memory", "own", "100"], "memory, labels of their own, 100 namespaces"),
    ] {
        // In a process of its own: what was freed before would be used again and not be seen.
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program).args(args).output().expect("this program runs");
        match String::from_utf8_lossy(&output.stdout).parse::<f64>() {
            Ok(bytes) => {
                table.row(what, bytes / f64::from(1 << 20), MAX_INDEX_MIB, show);
                table::note("  per pod, with a tenth of an autoscaler", bytes / 100_000.0, |n| {
                    format!("{n:.0} B")
                });
            }
            Err(error) => table.not_measured(what, &error.to_string()),
        }
    }
}

/// Bytes that a fleet takes.
fn memory_here(fleet: Fleet) -> u64 {
    let before = resident();
    let (index, keys) = built(fleet);
    let after = resident();
    black_box(&index);
    drop(keys);
    after - before
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

fn built(fleet: Fleet) -> (PodIndex, Vec<AutoscalerKey>) {
    let mut index = PodIndex::default();
    let keys: Vec<AutoscalerKey> = (0..fleet.autoscalers)
        .map(|n| AutoscalerKey::hpa(&namespace(fleet, n), &format!("web-{n}")))
        .collect();
    index.listing();
    for target in 0..fleet.autoscalers / fleet.rivals {
        for number in 0..fleet.pods_each {
            index.apply(&pod(fleet, target, number));
        }
    }
    index.listed();
    for (number, key) in keys.iter().enumerate() {
        index.register(key);
        index.select(key, &selector(fleet, number));
    }
    assert_eq!(index.selected(&keys[7]).len(), fleet.pods_each);
    (index, keys)
}

fn namespace(fleet: Fleet, autoscaler: usize) -> String {
    format!("team-{}", autoscaler / fleet.rivals % fleet.namespaces)
}

fn selector(fleet: Fleet, autoscaler: usize) -> Selector {
    Selector::parse(&format!("app=web-{},part-of=shop", autoscaler / fleet.rivals)).expect("a selector")
}

fn pod(fleet: Fleet, target: usize, number: usize) -> Pod {
    let mut pod = Pod::default();
    let app = format!("web-{target}");
    pod.metadata.namespace = namespace(fleet, target * fleet.rivals);
    let mut labels = vec![("app", app.clone()), ("part-of", "shop".into())];
    if fleet.labels == Labels::Shared {
        pod.metadata.name = format!("{app}-7d4b9c6f5-{number:05}");
        labels.push(("pod-template-hash", "7d4b9c6f5".into()));
    } else {
        pod.metadata.name = format!("{app}-{number}");
        labels.push(("apps.kubernetes.io/pod-index", number.to_string()));
        labels.push(("controller-revision-hash", format!("{app}-5d9f7c6b8")));
        labels.push(("statefulset.kubernetes.io/pod-name", pod.metadata.name.clone()));
    }
    pod.metadata.labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut container = Container { name: "web".into(), ..Container::default() };
    container.resources.requests.insert("cpu".into(), "200m".parse().expect("a quantity"));
    container.resources.requests.insert("memory".into(), "128Mi".parse().expect("a quantity"));
    pod.spec.containers.push(container);
    pod.status.phase = "Running".into();
    pod.status.start_time = Some("2026-01-01T12:00:00Z".parse().expect("a time"));
    pod.status.conditions.push(PodCondition {
        kind: "Ready".into(),
        status: "True".into(),
        last_transition_time: Some("2026-01-01T12:00:09Z".parse().expect("a time")),
    });
    pod
}

/// The same pod of the next revision.
fn revised(mut pod: Pod) -> Pod {
    pod.metadata.labels.insert("pod-template-hash".into(), "6c8f5b9d4".into());
    pod.metadata.name.push_str("-next");
    pod
}
