//! What differs between releases of KEDA: one table, which the operator, the webhook and the scalers consult.

use super::KedaProfile;

/// The behavior of one release of KEDA, where releases differ. `docs/upstreams.md` says how a release is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KedaBehavior {
    /// The release in the label `app.kubernetes.io/version` of generated objects and in `keda_build_info`.
    pub release: &'static str,
    /// A field that resource definitions have since this release, by which `--keda-profile auto` recognizes them; none for the
    /// oldest.
    pub definition_field: Option<&'static str>,
    /// The scale loop.
    pub operator: OperatorBehavior,
    /// The webhook.
    pub admission: AdmissionBehavior,
    /// Triggers.
    pub triggers: TriggerBehavior,
}

/// The scale loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorBehavior {
    /// A failed write of the scale makes the object `Ready=False` with reason `ErrorScalingTarget`, and events name the cause.
    pub reports_failed_scale_writes: bool,
    /// A failed creation of a Job makes the object `Ready=False` with reason `KEDAJobCreateFailed`, and `KEDAJobsCreated` counts
    /// only Jobs that were created.
    pub reports_failed_job_creation: bool,
    /// A poll of an object that never scales to zero uses what its HPA requested, instead of querying the triggers.
    pub reuses_hpa_observations: bool,
    /// A token of a service account that cannot be obtained fails the trigger; otherwise it counts as empty.
    pub bound_tokens_are_required: bool,
    /// Calls to external scalers are counted in `keda_grpc_client_*`.
    pub exports_external_calls: bool,
    /// External push scalers may stream their metric specs (`StreamMetricSpec`).
    pub streams_metric_specs: bool,
}

/// The webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionBehavior {
    /// Conflicts are looked for only among objects with the same target name or HPA name.
    pub compares_namesakes_only: bool,
    /// A denial names the HPA of the new object; otherwise the configured name of the existing one.
    pub names_incoming_hpa: bool,
    /// Resources of the whole pod count as requests of its containers.
    pub counts_pod_resources: bool,
    /// Warnings fire only if the setting has no effect in this release, with its texts.
    pub replica_warnings: ReplicaWarnings,
}

/// The warnings about settings without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaWarnings {
    /// Only `idleReplicaCount: 0` prevents the warnings; otherwise any value does.
    pub only_idle_zero_counts: bool,
    /// Scaling modifiers prevent the warning about `pollingInterval`.
    pub modifiers_count: bool,
    /// The warning about `pollingInterval`.
    pub polling: &'static str,
    /// The warning about `cooldownPeriod`.
    pub cooldown: &'static str,
}

/// Triggers. Parameters that a release added or removed are marked where they are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerBehavior {
    /// datadog, github-runner, graphite and rabbitmq have the common authentication modes, and modes that a scaler cannot use are
    /// refused.
    pub checks_auth_modes: bool,
    /// prometheus uses `oauth2`.
    pub prometheus_has_oauth: bool,
    /// kafka: the lag of a group without committed offset is what the log retains.
    pub kafka_counts_only_retained: bool,
    /// kafka: `topic` is required without `fullMetadata`.
    pub kafka_needs_topic_without_full_metadata: bool,
    /// kafka: a Kerberos credential cache is a third way to authenticate.
    pub kafka_has_credential_cache: bool,
    /// azure-blob: globs are parsed strictly.
    pub azure_blob_globs_are_strict: bool,
    /// azure-eventhub: `EntityPath` is a key of the connection string, not any substring.
    pub eventhub_entity_path_is_a_key: bool,
    /// azure-pipelines: jobs that an agent has received count.
    pub pipelines_count_in_flight: bool,
    /// azure-pipelines: a service principal is accepted.
    pub pipelines_have_service_principal: bool,
    /// mssql: `driverName` is read.
    pub mssql_has_driver_name: bool,
    /// rabbitmq: an empty queue is 0 and inactive in mode `ExpectedQueueConsumptionTime`.
    pub rabbitmq_empty_queue_is_inactive: bool,
    /// splunk-observability: `queryAggregator` is optional and checked when it is parsed.
    pub splunk_aggregator_is_optional: bool,
    /// temporal: `includeRunningWorkflowCount` is read, and rules-based versioning is refused.
    pub temporal_counts_running_workflows: bool,
    /// External scalers: an address that cannot be dialed is refused when the scaler is built.
    pub external_address_is_checked: bool,
}

const KEDA_2_20: KedaBehavior = KedaBehavior {
    release: "2.20.2",
    definition_field: None,
    operator: OperatorBehavior {
        reports_failed_scale_writes: false,
        reports_failed_job_creation: false,
        reuses_hpa_observations: false,
        bound_tokens_are_required: false,
        exports_external_calls: false,
        streams_metric_specs: false,
    },
    admission: AdmissionBehavior {
        compares_namesakes_only: false,
        names_incoming_hpa: false,
        counts_pod_resources: false,
        replica_warnings: ReplicaWarnings {
            only_idle_zero_counts: true,
            modifiers_count: false,
            polling: "PollingInterval is configured but is not relevant. PollingInterval is only relevant when \
                      minReplicaCount = 0 or idleReplicaCount = 0 or useCachedMetrics is enabled",
            cooldown: "CooldownPeriod is configured but is not relevant. CooldownPeriod is only relevant when \
                       minReplicaCount = 0 or idleReplicaCount = 0",
        },
    },
    triggers: TriggerBehavior {
        checks_auth_modes: false,
        prometheus_has_oauth: false,
        kafka_counts_only_retained: false,
        kafka_needs_topic_without_full_metadata: false,
        kafka_has_credential_cache: false,
        azure_blob_globs_are_strict: false,
        eventhub_entity_path_is_a_key: false,
        pipelines_count_in_flight: false,
        pipelines_have_service_principal: false,
        mssql_has_driver_name: false,
        rabbitmq_empty_queue_is_inactive: false,
        splunk_aggregator_is_optional: false,
        temporal_counts_running_workflows: false,
        external_address_is_checked: false,
    },
};

const KEDA_2_21: KedaBehavior = KedaBehavior {
    release: "2.21.0",
    definition_field: Some("azureServicePrincipal"),
    operator: OperatorBehavior {
        reports_failed_scale_writes: true,
        reports_failed_job_creation: true,
        reuses_hpa_observations: true,
        bound_tokens_are_required: true,
        exports_external_calls: true,
        streams_metric_specs: true,
    },
    admission: AdmissionBehavior {
        compares_namesakes_only: true,
        names_incoming_hpa: true,
        counts_pod_resources: true,
        replica_warnings: ReplicaWarnings {
            only_idle_zero_counts: false,
            modifiers_count: true,
            polling: "PollingInterval is configured but is not relevant for scaling. It only affects scaling when \
                      minReplicaCount = 0, idleReplicaCount is set, or useCachedMetrics is enabled, but it still controls how \
                      often KEDA refreshes the ScaledObject status conditions and events",
            cooldown: "CooldownPeriod is configured but is not relevant. CooldownPeriod is only relevant when \
                       minReplicaCount = 0 or idleReplicaCount is set",
        },
    },
    triggers: TriggerBehavior {
        checks_auth_modes: true,
        prometheus_has_oauth: true,
        kafka_counts_only_retained: true,
        kafka_needs_topic_without_full_metadata: true,
        kafka_has_credential_cache: true,
        azure_blob_globs_are_strict: true,
        eventhub_entity_path_is_a_key: true,
        pipelines_count_in_flight: true,
        pipelines_have_service_principal: true,
        mssql_has_driver_name: true,
        rabbitmq_empty_queue_is_inactive: true,
        splunk_aggregator_is_optional: true,
        temporal_counts_running_workflows: true,
        external_address_is_checked: true,
    },
};

impl KedaProfile {
    /// The behavior of this release.
    pub const fn behavior(self) -> &'static KedaBehavior {
        match self {
            Self::V2_20 => &KEDA_2_20,
            Self::V2_21 => &KEDA_2_21,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_belong_to_their_profile() {
        for profile in KedaProfile::ALL {
            assert!(profile.behavior().release.starts_with(profile.name()), "{profile}");
        }
        assert_eq!(KedaProfile::default().behavior().release, crate::keda::VERSION);
    }
}
