//! A real Prometheus on loopback, and a front before it that makes faults.

mod front;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::components::local;
use crate::ensure::Prometheus;
use crate::error::{Attempt as _, Error};
use crate::plain;
use crate::ports;
use crate::program::{Program, Restartable, Room};

pub use front::{Front, ResponseFault};

/// A running Prometheus; it ends when this is dropped.
pub struct Server {
    program: PathBuf,
    port: u16,
    process: Restartable,
}

const TARGETS: &str = "targets.json";
const READY_TIMEOUT: Duration = Duration::from_mins(1);

impl Server {
    /// Starts one that scrapes what [`Server::scrape`] names, and itself, so often.
    pub async fn start(interval: Duration) -> Result<Self, Error> {
        Self::start_with(interval, "").await
    }

    /// The same with further items of `scrape_configs`, as YAML.
    pub async fn start_with(interval: Duration, jobs: &str) -> Result<Self, Error> {
        let program = Prometheus::ensure()?.prometheus;
        let port = ports::free()?;
        let room = Room::new()?;
        room.write(TARGETS, "[]")?;
        room.write("prometheus.yml", &(config(interval, port) + jobs))?;
        let mut server = Self { program, port, process: Restartable::new(room) };
        server.resume().await?;
        Ok(server)
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        local("http", self.port)
    }

    /// Says what is to be scraped: a list as files of targets have it. Labels of what is scraped win over those of targets.
    pub fn scrape(&self, targets: &Value) -> Result<(), Error> {
        let Some(room) = self.process.room() else { return Ok(()) };
        // Moved into place, so that it never reads half of it.
        let draft = room.write("targets.draft", &targets.to_string())?;
        std::fs::rename(draft, room.path(TARGETS)).attempt(|| "write the targets of Prometheus".into())
    }

    /// Kills it. Its data stay, and so does its port.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts it again after [`Server::stop`], and returns when it answers.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(room) = self.process.take_idle() else { return Ok(()) };
        let arguments = [
            format!("--config.file={}", room.path("prometheus.yml").display()),
            format!("--storage.tsdb.path={}", room.path("data").display()),
            format!("--web.listen-address=127.0.0.1:{}", self.port),
            "--storage.tsdb.retention.time=6h".to_owned(),
            // Many ask at once in benches; what is measured is not how they wait for each other here.
            "--query.max-concurrency=100".to_owned(),
            "--log.level=warn".to_owned(),
        ];
        let mut program = Program::start("prometheus", &self.program, &arguments, room)?;
        let ready = format!("{}/-/ready", self.url());
        program
            .until(READY_TIMEOUT, async || plain::get(&ready).await.is_ok_and(|page| page.status() == 200))
            .await?;
        self.process.started(program);
        Ok(())
    }

    /// The result of a query at this moment.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>, Error> {
        let query = encoded(query);
        let page = plain::get(&format!("{}/api/v1/query?query={query}", self.url())).await;
        let page = page.attempt(|| "ask Prometheus".into())?;
        let answer: Value = serde_json::from_slice(page.body())
            .map_err(io::Error::other)
            .attempt(|| "ask Prometheus".into())?;
        Ok(answer.pointer("/data/result").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// The value of a query that has one.
    pub async fn value(&self, query: &str) -> Result<Option<f64>, Error> {
        let found = self.query(query).await?;
        let text = found.first().and_then(|sample| sample.pointer("/value/1")).and_then(Value::as_str);
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// How many requests for data it has answered, from its own metrics.
    pub async fn asked(&self) -> Result<u64, Error> {
        let page =
            plain::get(&format!("{}/metrics", self.url())).await.attempt(|| "ask Prometheus".into())?;
        let text = String::from_utf8_lossy(page.body()).into_owned();
        Ok(text.lines().filter(|line| is_asked(line)).filter_map(count).sum())
    }
}

/// Whether a line counts requests for data.
fn is_asked(line: &str) -> bool {
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

/// A text for the query of an address.
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
        assert!(is_asked(&line("/api/v1/query")) && is_asked(&line("/api/v1/series")));
        assert!(!is_asked(&line("/metrics")) && !is_asked(&line("/api/v1/query_exemplars")));
        assert_eq!(count(&line("/api/v1/query")), Some(7));
        assert_eq!(encoded("up{a=\"b\"}"), "up%7Ba%3D%22b%22%7D");
    }
}
