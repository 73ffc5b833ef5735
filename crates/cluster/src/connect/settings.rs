//! Finds and reads the kubeconfig, and explains what is wrong with it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::kubeconfig::{self, KubeconfigFileError};
use super::{ConnectError, ConnectTarget};

/// How many contexts a message lists at most.
const MAX_LISTED_CONTEXTS: usize = 10;

/// A client configuration and where it came from.
#[derive(Debug)]
pub(super) struct LoadedConfig {
    pub(super) config: Config,
    pub(super) origin: String,
}

/// The environment of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessEnvironment {
    /// `KUBECONFIG`.
    pub(super) kubeconfig: Option<OsString>,
    /// The home directory.
    pub(super) home: Option<PathBuf>,
    /// Whether the process runs in a pod.
    pub(super) in_pod: bool,
}

/// Where the configuration is read from.
enum ConfigSource {
    Files(Vec<PathBuf>),
    Pod,
}

impl ProcessEnvironment {
    pub(super) fn here() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()),
            home: std::env::home_dir(),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }

    /// A path with `~` for the home directory.
    fn shown(&self, path: &Path) -> String {
        let below_home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        below_home.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()))
    }

    fn all_shown(&self, paths: &[PathBuf]) -> String {
        paths.iter().map(|path| self.shown(path)).collect::<Vec<_>>().join(":")
    }
}

/// Finds and reads the configuration of `target`.
pub(super) async fn load(
    target: &ConnectTarget,
    around: &ProcessEnvironment,
) -> Result<LoadedConfig, ConnectError> {
    match find(target, around)? {
        ConfigSource::Pod if target.context.is_some() => Err(ConnectError::new(
            "cannot choose a context: there is no kubeconfig, only the service account of the pod",
            &[],
            "leave --context out, or name a file with --kubeconfig",
        )),
        ConfigSource::Pod => in_pod(),
        ConfigSource::Files(paths) => from_files(&paths, target, around).await,
    }
}

fn find(target: &ConnectTarget, around: &ProcessEnvironment) -> Result<ConfigSource, ConnectError> {
    if let Some(path) = &target.kubeconfig {
        return Ok(ConfigSource::Files(vec![path.clone()]));
    }
    let listed: Vec<PathBuf> = around.kubeconfig.iter().flat_map(std::env::split_paths).collect();
    let listed: Vec<PathBuf> = listed.into_iter().filter(|path| !path.as_os_str().is_empty()).collect();
    if !listed.is_empty() {
        // As in kubectl, missing files are skipped.
        let there: Vec<PathBuf> = listed.iter().filter(|path| path.exists()).cloned().collect();
        if there.is_empty() {
            return Err(ConnectError::new(
                &format!("cannot find a cluster: {} does not exist", around.all_shown(&listed)),
                &[("kubeconfig", "named by the environment variable KUBECONFIG")],
                "correct or unset KUBECONFIG, or name a file with --kubeconfig",
            ));
        }
        return Ok(ConfigSource::Files(there));
    }
    let usual = around.home.as_ref().map(|home| home.join(".kube").join("config"));
    match usual {
        Some(path) if path.exists() => Ok(ConfigSource::Files(vec![path])),
        _ if around.in_pod => Ok(ConfigSource::Pod),
        _ => Err(ConnectError::new(
            "cannot find a cluster: there is no kubeconfig",
            &[(
                "looked at",
                "KUBECONFIG (not set), ~/.kube/config (not there), service account (not in a pod)",
            )],
            "name a file with --kubeconfig or KUBECONFIG; `plimsoll up` starts a local cluster",
        )),
    }
}

fn in_pod() -> Result<LoadedConfig, ConnectError> {
    let mut config = Config::incluster().map_err(|error| {
        ConnectError::new(
            &format!("cannot use the service account of the pod: {error}"),
            &[],
            "let the pod mount its token (automountServiceAccountToken: true), or name a file with --kubeconfig",
        )
    })?;
    let namespace = config.default_namespace.trim().to_owned();
    config.default_namespace = namespace;
    Ok(LoadedConfig { config, origin: "service account of the pod".to_owned() })
}

async fn from_files(
    paths: &[PathBuf],
    target: &ConnectTarget,
    around: &ProcessEnvironment,
) -> Result<LoadedConfig, ConnectError> {
    let mut all = Kubeconfig::default();
    for path in paths {
        let shown = around.shown(path);
        let read = kubeconfig::read(path).map_err(|error| unreadable(&shown, &error))?;
        all = all.merge(read).map_err(|error| unreadable(&shown, &KubeconfigFileError::from(error)))?;
    }
    let shown = around.all_shown(paths);
    let context = chosen(&all, target.context.as_deref(), &shown)?;
    let origin = format!("{shown}, context {context}");
    let wrong = |what: String, remedy: &str| ConnectError::new(&what, &[("kubeconfig", &origin)], remedy);

    let cluster = all.contexts.iter().find(|known| known.name == context).and_then(|c| c.context.as_ref());
    let cluster = cluster.map(|context| context.cluster.clone()).unwrap_or_default();
    let known = all.clusters.iter().find(|known| known.name == cluster).and_then(|c| c.cluster.clone());
    if known.as_ref().is_some_and(|known| known.proxy_url.as_ref().is_some_and(|url| !url.is_empty())) {
        let what = format!("cannot reach cluster `{cluster}`: proxies (proxy-url) are not supported");
        return Err(wrong(what, "remove proxy-url, or forward the port and set `server` to it"));
    }
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(all, &options).await.map_err(|error| match error {
        KubeconfigError::LoadClusterOfContext(name) => wrong(
            format!("context `{context}` names cluster `{name}`, which is not there"),
            "add the cluster, or choose another context with --context",
        ),
        KubeconfigError::MissingClusterUrl => {
            wrong(format!("cluster `{cluster}` has no server"), "add `server: https://…` to the cluster")
        }
        error => wrong(
            format!("cannot use context `{context}`: {error}"),
            "correct the kubeconfig, or choose another context with --context",
        ),
    })?;
    if config.cluster_url.scheme().is_none() {
        // As in kubectl, certificates imply TLS.
        let scheme = if config.root_cert.is_some() || config.accept_invalid_certs { "https" } else { "http" };
        if let Ok(url) = format!("{scheme}://{}", config.cluster_url).parse() {
            config.cluster_url = url;
        }
    }
    Ok(LoadedConfig { config, origin })
}

/// The context to use.
fn chosen(all: &Kubeconfig, wanted: Option<&str>, shown: &str) -> Result<String, ConnectError> {
    let names: Vec<&str> = all.contexts.iter().map(|context| context.name.as_str()).collect();
    let known = match names.len() {
        0 => "none".to_owned(),
        n if n > MAX_LISTED_CONTEXTS => format!(
            "{} and {} more",
            names.iter().take(MAX_LISTED_CONTEXTS).copied().collect::<Vec<_>>().join(", "),
            n - MAX_LISTED_CONTEXTS
        ),
        _ => names.join(", "),
    };
    let facts = [("kubeconfig", shown), ("contexts", known.as_str())];
    let Some(name) = wanted.or(all.current_context.as_deref()).filter(|name| !name.is_empty()) else {
        let remedy = "choose one with --context, or set it: kubectl config use-context NAME";
        return Err(ConnectError::new("the kubeconfig has no current context", &facts, remedy));
    };
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    let meant = api::yaml::nearest(name, names.iter().copied());
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let what = format!("there is no context `{name}`{meant}");
    let remedy = if wanted.is_some() {
        "choose one of them with --context"
    } else {
        "choose one with --context, or set it: kubectl config use-context NAME"
    };
    Err(ConnectError::new(&what, &facts, remedy))
}

fn unreadable(shown: &str, error: &KubeconfigFileError) -> ConnectError {
    let (what, remedy) = match error {
        KubeconfigFileError::Read(source) => {
            let remedy = match source.kind() {
                io::ErrorKind::NotFound => "check the path, or leave it out to use ~/.kube/config",
                io::ErrorKind::PermissionDenied => "make the file readable for the user that runs plimsoll",
                _ => "check the file",
            };
            let why = super::explain::io_text(source);
            (format!("cannot read kubeconfig {shown}: {why}"), remedy)
        }
        KubeconfigFileError::Invalid { .. } => (
            format!("{shown}:{error}"),
            "correct the YAML there, and quote a number or `yes` that is meant as text; `kubectl config view` reads it too",
        ),
        KubeconfigFileError::Merge(error) => {
            (format!("cannot use kubeconfig {shown}: {error}"), "correct the file")
        }
    };
    ConnectError::new(&what, &[], remedy)
}
