//! An external scaler that scales by the number of files in a folder. Copy it and replace [`Spool`] by your own source.
//!
//! `SPOOL=/var/spool/jobs ADDRESS=0.0.0.0:6000 spool-scaler`

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use external_scaler::{ActivityStream, ExternalScaler, MetricSpec, MetricValue, ScaledObjectRef, Status};
use futures::stream;

/// How often the folder is polled for `external-push`.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// A folder with one folder of files per queue.
struct Spool {
    root: PathBuf,
}

impl Spool {
    /// The folder of the queue that a trigger names.
    fn folder(&self, object: &ScaledObjectRef) -> Result<PathBuf, Status> {
        let queue = object.text("queue")?;
        // The author of a ScaledObject must not read other folders of this machine.
        if queue.contains('/') || queue.starts_with('.') {
            return Err(Status::invalid_argument(format!("{queue:?} cannot be the name of a queue")));
        }
        Ok(self.root.join(queue))
    }
}

/// The number of files. A missing folder is an error and not an empty queue, so that a mistake does not scale to zero.
async fn files(folder: &Path) -> Result<u32, Status> {
    let failed = |error| Status::unavailable(format!("failed to read {}: {error}", folder.display()));
    let mut entries = tokio::fs::read_dir(folder).await.map_err(failed)?;
    let mut count = 0;
    while entries.next_entry().await.map_err(failed)?.is_some() {
        count += 1;
    }
    Ok(count)
}

impl ExternalScaler for Spool {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        Ok(vec![MetricSpec::new("files", object.number_or("filesPerReplica", 10.0)?)])
    }

    async fn metrics(&self, object: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
        let count = files(&self.folder(object)?).await?;
        Ok(vec![MetricValue::new(metric, count.into())])
    }

    /// Only needed for triggers of type `external-push`.
    async fn activity(&self, object: &ScaledObjectRef) -> Result<ActivityStream, Status> {
        let folder = self.folder(object)?;
        let reported = stream::unfold((folder, None), |(folder, before)| async move {
            loop {
                let active = match files(&folder).await {
                    Ok(count) => count > 0,
                    // The autoscaler reconnects by itself.
                    Err(status) => return Some((Err(status), (folder, None))),
                };
                if before != Some(active) {
                    return Some((Ok(active), (folder, Some(active))));
                }
                tokio::time::sleep(POLL_PERIOD).await;
            }
        });
        Ok(Box::pin(reported))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let setting = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let address = setting("ADDRESS", "0.0.0.0:6000");
    let Ok(address) = address.parse::<SocketAddr>() else {
        eprintln!("ADDRESS={address} is not an address such as 0.0.0.0:6000");
        return ExitCode::FAILURE;
    };
    let root = PathBuf::from(setting("SPOOL", "/var/spool/jobs"));
    println!("counting files in {} on {address}", root.display());
    match external_scaler::serve(address, Spool { root }).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use futures::StreamExt as _;

    use super::*;

    fn spool(name: &str) -> Spool {
        let root = std::env::temp_dir().join(format!("spool-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("mail")).unwrap();
        Spool { root }
    }

    fn object(metadata: &[(&str, &str)]) -> ScaledObjectRef {
        let scaler_metadata =
            metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ScaledObjectRef { name: "worker".into(), namespace: "shop".into(), scaler_metadata }
    }

    #[tokio::test]
    async fn files_are_counted_and_invalid_queues_are_errors() {
        let spool = spool("counted");
        fs::write(spool.root.join("mail/1"), "").unwrap();
        fs::write(spool.root.join("mail/2"), "").unwrap();
        let mail = object(&[("queue", "mail"), ("filesPerReplica", "2.5")]);
        assert_eq!(spool.metric_specs(&mail).await.unwrap(), [MetricSpec::new("files", 2.5)]);
        assert_eq!(spool.metrics(&mail, "files").await.unwrap(), [MetricValue::new("files", 2.0)]);
        assert!(spool.is_active(&mail).await.unwrap());
        for queue in ["none", "..", "../mail", "/etc", ""] {
            assert!(spool.metrics(&object(&[("queue", queue)]), "files").await.is_err(), "{queue}");
        }
        fs::remove_dir_all(&spool.root).unwrap();
    }

    #[tokio::test]
    async fn activity_reports_the_first_file() {
        let spool = spool("told");
        let mut reported = spool.activity(&object(&[("queue", "mail")])).await.unwrap();
        assert!(!reported.next().await.unwrap().unwrap());
        fs::write(spool.root.join("mail/1"), "").unwrap();
        assert!(reported.next().await.unwrap().unwrap());
        fs::remove_dir_all(&spool.root).unwrap();
        assert!(reported.next().await.unwrap().is_err());
    }
}
