//! Time from the push of an external scaler, written in Go, to the write of the scale.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::json;
use testbed::backends::GoScaler;

use crate::env::{OperatorBenchEnv, counts};
use crate::operator_process;
use crate::shared::table::{self, millis};
use crate::shared::usage::percentile;
use crate::workloads::{OperatorWorkloads, name};

const OBJECTS: usize = 300;
const MAX_PERCENTILE_99_MILLIS: f64 = 100.0;
const SCALE_TIMEOUT: Duration = Duration::from_mins(2);

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
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    let mut counts = pin!(counts(&env.client, workloads.namespace));
    for _ in 0..OBJECTS {
        let (name, count) = counts.next().await.unwrap();
        assert_eq!(count, 0, "{name} was activated too early");
    }
    // After this time every object is reconciled, polled once, and has an open stream.
    tokio::time::sleep(crate::POLLING_INTERVAL + Duration::from_secs(15)).await;
    let mut times = Vec::new();
    for number in 0..OBJECTS {
        let object = format!("{}/{}", workloads.namespace, name(number));
        let waiting = Instant::now();
        // A push without an open stream is lost, so it is repeated until the stream is open.
        let begun = loop {
            let begun = Instant::now();
            if scaler.push_active(&object).await.unwrap() > 0 {
                break begun;
            }
            assert!(waiting.elapsed() < SCALE_TIMEOUT, "no stream is open for {object}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        loop {
            let next = tokio::time::timeout(SCALE_TIMEOUT, counts.next()).await;
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
        "\nfrom the push of an external scaler to the scale that a watch on localkube shows, {OBJECTS} times, milliseconds"
    );
    table::row("median", millis(percentile(&mut times, 50)), 1);
    let good = table::at_most("99 of 100", millis(percentile(&mut times, 99)), 1, MAX_PERCENTILE_99_MILLIS);
    table::row("at most", millis(percentile(&mut times, 100)), 1);
    good
}
