//! A panic of the discovery loop.

use super::*;

/// The resources of the cluster cannot be read while their lock is poisoned.
fn poison(cluster: &FakeCluster) {
    let _held = cluster.mapper.lock();
    panic!("poisons the lock");
}

#[tokio::test(start_paused = true)]
async fn discovery_goes_on_after_a_panic() {
    let (played, cluster) = (played(""), cluster(1));
    let client = prometheus(&played, PrometheusSettings::default());
    let settings = ProviderSettings::new(Clock::system());
    let _provider = PrometheusProvider::start(settings, client, config(RULES), cluster.clone()).unwrap();
    let poisoned = Arc::clone(&cluster);
    assert!(std::thread::spawn(move || poison(&poisoned)).join().is_err());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(played.count(), 0);
    cluster.mapper.clear_poison();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(played.count() > 0);
}
