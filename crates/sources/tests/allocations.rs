//! Parsing a kubelet response allocates little besides its result, and storing a second scrape allocates only the points.
//! There is one test only, because it counts the allocations of the whole process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::time::Duration;

use api::provider::Compat;
use dhat::{HeapStats, Profiler};
use jiff::Timestamp;
use sources::inventory::Inventory;
use sources::kubelet::text::parse;
use sources::store::{Store, StoreSettings};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

const CONTAINERS: [&str; 3] = ["app", "proxy", "sidecar"];

/// A kubelet response: by family, then by container, namespace and pod.
fn answer(pods: usize, second: i64) -> String {
    let mut text = String::new();
    let families = [
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_start_time_seconds",
    ];
    for family in families {
        writeln!(text, "# HELP {family} [STABLE] Words\n# TYPE {family} gauge").unwrap();
        for container in CONTAINERS {
            for pod in 0..pods {
                let labels = format!(r#"{{container="{container}",namespace="default",pod="web-{pod:05}"}}"#);
                writeln!(text, "{family}{labels} {} {}", second * 3, second * 1000).unwrap();
            }
        }
    }
    text
}

fn blocks(work: impl FnOnce()) -> u64 {
    let before = HeapStats::get().total_blocks;
    work();
    HeapStats::get().total_blocks - before
}

#[test]
fn parsing_does_not_allocate_per_line() {
    let _profiler = Profiler::builder().testing().build();
    for pods in [10, 110, 1000] {
        let text = answer(pods, 1_700_000_000);
        for compat in [Compat::Better, Compat::Strict] {
            let mut scrape = None;
            let all = blocks(|| scrape = parse(text.as_bytes(), Timestamp::UNIX_EPOCH, compat).ok());
            let scrape = scrape.unwrap();
            assert_eq!(scrape.pods.len(), pods);
            // For a pod: namespace, name, list of containers, and each one's name.
            let result = pods * (3 + CONTAINERS.len()) + 1;
            let more = all - result as u64;
            assert!(more < 10, "{more} allocations beside the result for {pods} pods");
        }
    }
    let settings = StoreSettings {
        resolution: Duration::from_secs(15),
        keep: Duration::from_mins(1),
        compat: Compat::Better,
    };
    let store = Store::new(settings, Inventory::new());
    let now = Timestamp::UNIX_EPOCH;
    let scraped = |second| parse(answer(110, second).as_bytes(), now, Compat::Better).unwrap();
    store.take("a", scraped(1000), now);
    let next = scraped(1015);
    let again = blocks(|| store.take("a", next, now));
    // A pod and its containers.
    assert!(again < 110 * 2 + 20, "{again} allocations for 110 pods that were known");
}
