//! Housekeeping: garbage collection, namespaces, custom resource definitions and APIServices. (Deployments and other
//! workloads are in `workloads`.)

pub(crate) mod definitions;
mod garbage;
pub(crate) mod namespaces;
mod services;

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::cluster::{ChangeNotice, Cluster};

/// How often the availability of aggregated APIs is checked.
const API_SERVICE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until the cluster is dropped.
pub(crate) async fn run(cluster: Cluster, mut notices_received: UnboundedReceiver<ChangeNotice>) {
    let mut checks = tokio::time::interval(API_SERVICE_CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            notice = notices_received.recv() => match notice {
                Some((served, change)) => {
                    garbage::reconcile(&cluster, &served, &change);
                    namespaces::reconcile(&cluster, &served, &change);
                    definitions::reconcile(&cluster, &served, &change);
                    services::changed(&cluster, &served, &change);
                }
                None => return,
            },
            _ = checks.tick() => services::check(&cluster),
        }
    }
}

/// Removes matching entries from a list of an object; returns whether there were any.
pub(crate) fn take_off(value: &mut Value, pointer: &str, is: impl Fn(&Value) -> bool) -> bool {
    let Some(list) = value.pointer_mut(pointer).and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|entry| !is(entry));
    let changed = list.len() != before;
    let empty = list.is_empty();
    if let Some((parent, field)) = pointer.rsplit_once('/')
        && empty
        && let Some(map) = value.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        map.shift_remove(field);
    }
    changed
}
