//! Properties of pods, and their deletion order.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::objects::Pod;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

impl Pod {
    /// Whether all containers have ended.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it counts as a replica.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_finished() && !self.is_deleting()
    }

    /// Since when it is ready, if it is.
    pub(crate) fn ready_since(&self) -> Option<Timestamp> {
        let ready = self.status.conditions.iter().find(|c| c.r#type == "Ready" && c.status == "True")?;
        Some(ready.last_transition_time.unwrap_or(Timestamp::MIN))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready_since().is_some()
    }

    pub(crate) fn is_running_and_ready(&self) -> bool {
        self.status.phase == "Running" && self.is_ready()
    }

    /// The time until it is available: zero if it is, `None` if it is not ready.
    pub(crate) fn until_available(&self, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
        let since = self.ready_since()?;
        if min_ready_seconds <= 0 {
            return Some(Duration::ZERO);
        }
        let ready_for = now.duration_since(since).as_secs_f64().max(0.0);
        Some(Duration::from_secs_f64((f64::from(min_ready_seconds) - ready_for).max(0.0)))
    }

    pub(crate) fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        self.until_available(min_ready_seconds, now) == Some(Duration::ZERO)
    }

    fn deletion_cost(&self) -> i32 {
        self.annotation(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or_default()
    }

    fn restarts(&self) -> i32 {
        self.status.container_statuses.iter().map(|c| c.restart_count).max().unwrap_or_default()
    }
}

/// The shortest time until a pod becomes available.
pub(crate) fn next_available(pods: &[&Arc<Pod>], min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    let waits = pods.iter().filter_map(|pod| pod.until_available(min_ready_seconds, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

/// The order in which surplus pods are deleted, as Kubernetes documents it.
pub(crate) fn deletion_order<'a>(pods: &[&'a Arc<Pod>], now: Timestamp) -> Vec<&'a Arc<Pod>> {
    let mut crowd: HashMap<&str, usize> = HashMap::new();
    for pod in pods {
        *crowd.entry(pod.spec.node_name.as_str()).or_default() += 1;
    }
    let rank = |pod: &&Arc<Pod>| {
        let phase = match pod.status.phase.as_str() {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        let node = pod.spec.node_name.as_str();
        (
            (!node.is_empty(), phase, pod.is_ready(), pod.deletion_cost()),
            Reverse(crowd.get(node).copied().unwrap_or_default()),
            pod.ready_since().map(|since| age_bucket(since, now)),
            Reverse(pod.restarts()),
            pod.created().map(|created| age_bucket(created, now)),
            // Random but stable: the uid decides between equals.
            pod.uid().to_owned(),
        )
    };
    let mut ordered = pods.to_vec();
    ordered.sort_by_cached_key(rank);
    ordered
}

/// Ages are compared on a logarithmic scale: an hour equals an hour and a half, but not a minute.
fn age_bucket(since: Timestamp, now: Timestamp) -> u32 {
    let seconds = now.duration_since(since).as_secs();
    u64::try_from(seconds).ok().and_then(u64::checked_ilog2).map_or(0, |bucket| bucket + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, more: &Value) -> Arc<Pod> {
        let mut pod: Pod = serde_json::from_value(more.clone()).unwrap();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.uid = Some(name.to_owned());
        if pod.status.phase.is_empty() {
            pod.status.phase = "Running".to_owned();
        }
        Arc::new(pod)
    }

    #[test]
    fn least_useful_pods_are_deleted_first() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let ready = |since: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
        let on = |node: &str, since: &str| json!({"spec": {"nodeName": node}, "status": {"conditions": ready(since)}});
        let early = "2026-01-01T00:00:00Z";
        let cheap = json!({"metadata": {"annotations": {DELETION_COST: "-1"}}, "spec": {"nodeName": "b"},
            "status": {"conditions": ready(early)}});
        let mut restarted = on("b", early);
        restarted["status"]["containerStatuses"] = json!([{"restartCount": 3}]);
        let pods = [
            pod("11-old", &on("b", early)),
            pod("10-restarted", &restarted),
            pod("09-young", &on("b", "2026-01-01T00:59:00Z")),
            pod("07-crowded", &on("a", early)),
            pod("08-crowded", &on("a", early)),
            pod("06-crowded-young", &on("a", "2026-01-01T00:59:00Z")),
            pod("05-crowded-too", &on("a", "2026-01-01T00:59:59Z")),
            pod("04-cheap", &cheap),
            pod("03-not-ready", &json!({"spec": {"nodeName": "b"}})),
            pod("02-pending", &json!({"spec": {"nodeName": "b"}, "status": {"phase": "Pending"}})),
            pod("01-nowhere", &json!({"status": {"phase": "Pending"}})),
        ];
        let all: Vec<_> = pods.iter().collect();
        // Six pods on node b, four on node a.
        let names: Vec<_> = deletion_order(&all, now).iter().map(|pod| pod.name().to_owned()).collect();
        assert_eq!(names.first().map(String::as_str), Some("01-nowhere"));
        assert_eq!(&names[..4], ["01-nowhere", "02-pending", "03-not-ready", "04-cheap"]);
        assert_eq!(names.len(), pods.len());
        let place = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert!(place("09-young") < place("10-restarted") && place("10-restarted") < place("11-old"));
        assert!(place("11-old") < place("05-crowded-too"), "the fuller node first: {names:?}");
    }

    #[test]
    fn pods_are_available_after_min_ready_seconds() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let since = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"}]}});
        let ready = pod("a", &since);
        assert!(ready.is_available(0, now) && ready.is_available(6, now) && !ready.is_available(7, now));
        assert_eq!(ready.until_available(30, now), Some(Duration::from_secs(24)));
        assert_eq!(pod("b", &json!({})).until_available(0, now), None);
        let unready = pod("c", &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}));
        assert_eq!(next_available(&[&ready, &unready], 30, now), Some(Duration::from_secs(24)));
        assert_eq!(next_available(&[&ready], 6, now), None);
    }
}
