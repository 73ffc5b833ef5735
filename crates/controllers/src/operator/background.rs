//! Work outside the scheduler. A task that panics is reported and retried with backoff; the others go on.

use std::sync::Arc;
use std::time::Duration;

use runtime::reconcile_loop::PanicCounter;
use runtime::{ReconcileResult, Reconciles};
use tokio::time::{Instant, sleep};

use super::context::OperatorContext;
use super::id::{NamespacedName, ResourceId};
use super::poll::act_on_push;
use super::poll_scheduler::PollScheduler;
use super::rebuild::rebuild_after_changes;
use super::reconcile::reconcile_authentication;
use super::scalers_cache::PendingPush;
use super::store::AuthenticationChange;

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum BackgroundTask {
    /// Activates the target of a ScaledObject whose push trigger reported activity.
    Activation(ResourceId),
    /// Reconciles a TriggerAuthentication.
    Authentication(NamespacedName, AuthenticationChange),
    /// Rebuilds scalers whose credentials have changed.
    CredentialCheck,
}

/// The tasks under way, which end when this is dropped.
pub(super) struct BackgroundTasks {
    context: Arc<OperatorContext>,
    running: Reconciles<BackgroundTask, ()>,
    /// Held by the check of credentials, so that only one runs at a time.
    credential_check: Arc<()>,
}

impl BackgroundTasks {
    pub(super) fn new(context: Arc<OperatorContext>, panics: PanicCounter) -> Self {
        Self { context, running: Reconciles::new(panics), credential_check: Arc::new(()) }
    }

    /// Starts the reconcile of a TriggerAuthentication after `delay`.
    pub(super) fn start_authentication(
        &mut self,
        name: NamespacedName,
        change: AuthenticationChange,
        delay: Duration,
    ) {
        let (context, task) = (self.context.clone(), BackgroundTask::Authentication(name.clone(), change));
        self.running.start(task, async move {
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let started = Instant::now();
            reconcile_authentication(&context, &name, change).await;
            context.queue_metrics.authentication_reconciled(&name, started.elapsed());
        });
    }

    /// Starts the activation that a push trigger requests.
    pub(super) fn start_activation(&mut self, id: ResourceId, trigger: usize, pending: PendingPush) {
        let (context, task) = (self.context.clone(), BackgroundTask::Activation(id.clone()));
        self.running.start(task, async move { act_on_push(&context, &id, trigger, pending).await });
    }

    /// Starts the check of credentials; returns false if one is under way.
    pub(super) fn start_credential_check(&mut self) -> bool {
        if Arc::strong_count(&self.credential_check) > 1 {
            return false;
        }
        let (context, held) = (self.context.clone(), Arc::clone(&self.credential_check));
        self.running.start(BackgroundTask::CredentialCheck, async move {
            rebuild_after_changes(context).await;
            drop(held);
        });
        true
    }

    /// The next task that ends; none if none is under way.
    pub(super) async fn next(&mut self) -> Option<(BackgroundTask, ReconcileResult<()>)> {
        self.running.next().await
    }

    /// Reports a task that panicked, and schedules its retry.
    pub(super) fn finish(
        &mut self,
        scheduler: &mut PollScheduler,
        task: BackgroundTask,
        result: ReconcileResult<()>,
    ) {
        let ReconcileResult::Panicked { message, retry_after } = result else { return };
        match task {
            BackgroundTask::Activation(id) => {
                self.context.report_panic(&id, "activation", &message, retry_after);
                // The poll finds the activity that the trigger reported.
                scheduler.poll_by(&id, Instant::now() + retry_after);
            }
            BackgroundTask::Authentication(name, change) => {
                self.context.queue_metrics.authentication_panicked(&name);
                self.context.report_authentication_panic(&name, &message, retry_after);
                self.start_authentication(name, change, retry_after);
            }
            BackgroundTask::CredentialCheck => {
                // The next check follows after its interval.
                tracing::error!(error = message, "the check of credentials panicked");
            }
        }
    }
}
