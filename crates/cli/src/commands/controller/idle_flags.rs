//! Flags of kube-controller-manager that concern its other controllers, or that have no counterpart here. They are accepted, so that its
//! arguments can be used unchanged, and named in the log.

use crate::flags::{Flag, Group, Kind, Table, idle};

use Group::{Authentication, Generic, Logging};
use Kind::{Bool, Duration, Float, List, Number, Text};

/// The table of flags without effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControllerManagerTable;

impl Table for ControllerManagerTable {
    const FLAGS: &'static [Flag] = FLAGS;
}

/// The given flags.
pub(crate) type ControllerManagerFlags = crate::flags::Flags<ControllerManagerTable>;

const NO_LIMIT: &str = "concurrency adapts to what the API server can handle";
const LOGS: &str = "use --log-level and --log-format";
const CLUSTER: &str = "requests are authenticated and authorized by the cluster";
const OTHER: &str = "it concerns other parts of kube-controller-manager";

/// The flags of kube-controller-manager 1.36.
#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    idle(Generic, "allocate-node-cidrs", Bool, "", OTHER),
    idle(Generic, "allow-metric-labels", Text, "", OTHER),
    idle(Generic, "allow-metric-labels-manifest", Text, "", OTHER),
    idle(Generic, "attach-detach-reconcile-sync-period", Duration, "", OTHER),
    idle(Authentication, "authentication-kubeconfig", Text, "", CLUSTER),
    idle(Authentication, "authentication-skip-lookup", Bool, "", CLUSTER),
    idle(Authentication, "authentication-token-webhook-cache-ttl", Duration, "", CLUSTER),
    idle(Authentication, "authentication-tolerate-lookup-failure", Bool, "", CLUSTER),
    idle(Authentication, "authorization-kubeconfig", Text, "", CLUSTER),
    idle(Authentication, "authorization-webhook-cache-authorized-ttl", Duration, "", CLUSTER),
    idle(Authentication, "authorization-webhook-cache-unauthorized-ttl", Duration, "", CLUSTER),
    idle(Generic, "cert-dir", Text, "", OTHER),
    idle(Generic, "cidr-allocator-type", Text, "", OTHER),
    idle(Authentication, "client-ca-file", Text, "", CLUSTER),
    idle(Generic, "cloud-config", Text, "", OTHER),
    idle(Generic, "cloud-provider", Text, "", OTHER),
    idle(Generic, "cluster-cidr", Text, "", OTHER),
    idle(Generic, "cluster-name", Text, "", OTHER),
    idle(Generic, "cluster-signing-cert-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-duration", Duration, "", OTHER),
    idle(Generic, "cluster-signing-key-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kube-apiserver-client-cert-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kube-apiserver-client-key-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kubelet-client-cert-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kubelet-client-key-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kubelet-serving-cert-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-kubelet-serving-key-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-legacy-unknown-cert-file", Text, "", OTHER),
    idle(Generic, "cluster-signing-legacy-unknown-key-file", Text, "", OTHER),
    idle(Generic, "concurrent-cron-job-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-daemonset-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-deployment-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-device-taint-eviction-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-endpoint-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-ephemeralvolume-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-gc-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-job-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-namespace-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-rc-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-replicaset-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-resource-claim-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-resource-quota-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-service-endpoint-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-service-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-serviceaccount-token-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-statefulset-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-ttl-after-finished-syncs", Number, "", OTHER),
    idle(Generic, "concurrent-validating-admission-policy-status-syncs", Number, "", OTHER),
    idle(Generic, "configure-cloud-routes", Bool, "", OTHER),
    idle(Generic, "contention-profiling", Bool, "", OTHER),
    idle(Generic, "controller-start-interval", Duration, "", OTHER),
    idle(Generic, "controllers", List, "", OTHER),
    idle(Generic, "disable-attach-detach-reconcile-sync", Bool, "", OTHER),
    idle(Generic, "disable-force-detach-on-timeout", Bool, "", OTHER),
    idle(Generic, "disable-http2-serving", Bool, "", OTHER),
    idle(Generic, "disabled-metrics", List, "", OTHER),
    idle(Generic, "emulated-version", Text, "", OTHER),
    idle(Generic, "emulation-forward-compatible", Bool, "", OTHER),
    idle(Generic, "enable-dynamic-provisioning", Bool, "", OTHER),
    idle(Generic, "enable-garbage-collector", Bool, "", OTHER),
    idle(Generic, "enable-hostpath-provisioner", Bool, "", OTHER),
    idle(Generic, "enable-leader-migration", Bool, "", OTHER),
    idle(Generic, "endpoint-updates-batch-period", Duration, "", OTHER),
    idle(Generic, "endpointslice-updates-batch-period", Duration, "", OTHER),
    idle(Generic, "external-cloud-volume-plugin", Text, "", OTHER),
    idle(Generic, "flex-volume-plugin-dir", Text, "", OTHER),
    idle(Generic, "horizontal-pod-autoscaler-downscale-delay", Duration, "", OTHER),
    idle(Generic, "horizontal-pod-autoscaler-upscale-delay", Duration, "", OTHER),
    idle(Generic, "horizontal-pod-autoscaler-use-rest-clients", Bool, "", OTHER),
    idle(Generic, "http2-max-streams-per-connection", Number, "", OTHER),
    idle(Generic, "kube-api-burst", Number, "", NO_LIMIT),
    idle(Generic, "kube-api-content-type", Text, "", OTHER),
    idle(Generic, "kube-api-qps", Float, "", NO_LIMIT),
    idle(Generic, "large-cluster-size-threshold", Number, "", OTHER),
    idle(Generic, "leader-elect-resource-lock", Text, "", OTHER),
    idle(Generic, "leader-migration-config", Text, "", OTHER),
    idle(Generic, "legacy-service-account-token-clean-up-period", Duration, "", OTHER),
    idle(Logging, "log-flush-frequency", Duration, "", LOGS),
    idle(Logging, "log-json-info-buffer-size", Text, "", LOGS),
    idle(Logging, "log-json-split-stream", Bool, "", LOGS),
    idle(Logging, "log-text-info-buffer-size", Text, "", LOGS),
    idle(Logging, "log-text-split-stream", Bool, "", LOGS),
    idle(Logging, "logging-format", Text, "", LOGS),
    idle(Generic, "master", Text, "", OTHER),
    idle(Generic, "max-endpoints-per-slice", Number, "", OTHER),
    idle(Generic, "min-compatibility-version", Text, "", OTHER),
    idle(Generic, "min-resync-period", Duration, "", OTHER),
    idle(Generic, "mirroring-concurrent-service-endpoint-syncs", Number, "", OTHER),
    idle(Generic, "mirroring-endpointslice-updates-batch-period", Duration, "", OTHER),
    idle(Generic, "mirroring-max-endpoints-per-subset", Number, "", OTHER),
    idle(Generic, "namespace-sync-period", Duration, "", OTHER),
    idle(Generic, "node-cidr-mask-size", Number, "", OTHER),
    idle(Generic, "node-cidr-mask-size-ipv4", Number, "", OTHER),
    idle(Generic, "node-cidr-mask-size-ipv6", Number, "", OTHER),
    idle(Generic, "node-eviction-rate", Float, "", OTHER),
    idle(Generic, "node-monitor-grace-period", Duration, "", OTHER),
    idle(Generic, "node-monitor-period", Duration, "", OTHER),
    idle(Generic, "node-startup-grace-period", Duration, "", OTHER),
    idle(Generic, "node-sync-period", Duration, "", OTHER),
    idle(Generic, "permit-address-sharing", Bool, "", OTHER),
    idle(Generic, "permit-port-sharing", Bool, "", OTHER),
    idle(Generic, "profiling", Bool, "", OTHER),
    idle(Generic, "pv-recycler-increment-timeout-nfs", Number, "", OTHER),
    idle(Generic, "pv-recycler-minimum-timeout-hostpath", Number, "", OTHER),
    idle(Generic, "pv-recycler-minimum-timeout-nfs", Number, "", OTHER),
    idle(Generic, "pv-recycler-pod-template-filepath-hostpath", Text, "", OTHER),
    idle(Generic, "pv-recycler-pod-template-filepath-nfs", Text, "", OTHER),
    idle(Generic, "pv-recycler-timeout-increment-hostpath", Number, "", OTHER),
    idle(Generic, "pvclaimbinder-sync-period", Duration, "", OTHER),
    idle(Authentication, "requestheader-allowed-names", List, "", CLUSTER),
    idle(Authentication, "requestheader-client-ca-file", Text, "", CLUSTER),
    idle(Authentication, "requestheader-extra-headers-prefix", List, "", CLUSTER),
    idle(Authentication, "requestheader-group-headers", List, "", CLUSTER),
    idle(Authentication, "requestheader-uid-headers", List, "", CLUSTER),
    idle(Authentication, "requestheader-username-headers", List, "", CLUSTER),
    idle(Generic, "resource-quota-sync-period", Duration, "", OTHER),
    idle(Generic, "root-ca-file", Text, "", OTHER),
    idle(Generic, "route-reconciliation-period", Duration, "", OTHER),
    idle(Generic, "secondary-node-eviction-rate", Float, "", OTHER),
    idle(Generic, "service-account-private-key-file", Text, "", OTHER),
    idle(Generic, "service-cluster-ip-range", Text, "", OTHER),
    idle(Generic, "show-hidden-metrics-for-version", Text, "", OTHER),
    idle(Generic, "terminated-pod-gc-threshold", Number, "", OTHER),
    idle(Generic, "tls-cipher-suites", List, "", OTHER),
    idle(Generic, "tls-min-version", Text, "", OTHER),
    idle(Generic, "tls-sni-cert-key", List, "", OTHER),
    idle(Generic, "unhealthy-zone-threshold", Float, "", OTHER),
    idle(Generic, "use-service-account-credentials", Bool, "", OTHER),
    idle(Logging, "vmodule", Text, "", LOGS),
    idle(Generic, "volume-host-allow-local-loopback", Bool, "", OTHER),
    idle(Generic, "volume-host-cidr-denylist", List, "", OTHER),
    Flag { short: Some('v'), ..idle(Logging, "v", Number, "", LOGS) },
];

/// Feature gates of Kubernetes that change nothing in an HPA controller.
pub(super) const IDLE_GATES: &[&str] = &[
    "APIResponseCompression",
    "APIServerIdentity",
    "APIServingWithRoutine",
    "AllowDNSOnlyNodeCSR",
    "AllowParsingUserUIDFromCertAuth",
    "AnyVolumeDataSource",
    "AtomicFIFO",
    "AuthorizeNodeWithSelectors",
    "CBORServingAndStorage",
    "ClientsAllowCBOR",
    "ClientsPreferCBOR",
    "CloudControllerManagerWatchBasedRoutesReconciliation",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "ComponentFlagz",
    "ComponentStatusz",
    "ConcurrentWatchObjectDecode",
    "ConsistentListFromCache",
    "ContainerRestartRules",
    "ContainerStopSignals",
    "ContextualLogging",
    "CoordinatedLeaderElection",
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CPUManagerPolicyOptions",
    "CrossNamespaceVolumeDataSource",
    "CSIMigrationPortworx",
    "CSIVolumeHealth",
    "CustomCPUCFSQuotaPeriod",
    "DeclarativeValidation",
    "DeclarativeValidationTakeover",
    "DeploymentReplicaSetTerminatingReplicas",
    "DetectCacheInconsistency",
    "DisableAllocatorDualWrite",
    "DisableNodeKubeProxyVersion",
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DynamicResourceAllocation",
    "EnvFiles",
    "EventedPLEG",
    "ExternalServiceAccountTokenSigner",
    "GitRepoVolumeDriver",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "HPAContainerMetrics",
    "HonorPVReclaimPolicy",
    "ImageMaximumGCAge",
    "ImageVolume",
    "InformerResourceVersion",
    "InOrderInformers",
    "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingExclusiveCPUs",
    "InTreePluginPortworxUnregister",
    "JobBackoffLimitPerIndex",
    "JobManagedBy",
    "JobPodReplacementPolicy",
    "JobSuccessPolicy",
    "KubeletCgroupDriverFromCRI",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletFineGrainedAuthz",
    "KubeletInUserNamespace",
    "KubeletPodResourcesDynamicResources",
    "KubeletPodResourcesGet",
    "KubeletPSI",
    "KubeletSeparateDiskGC",
    "KubeletServiceAccountTokenForCredentialProviders",
    "KubeletTracing",
    "ListFromCacheSnapshot",
    "LocalStorageCapacityIsolationFSQuotaMonitoring",
    "LogarithmicScaleDown",
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "MatchLabelKeysInPodAffinity",
    "MatchLabelKeysInPodTopologySpread",
    "MaxUnavailableStatefulSet",
    "MemoryManager",
    "MemoryQoS",
    "MultiCIDRServiceAllocator",
    "MutableCSINodeAllocatableCount",
    "MutatingAdmissionPolicy",
    "NFTablesProxyMode",
    "NodeDeclaredFeatures",
    "NodeInclusionPolicyInPodTopologySpread",
    "NodeLogQuery",
    "NodeSwap",
    "NominatedNodeNameForExpectation",
    "OpenAPIEnums",
    "OrderedNamespaceDeletion",
    "PodAndContainerStatsFromCRI",
    "PodCertificateRequest",
    "PodDeletionCost",
    "PodLevelResourcesFixDefaulting",
    "PodLevelResourcesFixKubeletQOSClass",
    "PodLifecycleSleepAction",
    "PodLogsQuerySplitStreams",
    "PodObservedGenerationTracking",
    "PodReadyToStartContainersCondition",
    "PodSchedulingReadiness",
    "PodTopologyLabelsAdmission",
    "PortForwardWebsockets",
    "PreferSameTrafficDistribution",
    "PreventStaticPodAPIReferences",
    "ProcMountType",
    "QOSReserved",
    "RecoverVolumeExpansionFailure",
    "RecursiveReadOnlyMounts",
    "ReduceDefaultCrashLoopBackOffDecay",
    "RelaxedDNSSearchValidation",
    "RelaxedEnvironmentVariableValidation",
    "RelaxedServiceNameValidation",
    "ReloadKubeletServerCertificateFile",
    "RemoteRequestHeaderUID",
    "ResilientWatchCacheInitialization",
    "ResourceHealthStatus",
    "RestrictFloatingIngressIPs",
    "RetryGenerateName",
    "RotateKubeletServerCertificate",
    "RuntimeClassInImageCriApi",
    "SchedulerAsyncAPICalls",
    "SchedulerAsyncPreemption",
    "SchedulerPopFromBackoffQ",
    "SchedulerQueueingHints",
    "SELinuxChangePolicy",
    "SELinuxMount",
    "SELinuxMountReadWriteOncePod",
    "SeparateCacheWatchRPC",
    "SeparateTaintEvictionController",
    "ServiceAccountNodeAudienceRestriction",
    "ServiceAccountTokenJTI",
    "ServiceAccountTokenNodeBinding",
    "ServiceAccountTokenNodeBindingValidation",
    "ServiceAccountTokenPodNodeInfo",
    "ServiceTrafficDistribution",
    "SidecarContainers",
    "SizeBasedListCostEstimate",
    "SizeMemoryBackedVolumes",
    "StatefulSetAutoDeletePVC",
    "StorageCapacityScoring",
    "StorageNamespaceIndex",
    "StorageVersionAPI",
    "StorageVersionHash",
    "StorageVersionMigrator",
    "StreamingCollectionEncodingToJSON",
    "StreamingCollectionEncodingToProtobuf",
    "StrictCostEnforcementForVAP",
    "StrictIPCIDRValidation",
    "StructuredAuthenticationConfiguration",
    "StructuredAuthenticationConfigurationEgressSelector",
    "StructuredAuthorizationConfiguration",
    "SupplementalGroupsPolicy",
    "SystemdWatchdog",
    "TokenRequestServiceAccountUIDValidation",
    "TopologyAwareHints",
    "TopologyManagerPolicyAlphaOptions",
    "TopologyManagerPolicyBetaOptions",
    "TopologyManagerPolicyOptions",
    "TranslateStreamCloseWebsocketRequests",
    "UnauthenticatedHTTP2DOSMitigation",
    "UnknownVersionInteroperabilityProxy",
    "UserNamespacesPodSecurityStandards",
    "UserNamespacesSupport",
    "VolumeAttributesClass",
    "WatchCacheInitializationPostStartHook",
    "WatchFromStorageWithoutResourceVersion",
    "WatchList",
    "WatchListClient",
    "WindowsCPUAndMemoryAffinity",
    "WindowsGracefulNodeShutdown",
    "WindowsHostNetwork",
    "WinDSR",
    "WinOverlay",
];

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::super::ControllerArgs;
    use super::*;

    #[derive(Parser)]
    struct ControllerCommandLine {
        #[command(flatten)]
        args: ControllerArgs,
    }

    fn parse(words: &[&str]) -> Result<ControllerArgs, String> {
        let words = std::iter::once("controller").chain(words.iter().copied());
        let matches = ControllerCommandLine::command()
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())?;
        let line = ControllerCommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok(line.args)
    }

    #[test]
    fn arguments_of_kube_controller_manager_are_accepted() {
        // As kubeadm writes them.
        let args = parse(&[
            "--allocate-node-cidrs=true",
            "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
            "--authorization-kubeconfig=/etc/kubernetes/controller-manager.conf",
            "--bind-address=127.0.0.1",
            "--client-ca-file=/etc/kubernetes/pki/ca.crt",
            "--cluster-cidr=10.244.0.0/16",
            "--cluster-name=kubernetes",
            "--controllers=*,bootstrapsigner,tokencleaner",
            "--kube-api-qps=50",
            "--kubeconfig=/etc/kubernetes/controller-manager.conf",
            "--leader-elect=true",
            "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
            "--use-service-account-credentials=true",
            "--feature-gates=HPAScaleToZero=true,WatchList=true",
            "--v=2",
        ])
        .unwrap();
        let idle = args.without_effect.idle();
        assert_eq!(idle.len(), 11, "{idle:?}");
        assert!(idle.contains(&"v") && idle.contains(&"kube-api-qps"));
        assert_eq!(args.options.idle_gates(), ["WatchList"]);
        assert!(args.options.settings().unwrap().config.gates.scale_to_zero);
        assert!(parse(&["-v", "2"]).is_ok());
        assert!(parse(&["--kube-api-qps=many"]).is_err());
        assert!(parse(&["--no-such-flag=1"]).is_err());
        let unknown = parse(&["--feature-gates=HPAScaleToZeros=true"]).unwrap().options.settings();
        assert!(unknown.unwrap_err().to_string().contains("did you mean HPAScaleToZero?"));
    }

    #[test]
    fn no_flag_of_ours_is_listed_as_without_effect() {
        // clap panics if a flag is defined twice.
        ControllerCommandLine::command().debug_assert();
        assert!(
            engine::KubernetesVersion::ALL
                .iter()
                .all(|version| IDLE_GATES.iter().all(|gate| version.profile().feature_gate(gate).is_none()))
        );
    }
}
