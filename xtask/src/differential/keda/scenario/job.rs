//! Steps of ScaledJobs.

use serde_json::{Value, json};

use super::KedaScenario;
use super::change_kind::ChangeKind;
use crate::differential::keda::action::{Ending, KedaAction, KedaStep};
use crate::differential::scenario::random::RandomSource;

/// The fields of ScaledJobs only.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    strategy: Option<Value>,
    calculation: Option<&'static str>,
    rollout: Option<Value>,
    history: Option<(i64, i64)>,
    image: &'static str,
}

impl JobSpec {
    pub(super) fn any(random: &mut RandomSource) -> Self {
        Self { strategy: any_strategy(random), calculation: None, rollout: None, history: None, image: "app" }
    }
}

fn any_strategy(random: &mut RandomSource) -> Option<Value> {
    match random.below(6) {
        0 => None,
        1 => Some(json!({"strategy": "default"})),
        2 => Some(json!({
            "strategy": "custom", "customScalingQueueLengthDeduction": 1, "customScalingRunningJobPercentage": "0.5",
        })),
        3 => Some(json!({"strategy": "accurate"})),
        4 => Some(json!({"strategy": "eager"})),
        _ => Some(json!({"strategy": "accurate", "pendingPodConditions": ["Ready", "PodScheduled"]})),
    }
}

impl KedaScenario {
    pub(super) fn job_spec(&self, job: &JobSpec) -> Value {
        let mut strategy = job.strategy.clone();
        if let Some(calculation) = job.calculation {
            let strategy = strategy.get_or_insert_with(|| json!({}));
            if let Some(strategy) = strategy.as_object_mut() {
                strategy.insert("multipleScalersCalculation".to_owned(), calculation.into());
            }
        }
        let containers = json!([{"name": "app", "image": job.image}]);
        json!({
            "jobTargetRef": {
                "backoffLimit": 1,
                "template": {"metadata": {"labels": {"crew": "x"}}, "spec": {"containers": containers, "restartPolicy": "Never"}},
            },
            "pollingInterval": self.polling,
            "minReplicaCount": self.min,
            // Bounds the number of Jobs.
            "maxReplicaCount": self.max.unwrap_or(6),
            "successfulJobsHistoryLimit": job.history.map(|(successful, _)| successful),
            "failedJobsHistoryLimit": job.history.map(|(_, failed)| failed),
            "rollout": job.rollout,
            "scalingStrategy": strategy,
            "triggers": self.triggers_json(),
        })
    }

    pub(super) fn plan_job(&mut self, change: ChangeKind) -> Option<KedaStep> {
        let scenario = self.name.clone();
        let max_jobs = self.random.between(1, 3) as usize;
        let end = |how| KedaAction::EndJobs { scenario, how, max_jobs };
        match change {
            ChangeKind::JobsEnd => {
                return Some(
                    KedaStep::new(format!("{max_jobs} jobs are complete")).with([end(Ending::Complete)]),
                );
            }
            ChangeKind::JobsFail => {
                return Some(KedaStep::new(format!("{max_jobs} jobs fail")).with([end(Ending::Failed)]));
            }
            ChangeKind::JobsRun => {
                return Some(KedaStep::new(format!("{max_jobs} jobs run")).with([end(Ending::Running)]));
            }
            _ => {}
        }
        let random = &mut self.random;
        let job = self.job.as_mut()?;
        let title = match change {
            ChangeKind::Strategy => {
                job.strategy = any_strategy(random);
                format!("strategy {:?}", job.strategy)
            }
            ChangeKind::Rollout => {
                job.rollout = random
                    .of([None, Some("gradual"), Some("immediate")])
                    .map(|strategy| json!({"strategy": strategy}));
                format!("rollout {:?}", job.rollout)
            }
            ChangeKind::Calculation => {
                job.calculation = random.of([None, Some("min"), Some("avg"), Some("sum"), Some("max")]);
                format!("calculation {:?}", job.calculation)
            }
            ChangeKind::History => {
                job.history = Some((random.between(0, 1), random.between(0, 1)));
                format!("history {:?}", job.history)
            }
            ChangeKind::Template => {
                job.image = random.of(["app:2", "app:3"]);
                format!("image {}", job.image)
            }
            _ => return None,
        };
        Some(KedaStep::new(title).with([self.edit()]))
    }
}
