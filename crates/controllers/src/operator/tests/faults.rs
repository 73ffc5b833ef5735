//! The operator with an API server whose requests fail at random.
//!
//! `PLIMSOLL_FAULT_STEPS` and `PLIMSOLL_FAULT_SEED` ask for a longer run or another one (`make faults`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::lease::Leadership;
use tokio::time::sleep;

use super::env::TestEnv;
use super::random_sources::RandomSources;
use crate::faulty_client::{FaultyClient, Random, setting};

/// Steps between two times without faults, at which everything must converge.
const STEPS_PER_ROUND: u64 = 40;

#[tokio::test(start_paused = true)]
async fn faults_of_the_api_server_lose_nothing_and_double_nothing() {
    let (seed, steps) = (setting("PLIMSOLL_FAULT_SEED", 1), setting("PLIMSOLL_FAULT_STEPS", 160));
    println!("PLIMSOLL_FAULT_SEED={seed} PLIMSOLL_FAULT_STEPS={steps}");
    let history = Arc::new(Mutex::new(Vec::new()));
    let faults = FaultyClient::new("operator", seed, Arc::clone(&history));
    let env = TestEnv::behind(&faults, |_, _| Leadership::without_election()).await;
    let mut random = Random::new(seed + 1);
    let mut random_sources = RandomSources::open(&env, 3, 4).await;
    for step in 1..=steps {
        faults.set_rate(*random.pick(&[0, 10, 30, 60]));
        faults.set_stale(random.chance(30));
        if random.chance(30) {
            faults.cut_watches();
        }
        random_sources.change(&env, &mut random).await;
        sleep(Duration::from_millis(500 + random.below(8000))).await;
        let writes = std::mem::take(&mut *history.lock().unwrap());
        random_sources.check(&env, &writes).await;
        if step % STEPS_PER_ROUND == 0 || step == steps {
            faults.set_rate(0);
            faults.set_stale(false);
            random_sources.converge(&env).await;
        }
    }
    let injected = faults.injected();
    println!("{} jobs, {injected:?}", random_sources.all_jobs.len());
    assert!(injected.len() > 10, "{injected:?}");
    env.stop().await;
}
