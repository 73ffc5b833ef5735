//! How long it takes to list all pods.

use std::time::{Duration, Instant};

use crate::shared::usage::percentile;
use crate::subject::Subject;

pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const ALL: &str = "/apis/metrics.k8s.io/v1beta1/pods";
/// How often a list is asked for; between two there is time for a new look at some kubelets, so that answers that are kept
/// for the same state of things do not count alone.
const TIMES: usize = 12;
const PAUSE: Duration = Duration::from_millis(1_500);
const PATIENCE: Duration = Duration::from_mins(3);

/// What a list cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
    /// Time on processors of the server.
    pub(crate) cpu: Duration,
    pub(crate) bytes: usize,
}

/// Waits until all pods are listed.
pub(crate) async fn until_complete(subject: &mut Subject, pods: usize) {
    let begun = Instant::now();
    loop {
        subject.check();
        let answer = subject.client.get_as(ALL, Some(JSON)).await.unwrap();
        let found = answer.json()["items"].as_array().map_or(0, Vec::len);
        if found == pods {
            eprintln!("all {pods} pods are listed after {:.0} s", begun.elapsed().as_secs_f64());
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{found} of {pods} pods are listed");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// Lists all pods several times in a media type.
pub(crate) async fn list(subject: &Subject, accept: &str) -> List {
    let ask = async || {
        let begun = Instant::now();
        let answer = subject.client.get_as(ALL, Some(accept)).await.unwrap();
        assert_eq!(answer.code, 200, "{}", answer.text());
        (begun.elapsed(), answer.body.len())
    };
    ask().await;
    let usage = || subject.program.usage().unwrap().cpu;
    let (mut took, mut cpu, mut bytes) = (Vec::new(), Duration::ZERO, 0);
    for _ in 0..TIMES {
        tokio::time::sleep(PAUSE).await;
        let before = usage();
        let (time, size) = ask().await;
        cpu += usage().saturating_sub(before);
        took.push(time);
        bytes = size;
    }
    List {
        median: percentile(&mut took, 50),
        worst: percentile(&mut took, 100),
        cpu: cpu / TIMES as u32,
        bytes,
    }
}
