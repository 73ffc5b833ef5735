//! temporal: the backlog of a task queue of Temporal.

#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `temporal`.
pub const TYPE: ScalerType = ScalerType {
    name: "temporal",
    about: "How many tasks wait in a task queue of Temporal.",
    display: "temporalScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "tasks",
    build,
    samples: &[Sample::tcp(&[("endpoint", "{}"), ("taskQueue", "q")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of temporal.
    pub struct Parameters of "failed to parse Temporal metadata: error parsing temporal metadata" {
        /// The frontend, as `host:port`.
        endpoint: String = "endpoint" in [Metadata, Environment], required;
        /// The namespace.
        namespace: String = "namespace" in [Metadata, Environment], default "default";
        /// The task queue.
        task_queue: String = "taskQueue" in [Metadata, Environment], required;
        /// Which queues count: `workflow`, `activity` and `nexus`, separated by commas; `workflow` if it is missing.
        queue_types: Vec<String> = "queueTypes" in [Metadata];
        /// Target number of tasks per replica.
        target: i64 = "targetQueueSize" in [Metadata], default "5";
        /// The trigger is active above this number of tasks.
        activation: i64 = "activationTargetQueueSize" in [Metadata], default "0";
        /// The worker deployment whose version counts.
        deployment: String = "workerDeploymentName" in [Metadata, Environment];
        /// The build of the worker deployment.
        deployment_build: String = "workerDeploymentBuildId" in [Metadata, Environment];
        /// The build of rules-based versioning.
        build_id: String = "buildId" in [Metadata, Environment],
            deprecated "The 'buildId' setting is DEPRECATED and will be removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead",
            removed_in_2_21 "The 'buildId' setting is DEPRECATED and is removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead";
        /// Counts all active versions of rules-based versioning.
        select_all_active: bool = "selectAllActive" in [Metadata],
            deprecated "The 'selectAllActive' setting is DEPRECATED and will be removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead",
            removed_in_2_21 "The 'selectAllActive' setting is DEPRECATED and is removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead";
        /// Counts the unversioned queue of rules-based versioning.
        select_unversioned: bool = "selectUnversioned" in [Metadata],
            deprecated "The 'selectUnversioned' setting is DEPRECATED and will be removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Remove it if your workers are unversioned. Or use 'workerDeploymentName' and 'workerDeploymentBuildId' if you're migrating to Worker Deployment Versioning",
            removed_in_2_21 "The 'selectUnversioned' setting is DEPRECATED and is removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Remove it if your workers are unversioned. Or use 'workerDeploymentName' and 'workerDeploymentBuildId' if you're migrating to Worker Deployment Versioning";
        /// Stays active while workflows run, even if no task waits.
        include_running: bool = "includeRunningWorkflowCount" in [Metadata], default "false", since_2_21;
        /// The task queue whose running workflows count; `taskQueue` if it is missing.
        running_queue: String = "workflowTaskQueueForCount" in [Metadata, Environment], since_2_21;
        /// API key of Temporal Cloud.
        api_key: Secret = "apiKey" in [Authentication, Environment];
        /// Seconds within which a connection must be made.
        min_connect_timeout: isize = "minConnectTimeout" in [Metadata], default "5";
        /// `false` connects in clear text, also with an API key.
        enable_tls: bool = "enableTLS" in [Metadata], default "true", since_2_21;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key.
        key_password: Secret = "keyPassword" in [Authentication];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Name in the server's certificate, if it differs from the host.
        tls_server_name: String = "tlsServerName" in [Metadata, Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.deployment.is_empty() != self.deployment_build.is_empty() {
            return Err("workerDeploymentName and workerDeploymentBuildId must both be set".into());
        }
        if trigger.behavior().temporal_counts_running_workflows {
            return self.check_running_workflows();
        }
        let rules = !self.build_id.is_empty() || self.select_all_active || self.select_unversioned;
        if !self.deployment.is_empty() && rules {
            return Err("workerDeploymentName/workerDeploymentBuildId cannot be combined with buildId, \
                        selectAllActive, or selectUnversioned"
                .into());
        }
        Ok(())
    }

    /// Names are part of a query of Temporal, so they may not contain quotes.
    fn check_running_workflows(&self) -> Result<(), ParseError> {
        if !self.include_running {
            return match &*self.running_queue {
                "" => Ok(()),
                _ => {
                    Err("workflowTaskQueueForCount has no effect unless includeRunningWorkflowCount is true"
                        .into())
                }
            };
        }
        let queue = if self.running_queue.is_empty() { &self.task_queue } else { &self.running_queue };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
        let names = [queue, &self.deployment, &self.deployment_build];
        match names.into_iter().find(|name| !name.chars().all(plain)) {
            Some(name) => Err(format!(
                "value {} contains characters not allowed in Temporal visibility queries when \
                 includeRunningWorkflowCount is enabled",
                api::gotext::quote(name)
            )
            .into()),
            None => Ok(()),
        }
    }

    fn metric(&self) -> String {
        let name = format!("temporal-{}-{}", self.namespace, self.task_queue);
        match &*self.deployment {
            "" => name,
            deployment => format!("{name}-{deployment}-{}", self.deployment_build),
        }
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    UnqueriedScaler::build(trigger, [external(trigger, &parameters.metric(), whole(parameters.target))])
}
