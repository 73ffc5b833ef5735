//! Many objects that come and go, with faults, for the duration of `PLIMSOLL_SOAK_TIME` (`make soak`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::lease::Leadership;
use http::Method;
use serde_json::json;
use tokio::time::sleep;

use super::env::{TestEnv, objects, send, trigger};
use super::random_sources::RandomSources;
use crate::faulty_client::{FaultyClient, Random, setting};

const STEPS_PER_ROUND: u64 = 20;
const EVENTS_PATH: &str = "/api/v1/namespaces/shop/events";

/// Resident memory of this process in MiB, and its open files.
fn resources() -> (u64, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    (kib / 1024, std::fs::read_dir("/proc/self/fd").unwrap().count())
}

async fn create(env: &TestEnv, number: u64) {
    let name = format!("many-{number}");
    let spec = json!({"pollingInterval": 30, "minReplicaCount": 1, "scaleTargetRef": {"name": "many"},
        "triggers": [trigger(&format!("many-{}", number % 100))]});
    env.scaled_object(&name, spec).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "runs as long as PLIMSOLL_SOAK_TIME says: make soak"]
async fn many_objects_with_faults_need_bounded_memory_and_files() {
    let limit = std::env::var("PLIMSOLL_SOAK_TIME").unwrap_or_else(|_| "20m".to_owned());
    let limit = api::time::parse_go_duration(&limit).expect("a duration such as 20m or 8h");
    let limit = Duration::try_from(limit).unwrap();
    let (seed, count) = (setting("PLIMSOLL_FAULT_SEED", 1), setting("PLIMSOLL_SOAK_OBJECTS", 10_000));
    // The machine's clock, not the paused one.
    let begun = std::time::Instant::now();
    let history = Arc::new(Mutex::new(Vec::new()));
    let faults = FaultyClient::new("operator", seed, Arc::clone(&history));
    let env = TestEnv::behind(&faults, |_, _| Leadership::without_election()).await;
    let mut random = Random::new(seed + 1);
    let mut random_sources = RandomSources::open(&env, 3, 4).await;
    env.deployment("many", 1).await;
    for number in 0..count {
        create(&env, number).await;
    }
    let mut next = count;
    let mut oldest = 0;
    let mut baseline = None;
    for round in 1_u64.. {
        for _ in 0..STEPS_PER_ROUND {
            faults.set_rate(*random.pick(&[0, 5, 20, 50]));
            faults.set_stale(random.chance(20));
            if random.chance(30) {
                faults.cut_watches();
            }
            for _ in 0..random.below(20) {
                env.delete(&objects(&format!("many-{oldest}"))).await;
                create(&env, next).await;
                (oldest, next) = (oldest + 1, next + 1);
            }
            random_sources.change(&env, &mut random).await;
            sleep(Duration::from_millis(500 + random.below(8000))).await;
            let writes = std::mem::take(&mut *history.lock().unwrap());
            random_sources.check(&env, &writes).await;
        }
        faults.set_rate(0);
        faults.set_stale(false);
        random_sources.converge(&env).await;
        // Events of hours would be the memory of the cluster, not that of the operator.
        send(&env.client, Method::DELETE, EVENTS_PATH, "application/json", &json!({})).await;
        let (memory, files) = resources();
        println!("round {round}: {:?}, {memory} MiB, {files} files, {next} objects", begun.elapsed());
        if begun.elapsed() < limit / 4 {
            baseline = Some((memory, files));
        } else if let Some((memory_before, files_before)) = baseline {
            assert!(memory <= memory_before * 13 / 10 + 64, "{memory_before} MiB became {memory}");
            assert!(files <= files_before + 32, "{files_before} files became {files}");
        }
        if begun.elapsed() > limit {
            break;
        }
    }
    env.stop().await;
}
