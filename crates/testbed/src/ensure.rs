//! The paths of programs, which are built or fetched first if they are missing.

use std::path::PathBuf;

use crate::cache::Cache;
use crate::error::Error;
use crate::parts::{
    ETCD, HELM, KEDA, KEDA_RELEASES, METRICS_SERVER, PEERS, PROMETHEUS, PROMETHEUS_ADAPTER, Part,
};
use crate::progress::Progress;
use crate::release::Release;

/// The programs of a control plane.
#[derive(Debug, Clone)]
pub struct Parts {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
}

/// The programs of Prometheus.
#[derive(Debug, Clone)]
pub struct Prometheus {
    /// The Prometheus server.
    pub prometheus: PathBuf,
    /// promtool, which checks rules and queries.
    pub promtool: PathBuf,
}

/// The programs with which Plimsoll is compared, and Helm.
#[derive(Debug, Clone)]
pub struct Peers {
    /// metrics-server, which serves `metrics.k8s.io`.
    pub metrics_server: PathBuf,
    /// prometheus-adapter, which serves `custom.metrics.k8s.io` and `external.metrics.k8s.io` from Prometheus.
    pub prometheus_adapter: PathBuf,
    /// KEDA's operator.
    pub keda_operator: PathBuf,
    /// KEDA's server of `external.metrics.k8s.io`.
    pub keda_adapter: PathBuf,
    /// KEDA's admission webhooks.
    pub keda_webhooks: PathBuf,
    /// Helm, for charts.
    pub helm: PathBuf,
}

/// Helm, which renders and checks our chart.
#[derive(Debug, Clone)]
pub struct Helm {
    /// The path of the program.
    pub helm: PathBuf,
}

impl Helm {
    /// Builds Helm if it is missing, and returns its path.
    pub fn ensure() -> Result<Self, Error> {
        let folder = Cache::of_user()?.ensure(&HELM, &mut Progress::stderr())?;
        Ok(Self { helm: folder.join("helm") })
    }
}

/// The programs of one release of KEDA.
#[derive(Debug, Clone)]
pub struct KedaPrograms {
    /// The operator.
    pub operator: PathBuf,
    /// The server of `external.metrics.k8s.io`.
    pub adapter: PathBuf,
    /// The admission webhooks.
    pub webhooks: PathBuf,
}

impl KedaPrograms {
    /// Builds a release if it is missing, and returns the paths. Each release has a folder of its own in the cache.
    pub fn ensure(release: &str) -> Result<Self, Error> {
        Self::ensure_in(&Cache::of_user()?, release, &mut Progress::stderr())
    }

    /// Does the same with another cache and progress output.
    pub fn ensure_in(cache: &Cache, release: &str, progress: &mut Progress) -> Result<Self, Error> {
        let folder = cache.ensure(Self::part(release)?, progress)?;
        Ok(Self {
            operator: folder.join("keda-operator"),
            adapter: folder.join("keda-adapter"),
            webhooks: folder.join("keda-webhooks"),
        })
    }

    /// Returns an error if a release is missing; nothing is built.
    pub fn require_in(cache: &Cache, release: &str) -> Result<(), Error> {
        cache.require(Self::part(release)?, &format!("--keda {release}"))
    }

    fn part(release: &str) -> Result<&'static Part, Error> {
        let part = KEDA_RELEASES.iter().find(|part| part.version == release);
        part.ok_or_else(|| Error::UnknownRelease {
            name: "KEDA",
            release: release.to_owned(),
            known: KEDA_RELEASES.map(|part| part.version).join(", "),
        })
    }
}

impl Parts {
    /// Builds missing programs (for minutes, the first time on a machine), reports progress on standard error, and returns the paths.
    pub fn ensure() -> Result<Self, Error> {
        Self::ensure_in(&Cache::of_user()?, &mut Progress::stderr())
    }

    /// Does the same with another cache and progress output.
    pub fn ensure_in(cache: &Cache, progress: &mut Progress) -> Result<Self, Error> {
        Self::of_release(Release::chosen()?, cache, progress)
    }

    /// Returns an error if a program of this release is missing; nothing is built.
    pub fn require_in(cache: &Cache, release: Release) -> Result<(), Error> {
        let arguments = format!("--kubernetes {release}");
        cache.require(&ETCD, &arguments)?;
        cache.require(release.part, &arguments)
    }

    /// Does the same with the programs of this release of Kubernetes.
    pub fn of_release(release: Release, cache: &Cache, progress: &mut Progress) -> Result<Self, Error> {
        let etcd = cache.ensure(&ETCD, progress)?;
        let kubernetes = cache.ensure(release.part, progress)?;
        Ok(Self {
            etcd: etcd.join("etcd"),
            kube_apiserver: kubernetes.join("kube-apiserver"),
            kube_controller_manager: kubernetes.join("kube-controller-manager"),
            kubectl: kubernetes.join("kubectl"),
        })
    }
}

impl Prometheus {
    /// Fetches Prometheus if it is missing, and returns the paths.
    pub fn ensure() -> Result<Self, Error> {
        Self::ensure_in(&Cache::of_user()?, &mut Progress::stderr())
    }

    /// Does the same with another cache and progress output.
    pub fn ensure_in(cache: &Cache, progress: &mut Progress) -> Result<Self, Error> {
        let folder = cache.ensure(&PROMETHEUS, progress)?;
        Ok(Self { prometheus: folder.join("prometheus"), promtool: folder.join("promtool") })
    }
}

impl Peers {
    /// Builds missing programs (for a quarter of an hour, the first time on a machine), and returns the paths.
    pub fn ensure() -> Result<Self, Error> {
        Self::ensure_in(&Cache::of_user()?, &mut Progress::stderr())
    }

    /// The paths if all programs are built already; nothing is built.
    pub fn built() -> Result<Option<Self>, Error> {
        let cache = Cache::of_user()?;
        match PEERS.iter().try_for_each(|part| cache.require(part, "--peers")) {
            Ok(()) => Self::ensure_in(&cache, &mut Progress::stderr()).map(Some),
            Err(Error::NotBuilt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Does the same as [`Peers::ensure`] with another cache and progress output.
    pub fn ensure_in(cache: &Cache, progress: &mut Progress) -> Result<Self, Error> {
        let keda = cache.ensure(&KEDA, progress)?;
        Ok(Self {
            metrics_server: cache.ensure(&METRICS_SERVER, progress)?.join("metrics-server"),
            prometheus_adapter: cache.ensure(&PROMETHEUS_ADAPTER, progress)?.join("prometheus-adapter"),
            keda_operator: keda.join("keda-operator"),
            keda_adapter: keda.join("keda-adapter"),
            keda_webhooks: keda.join("keda-webhooks"),
            helm: cache.ensure(&HELM, progress)?.join("helm"),
        })
    }
}
