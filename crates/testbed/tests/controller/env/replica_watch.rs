//! Watches of deployments in a test of the controller.

use super::ControllerEnv;
use crate::shared::replica_watch::ReplicaWatch;

impl ControllerEnv {
    /// Watches a deployment from now on.
    pub(crate) async fn observer(&self, name: &str) -> ReplicaWatch {
        ReplicaWatch::start(&self.client, &self.namespace, name).await
    }
}

impl ReplicaWatch {
    /// Waits until this count was seen last: the watch may be a little late.
    pub(crate) async fn caught_up(&self, env: &ControllerEnv, count: i64) {
        env.until(
            "the observer",
            async || if self.last().replicas == count { Ok(()) } else { Err(self.counts()) },
        )
        .await;
    }
}
