//! Step 5: act. The leader writes the scale, and checks its lease before every attempt.

use std::time::Duration;

use cluster::lease::Leadership;
use cluster::scale::{ScaleClient, ScaleObject};
use engine::ScaleWriteResult;
use engine::act::{ScaleWrite, ScaleWriteAction};

/// Writes scales while this process is the leader.
pub(crate) struct ScaleWriter {
    pub(crate) scales: ScaleClient,
    pub(crate) leadership: Leadership,
}

/// How a scale write ended.
#[allow(clippy::large_enum_variant, reason = "held for a moment, once per write")]
pub(crate) enum ScaleWriteOutcome {
    /// The write succeeded or failed; with the current scale.
    Written(ScaleWriteResult, ScaleObject),
    /// Another process is the leader; nothing was written.
    LeadershipLost,
}

impl ScaleWriter {
    /// Writes `replicas` to the scale `held` (docs/spec/hpa.md 3.7).
    pub(crate) async fn write(
        &self,
        namespace: &str,
        name: &str,
        mut held: ScaleObject,
        replicas: i32,
    ) -> ScaleWriteOutcome {
        let (mut write, mut next) = ScaleWrite::start();
        loop {
            next = match next {
                ScaleWriteAction::Put => {
                    if !self.leadership.is_leader() {
                        return ScaleWriteOutcome::LeadershipLost;
                    }
                    match self.scales.put(namespace, name, &held, replicas).await {
                        Ok(new) => {
                            held = new;
                            write.put(Ok(()))
                        }
                        // The lease passed while the write waited or was under way.
                        Err(_) if !self.leadership.is_leader() => return ScaleWriteOutcome::LeadershipLost,
                        Err(error) => write.put(Err(error)),
                    }
                }
                ScaleWriteAction::Refetch => {
                    match self.scales.refetch(namespace, name, &held).await {
                        Ok(new) => held = new,
                        Err(error) => {
                            tracing::warn!(target.namespace = namespace, target.name = name, %error, "failed to read the scale again");
                        }
                    }
                    write.refetched()
                }
                ScaleWriteAction::Wait(time) => {
                    tokio::time::sleep(Duration::try_from(time).unwrap_or_default()).await;
                    write.waited()
                }
                ScaleWriteAction::Done(Ok(())) => {
                    return ScaleWriteOutcome::Written(ScaleWriteResult::Done, held);
                }
                ScaleWriteAction::Done(Err(error)) => {
                    return ScaleWriteOutcome::Written(ScaleWriteResult::Failed(error), held);
                }
            };
        }
    }
}
