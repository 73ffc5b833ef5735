//! A selector that Prometheus always refuses.

use super::*;

#[tokio::test(start_paused = true)]
async fn new_series_of_other_selectors_are_discovered() {
    let has_series = Arc::new(AtomicBool::new(false));
    let listed = Arc::clone(&has_series);
    let played = Played::new(move |path, text| match (path.ends_with("series"), text) {
        (true, "broken") => (400, r#"{"status":"error","errorType":"bad_data","error":"no"}"#.to_owned()),
        (true, "requests") if !listed.load(Ordering::SeqCst) => (200, series("")),
        (true, _) => (200, series(text)),
        (false, _) => (200, vector("")),
    });
    let rules = RULES.replace(
        "rules:\n- seriesQuery: requests",
        "rules:\n- seriesQuery: broken\n  metricsQuery: x\n- seriesQuery: requests",
    );
    let client = prometheus(&played, PrometheusSettings::default());
    let settings = ProviderSettings::new(Clock::system());
    let provider = PrometheusProvider::start(settings, client, config(&rules), cluster(1)).unwrap();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(CustomMetricsProvider::known(&provider).is_empty());
    has_series.store(true, Ordering::SeqCst);
    // The interval of ten minutes, and its jitter.
    tokio::time::sleep(Duration::from_mins(12)).await;
    assert!(!CustomMetricsProvider::known(&provider).is_empty());
}
