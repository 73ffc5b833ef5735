//! The Go modules of each upstream, the packages in them that matter to us, and the vectors that a change affects.

use clap::ValueEnum;

/// A program that Plimsoll replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Upstream {
    /// The HPA controller, the API group `autoscaling` and the metrics APIs.
    Kubernetes,
    /// The operator, the metrics adapter and the webhooks.
    Keda,
}

/// A Go module.
#[derive(Debug)]
pub(super) struct Module {
    /// The path of the module.
    pub(super) path: &'static str,
    /// The notation of the release in the module's version.
    scheme: VersionScheme,
    /// The relevant folders.
    pub(super) packages: &'static [WatchedPackage],
}

/// The notation of a release as a version of a module.
#[derive(Clone, Copy, Debug)]
enum VersionScheme {
    /// `v1.37.1`.
    Release,
    /// `v0.37.1` for `1.37.1`, as in the staging modules of Kubernetes.
    Staging,
}

/// A folder, and the vectors to record again when it changes.
#[derive(Debug)]
pub(super) struct WatchedPackage {
    pub(super) folder: &'static str,
    pub(super) vectors: &'static [&'static str],
}

const fn package(folder: &'static str, vectors: &'static [&'static str]) -> WatchedPackage {
    WatchedPackage { folder, vectors }
}

/// Every set of recorded scenarios of the HPA controller.
const HPA_SCENARIOS: &[&str] = &["hpa/* (all scenarios of the controller)"];

const KUBERNETES: &[Module] = &[
    Module {
        path: "k8s.io/kubernetes",
        scheme: VersionScheme::Release,
        packages: &[
            package("pkg/controller/podautoscaler", HPA_SCENARIOS),
            package("pkg/apis/autoscaling", &["hpa/validation", "hpa/conversion"]),
            package("pkg/registry/autoscaling", &["hpa/validation", "localkube/rules"]),
            package("pkg/printers/internalversion", &["hpa/printing", "localkube/tables"]),
            package("pkg/features", HPA_SCENARIOS),
            package("cmd/kube-controller-manager/app", &[]),
            package("plugin/pkg/auth/authorizer/rbac/bootstrappolicy", &[]),
        ],
    },
    Module {
        path: "k8s.io/api",
        scheme: VersionScheme::Staging,
        packages: &[package("autoscaling", &["hpa/conversion", "localkube/protobuf"])],
    },
    Module {
        path: "k8s.io/apimachinery",
        scheme: VersionScheme::Staging,
        packages: &[
            package("pkg/api/resource", &["metrics/quantity"]),
            package("pkg/labels", &["metrics/selector"]),
        ],
    },
    Module {
        path: "k8s.io/metrics",
        scheme: VersionScheme::Staging,
        packages: &[package("pkg", &["metrics/resource_api", "metrics/custom_api"])],
    },
    Module {
        path: "k8s.io/client-go",
        scheme: VersionScheme::Staging,
        packages: &[package("scale", &[]), package("tools/leaderelection", &[])],
    },
];

const KEDA: &[Module] = &[Module {
    path: "github.com/kedacore/keda/v2",
    scheme: VersionScheme::Release,
    packages: &[
        package("apis", &["keda/webhook", "keda/hpa_for_scaledobject"]),
        package("cmd", &[]),
        package("config/crd/bases", &["keda/webhook"]),
        package("config/rbac", &[]),
        package("controllers", &["keda/hpa_for_scaledobject", "keda/scaledjob"]),
        package("pkg/certificates", &[]),
        package("pkg/common", &[]),
        package("pkg/eventemitter", &[]),
        package("pkg/eventreason", &["keda/executor", "keda/poll", "keda/scaledjob"]),
        package("pkg/fallback", &["keda/fallback"]),
        package("pkg/k8s", &[]),
        package("pkg/metricscollector", &[]),
        package("pkg/metricsservice", &[]),
        package("pkg/provider", &[]),
        package("pkg/scalers", &["keda/metric_specs", "keda/cron"]),
        package("pkg/scaling/cache", &["keda/poll"]),
        package("pkg/scaling/executor", &["keda/executor", "keda/scaledjob"]),
        package("pkg/scaling/modifiers", &["keda/modifiers"]),
        package("pkg/scaling/resolver", &["keda/metric_specs"]),
        package("pkg/scaling/scaledjob", &["keda/scaledjob"]),
        package("pkg/scaling", &["keda/poll"]),
        package("pkg/status", &["keda/executor"]),
        package("pkg/util", &[]),
        package("version", &[]),
    ],
}];

impl Upstream {
    pub(super) fn modules(self) -> &'static [Module] {
        match self {
            Self::Kubernetes => KUBERNETES,
            Self::Keda => KEDA,
        }
    }
}

impl Module {
    /// The version of the module in a release.
    pub(super) fn version(&self, release: &str) -> String {
        let release = release.trim_start_matches('v');
        match self.scheme {
            VersionScheme::Release => format!("v{release}"),
            VersionScheme::Staging => {
                format!("v0.{}", release.split_once('.').map_or(release, |(_, rest)| rest))
            }
        }
    }
}

/// The package of a file: the one with the longest folder.
pub(super) fn package_of<'a>(packages: &'a [WatchedPackage], path: &str) -> Option<&'a WatchedPackage> {
    let holds = |package: &&WatchedPackage| {
        path.strip_prefix(package.folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    packages.iter().filter(holds).max_by_key(|package| package.folder.len())
}
