//! temporal: the backlog of a task queue of Temporal.

mod protocol;
mod query;
#[cfg(test)]
mod tests;

use protocol::{
    COUNT_WORKFLOWS, CURRENT, CountWorkflowsResponse, DESCRIBE_DEPLOYMENT_VERSION, DESCRIBE_TASK_QUEUE,
    DRAINING, DescribeDeploymentResponse, DescribeTaskQueueResponse, RAMPING,
};
use query::BacklogMode;

use crate::encrypted_key::opened;
use crate::grpc::{Channel, Channels, Destination};
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};

/// The scaler type `temporal`.
pub const TYPE: ScalerType = ScalerType {
    name: "temporal",
    about: "How many tasks wait in a task queue of Temporal.",
    display: "temporalScaler",
    parameters: Parameters::PARAMETERS,
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
        /// The trigger is active above this number of tasks.
        activation: i64 = "activationTargetQueueSize" in [Metadata], default "0";
        /// Target number of tasks per replica.
        target: i64 = "targetQueueSize" in [Metadata], default "5";
        /// The task queue.
        task_queue: String = "taskQueue" in [Metadata, Environment], required;
        /// Which queues count: `workflow`, `activity` and `nexus`, separated by commas; all if it is missing.
        queue_types: Vec<String> = "queueTypes" in [Metadata];
        /// The build of rules-based versioning.
        build_id: String = "buildId" in [Metadata, Environment],
            deprecated "The 'buildId' setting is DEPRECATED and will be removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead",
            removed_in_2_21 "The 'buildId' setting is DEPRECATED and is removed in v2.21 because Temporal Server is dropping support for the Rules-Based Versioning APIs - Use 'workerDeploymentName' and 'workerDeploymentBuildId' instead";
        /// The worker deployment whose version counts.
        deployment: String = "workerDeploymentName" in [Metadata, Environment];
        /// The build of the worker deployment.
        deployment_build: String = "workerDeploymentBuildId" in [Metadata, Environment];
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
        /// Accepted and ignored: a connection is made within 5 seconds.
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
        if self.target < 0 {
            return Err("targetQueueSize must be a positive number".into());
        }
        if self.activation < 0 {
            return Err("activationTargetQueueSize must be a positive number".into());
        }
        if self.certificate.is_empty() != self.key.reveal().is_empty() {
            return Err("both cert and key must be provided when using TLS".into());
        }
        if self.min_connect_timeout < 0 {
            return Err("minConnectTimeout must be a positive number".into());
        }
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
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
        let names = [&self.task_queue, &self.running_queue, &self.deployment, &self.deployment_build];
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

impl Parameters {
    /// TLS settings; none for clear text, which KEDA uses without an API key and a client certificate.
    fn tls(&self, authorities: &[u8]) -> Option<TlsSettings> {
        let has_certificate = !self.certificate.is_empty() && !self.key.reveal().is_empty();
        let has_key = !self.api_key.reveal().is_empty();
        let is_secure = has_certificate || (has_key && self.enable_tls);
        if !is_secure {
            return None;
        }
        let own = TlsSettings {
            authorities: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: opened(&self.key, &self.key_password),
            certificate_check: if self.unsafe_ssl {
                CertificateCheck::Anything
            } else {
                CertificateCheck::Full
            },
        };
        Some(own.trusting(authorities))
    }

    fn headers(&self) -> Vec<(&'static str, Secret)> {
        let mut headers = vec![("temporal-namespace", Secret::new(&*self.namespace))];
        if !self.api_key.reveal().is_empty() {
            headers.push(("authorization", Secret::new(format!("Bearer {}", self.api_key.reveal()))));
        }
        headers
    }
}

/// A task queue and its server.
struct Temporal {
    spec: MetricSpec,
    parameters: Parameters,
    headers: Vec<(&'static str, Secret)>,
    channel: Arc<Channel>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    // KEDA has another text for this error here.
    target_type(trigger)
        .map_err(|error| ScalerError::new(error.message.replacen("error getting", "failed to get", 1)))?;
    let parameters = Parameters::read(trigger)?;
    let destination = Destination {
        what: "Temporal",
        address: parameters.endpoint.clone(),
        tls: parameters.tls(&backends.web.settings().authorities),
        server_name: parameters.tls_server_name.clone(),
        dialer: backends.dialer.clone(),
        proxies: backends.web.settings().proxies.clone(),
    };
    Ok(Arc::new(Temporal {
        spec: external(trigger, &parameters.metric(), whole(parameters.target)),
        headers: parameters.headers(),
        parameters,
        channel: backends.state::<Channels>().of(destination),
    }))
}

impl Temporal {
    /// The tasks that wait, and the state of the version of the worker deployment, if there is one.
    async fn backlog(&self) -> Result<(i64, Option<i32>), ScalerError> {
        match self.parameters.mode() {
            BacklogMode::Deployment => {
                let request = self.parameters.deployment_request();
                let answer: DescribeDeploymentResponse =
                    self.channel.unary(DESCRIBE_DEPLOYMENT_VERSION, &request, &self.headers).await?;
                let status = answer.info.as_ref().map_or(0, |info| info.status);
                Ok((self.parameters.deployment_backlog(&answer)?, Some(status)))
            }
            BacklogMode::Rules => {
                let request = self.parameters.rules_request();
                let answer = self.channel.unary(DESCRIBE_TASK_QUEUE, &request, &self.headers).await?;
                Ok((query::rules_backlog(&answer)?, None))
            }
            BacklogMode::Unversioned => {
                let mut answers: Vec<DescribeTaskQueueResponse> = Vec::new();
                for queue_type in self.parameters.types() {
                    let request = self.parameters.queue_request(queue_type);
                    answers.push(self.channel.unary(DESCRIBE_TASK_QUEUE, &request, &self.headers).await?);
                }
                Ok((query::unversioned_backlog(&answers)?, None))
            }
        }
    }

    /// Whether workflows run although no task waits. KEDA takes a count that fails for 0, which would stop workers that are in use.
    async fn has_running_workflows(&self, status: Option<i32>) -> Result<bool, ScalerError> {
        match status {
            Some(DRAINING) => return Ok(true),
            None | Some(CURRENT | RAMPING) => {}
            Some(_) => return Ok(false),
        }
        let request = self.parameters.running_request();
        let answer: CountWorkflowsResponse =
            self.channel.unary(COUNT_WORKFLOWS, &request, &self.headers).await?;
        Ok(answer.count > 0)
    }
}

impl Scaler for Temporal {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let failed = |error: ScalerError| error.inside("failed to get Temporal backlog count");
            let (backlog, status) = self.backlog().await.map_err(failed)?;
            let mut active = backlog > self.parameters.activation;
            if !active && self.parameters.include_running {
                let failed = |error: ScalerError| error.inside("failed to count running workflows");
                active = self.has_running_workflows(status).await.map_err(failed)?;
            }
            Ok(Reading::one(metric, milli(backlog as f64), active))
        })
    }
}
