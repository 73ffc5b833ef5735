//! A real Prometheus on loopback, and a proxy in front of it that injects faults.

mod proxy;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::components::local;
use crate::ensure::Prometheus;
use crate::error::{Attempt as _, Error};
use crate::plain;
use crate::ports;
use crate::program::{Program, Restartable, TempFolder};

pub use proxy::{PrometheusProxy, ResponseFault};

/// A running Prometheus; it ends when this is dropped.
pub struct Server {
    program: PathBuf,
    port: u16,
    process: Restartable,
}

const TARGETS: &str = "targets.json";
const READY_TIMEOUT: Duration = Duration::from_mins(1);

impl Server {
    /// Starts a Prometheus that scrapes itself and the targets of [`Server::scrape`] at this interval.
    pub async fn start(interval: Duration) -> Result<Self, Error> {
        Self::start_with(interval, "").await
    }

    /// Starts a Prometheus with further items of `scrape_configs`, as YAML.
    pub async fn start_with(interval: Duration, jobs: &str) -> Result<Self, Error> {
        let program = Prometheus::ensure()?.prometheus;
        let port = ports::free()?;
        let temp_folder = TempFolder::new()?;
        temp_folder.write(TARGETS, "[]")?;
        temp_folder.write("prometheus.yml", &(config(interval, port) + jobs))?;
        let mut server = Self { program, port, process: Restartable::new(temp_folder) };
        server.resume().await?;
        Ok(server)
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        local("http", self.port)
    }

    /// Sets the targets to scrape, as a list in the format of `file_sd_configs`. Labels of scraped series take precedence over those of targets.
    pub fn scrape(&self, targets: &Value) -> Result<(), Error> {
        let Some(temp_folder) = self.process.temp_folder() else { return Ok(()) };
        // The file is renamed into place, so that Prometheus never reads half of it.
        let draft = temp_folder.write("targets.draft", &targets.to_string())?;
        std::fs::rename(draft, temp_folder.path(TARGETS)).attempt(|| "write the targets of Prometheus".into())
    }

    /// Kills the server. Its data and its port are kept.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts the server again after [`Server::stop`], and returns when it is ready.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(temp_folder) = self.process.take_idle() else { return Ok(()) };
        let arguments = [
            format!("--config.file={}", temp_folder.path("prometheus.yml").display()),
            format!("--storage.tsdb.path={}", temp_folder.path("data").display()),
            format!("--web.listen-address=127.0.0.1:{}", self.port),
            "--storage.tsdb.retention.time=6h".to_owned(),
            // Benchmarks send many queries at the same time, and must not measure how these wait in a queue of Prometheus.
            "--query.max-concurrency=100".to_owned(),
            "--log.level=warn".to_owned(),
        ];
        let mut program = Program::start("prometheus", &self.program, &arguments, temp_folder)?;
        let ready = format!("{}/-/ready", self.url());
        program
            .until(READY_TIMEOUT, async || plain::get(&ready).await.is_ok_and(|page| page.status() == 200))
            .await?;
        self.process.started(program);
        Ok(())
    }

    /// The result of an instant query.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>, Error> {
        let query = encoded(query);
        let page = plain::get(&format!("{}/api/v1/query?query={query}", self.url())).await;
        let page = page.attempt(|| "ask Prometheus".into())?;
        let answer: Value = serde_json::from_slice(page.body())
            .map_err(io::Error::other)
            .attempt(|| "ask Prometheus".into())?;
        Ok(answer.pointer("/data/result").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// The value of the first sample of an instant query; none if there is no sample.
    pub async fn value(&self, query: &str) -> Result<Option<f64>, Error> {
        let found = self.query(query).await?;
        let text = found.first().and_then(|sample| sample.pointer("/value/1")).and_then(Value::as_str);
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// The number of data requests so far, from the metrics of Prometheus itself.
    pub async fn query_count(&self) -> Result<u64, Error> {
        let page =
            plain::get(&format!("{}/metrics", self.url())).await.attempt(|| "ask Prometheus".into())?;
        let text = String::from_utf8_lossy(page.body()).into_owned();
        Ok(text.lines().filter(|line| is_query_count(line)).filter_map(count).sum())
    }
}

/// Whether a line of the exposition text counts data requests.
fn is_query_count(line: &str) -> bool {
    let pages = ["query", "query_range", "series", "labels", "label/:name/values"];
    line.starts_with("prometheus_http_requests_total{")
        && pages.iter().any(|page| line.contains(&format!("handler=\"/api/v1/{page}\"")))
}

fn count(line: &str) -> Option<u64> {
    line.rsplit_once(' ')?.1.parse::<f64>().ok().map(|count| count as u64)
}

fn config(interval: Duration, own: u16) -> String {
    let interval = format!("{}ms", interval.as_millis());
    format!(
        "global:
  scrape_interval: {interval}
  scrape_timeout: {interval}
scrape_configs:
- job_name: shop
  honor_labels: true
  file_sd_configs:
  - files: [{TARGETS}]
    refresh_interval: 1s
- job_name: prometheus
  static_configs:
  - targets: [\"127.0.0.1:{own}\"]
"
    )
}

/// Percent-encodes a text for the query of a URL.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_requests_are_counted() {
        let line =
            |handler: &str| format!("prometheus_http_requests_total{{code=\"200\",handler=\"{handler}\"}} 7");
        assert!(is_query_count(&line("/api/v1/query")) && is_query_count(&line("/api/v1/series")));
        assert!(!is_query_count(&line("/metrics")) && !is_query_count(&line("/api/v1/query_exemplars")));
        assert_eq!(count(&line("/api/v1/query")), Some(7));
        assert_eq!(encoded("up{a=\"b\"}"), "up%7Ba%3D%22b%22%7D");
    }
}
