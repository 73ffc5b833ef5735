//! Time from the push of an external scaler, written in Go, to the write of the scale.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::json;
use testbed::backends::GoScaler;

use crate::env::{OperatorBenchEnv, counts};
use crate::shared::table::{self, millis};
use crate::shared::usage::percentile;
use crate::subject;
use crate::workloads::{OperatorWorkloads, name};

const OBJECTS: usize = 300;
/// Milliseconds.
const LIMIT: f64 = 100.0;
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) async fn run() -> bool {
    let scaler = GoScaler::start(None).await.unwrap();
    let env = OperatorBenchEnv::start().await;
    let address = scaler.address();
    let workloads = OperatorWorkloads {
        replicas: 0,
        trigger: Arc::new(move |_| {
            let metadata = json!({"scalerAddress": address, "value": "0", "target": "10", "active": "no"});
            json!({"type": "external-push", "metadata": metadata})
        }),
        ..OperatorWorkloads::new("push", OBJECTS, "", crate::workloads::Queries::Same)
    };
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    let mut counts = pin!(counts(&env.client, workloads.namespace));
    for _ in 0..OBJECTS {
        let (name, count) = counts.next().await.unwrap();
        assert_eq!(count, 0, "{name} woke too early");
    }
    // All are reconciled and polled once, and listen.
    tokio::time::sleep(crate::INTERVAL + Duration::from_secs(15)).await;
    let mut times = Vec::new();
    for number in 0..OBJECTS {
        let object = format!("{}/{}", workloads.namespace, name(number));
        let waiting = Instant::now();
        // A push without an open stream is lost, and the stream may not be open yet.
        let begun = loop {
            let begun = Instant::now();
            if scaler.tell(&object).await.unwrap() > 0 {
                break begun;
            }
            assert!(waiting.elapsed() < PATIENCE, "nobody listens for {object}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        loop {
            let next = tokio::time::timeout(PATIENCE, counts.next()).await;
            let Ok(Some((changed, count))) = next else { panic!("{object} was not scaled") };
            if count > 0 && changed == name(number) {
                break;
            }
        }
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    operator.check();
    println!(
        "\nfrom the tell of an external scaler to the scale that a watch on localkube shows, {OBJECTS} times, milliseconds"
    );
    table::row("median", millis(percentile(&mut times, 50)), 1);
    let good = table::at_most("99 of 100", millis(percentile(&mut times, 99)), 1, LIMIT);
    table::row("at most", millis(percentile(&mut times, 100)), 1);
    good
}
