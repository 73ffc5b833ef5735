//! Follows the release of the API server, so that an upgraded cluster changes the profile without a restart.

use std::sync::Arc;

use engine::KubernetesVersion;
use locks::RwLockExt as _;
use tokio::task::JoinSet;

use super::profile::{ProfileChoice, ReleaseTracker, follow_release, release_of_server};
use super::run::HpaControllerHandle;

impl HpaControllerHandle {
    /// Applies the release of the API server, and follows it from now on. The task ends when the set is dropped.
    pub(super) async fn detect_release(self) -> JoinSet<()> {
        let mut follower = JoinSet::new();
        let settings = self.reconciler.settings();
        if settings.kubernetes != ProfileChoice::Auto {
            return follower;
        }
        let client = self.reconciler.status_writer.client.clone();
        let current = match release_of_server(&client).await {
            Ok(version) => version,
            Err(error) => {
                let assumed = settings.config.kubernetes;
                tracing::warn!(%error, %assumed, "failed to read the release of the API server");
                assumed
            }
        };
        self.apply_release(current);
        let changed = move |version| self.apply_release(version);
        let interval = settings.release_poll_interval;
        follower.spawn(follow_release(client, interval, ReleaseTracker::new(current), changed));
        follower
    }

    /// Reproduces the behavior of this release from now on, unless the settings fix another.
    fn apply_release(&self, version: KubernetesVersion) {
        let mut held = self.reconciler.settings.write_locked();
        if held.kubernetes != ProfileChoice::Auto {
            return;
        }
        let before = held.config.kubernetes;
        let (_, refused) = held.gates_at(version);
        *held = Arc::new(held.at_release(version));
        drop(held);
        for error in refused {
            tracing::warn!(%error, "a feature gate has no effect on this cluster");
        }
        self.reconciler.metrics.set_profile(version);
        tracing::info!(profile = %version, "the controller behaves as this release of Kubernetes");
        if before != version {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// The release of Kubernetes whose behavior is reproduced.
    pub fn kubernetes(&self) -> KubernetesVersion {
        self.reconciler.settings().config.kubernetes
    }
}
