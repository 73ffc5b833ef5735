//! Measures a controller: its exported metrics, resource usage and requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Request;
use kube::{Client, Config};
use testbed::proxy::{Counts, Rules};

use crate::shared::usage::{self, ProcessMeasurement};

/// The metric with which both controllers count syncs.
const RECONCILIATIONS_TOTAL: &str = "horizontal_pod_autoscaler_controller_reconciliations_total";
/// How long a controller may take until it has reconciled every autoscaler twice.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// A controller that is measured.
pub(crate) struct MeasuredController {
    pub(crate) pid: u32,
    client: Client,
    rules: Option<Rules>,
}

/// What a controller did in a measurement window.
#[derive(Debug)]
pub(crate) struct ControllerMeasurement {
    pub(crate) usage: ProcessMeasurement,
    pub(crate) syncs: u64,
    /// Requests by method and shape.
    pub(crate) requests: Counts,
    /// The exported metrics at the end.
    pub(crate) after: Series,
    /// The exported metrics at the beginning.
    pub(crate) before: Series,
}

/// The values of `/metrics` by name and labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(BTreeMap<String, f64>);

impl Series {
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(values.collect())
    }

    /// The sum over all labels.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.0.iter().filter(|(key, _)| key.split('{').next() == Some(name)).map(|(_, value)| value).sum()
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The number of syncs that failed or scaled. None of them should here.
    fn failed_or_scaled(&self) -> f64 {
        let plain = |key: &str| key.contains("action=\"none\"") && key.contains("error=\"none\"");
        self.0
            .iter()
            .filter(|(key, _)| key.starts_with(RECONCILIATIONS_TOTAL) && !plain(key))
            .map(|(_, value)| value)
            .sum()
    }
}

impl MeasuredController {
    pub(crate) fn new(pid: u32, port: u16, rules: Option<Rules>) -> Self {
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
        // Both controllers sign their own certificate.
        config.accept_invalid_certs = true;
        Self { pid, client: Client::try_from(config).unwrap(), rules }
    }

    /// The exported metrics of the controller; none while it does not respond.
    async fn read(&self) -> Option<Series> {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        self.client.request_text(request).await.ok().map(|text| Series::parse(&text))
    }

    pub(crate) async fn series(&self) -> Series {
        self.read().await.expect("the controller responds")
    }

    /// Waits until every autoscaler was reconciled twice.
    pub(crate) async fn until_reconciled_twice(&self, autoscalers: usize) {
        let begun = Instant::now();
        loop {
            let syncs = self.read().await.map_or(0.0, |series| series.sum(RECONCILIATIONS_TOTAL));
            if syncs >= 2.0 * autoscalers as f64 {
                return;
            }
            assert!(
                begun.elapsed() < START_TIMEOUT,
                "after {START_TIMEOUT:?} there were {syncs} reconciles of {autoscalers} autoscalers"
            );
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }

    /// Measures the controller during `window`. Its metrics are read before and after, because reading them costs CPU time.
    pub(crate) async fn measure(&self, window: Duration) -> ControllerMeasurement {
        let before = self.series().await;
        if let Some(rules) = &self.rules {
            rules.clear_log();
        }
        let [usage] = usage::measure([self.pid], window).await;
        let requests = self.rules.as_ref().map(Rules::counts).unwrap_or_default();
        let after = self.series().await;
        assert!(
            after.failed_or_scaled() <= before.failed_or_scaled(),
            "reconciles failed or scaled: {after:?}"
        );
        ControllerMeasurement {
            usage,
            syncs: (after.sum(RECONCILIATIONS_TOTAL) - before.sum(RECONCILIATIONS_TOTAL)) as u64,
            requests,
            after,
            before,
        }
    }
}

impl ControllerMeasurement {
    /// CPU time of one reconcile in microseconds.
    pub(crate) fn cpu_per_sync(&self) -> f64 {
        self.usage.cpu.as_secs_f64() * 1e6 / self.syncs.max(1) as f64
    }

    pub(crate) fn requests_per_sync(&self) -> f64 {
        self.requests.values().sum::<u64>() as f64 / self.syncs.max(1) as f64
    }

    /// Status writes per reconcile.
    pub(crate) fn writes_per_sync(&self) -> f64 {
        let writes =
            self.requests.iter().filter(|((method, shape), _)| method == "PUT" && shape.ends_with("/status"));
        writes.map(|(_, count)| count).sum::<u64>() as f64 / self.syncs.max(1) as f64
    }
}
