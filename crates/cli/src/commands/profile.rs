//! `--kubernetes-profile` of commands that read files.

use engine::KubernetesVersion;

use crate::failure::{CommandResult, Failure};

/// The option, for files: there is no cluster that could say its release.
#[derive(clap::Args)]
pub(crate) struct KubernetesProfileArg {
    /// Release of Kubernetes whose behavior is reproduced for files: 1.36 or 1.37 [1.36].
    #[arg(long, value_name = "VERSION")]
    kubernetes_profile: Option<KubernetesVersion>,
}

impl KubernetesProfileArg {
    /// The chosen release.
    pub(crate) fn version(&self) -> KubernetesVersion {
        self.kubernetes_profile.unwrap_or_default()
    }

    /// An error if the option is given for objects of a cluster.
    pub(crate) fn only_for_files(&self) -> CommandResult {
        match self.kubernetes_profile {
            None => Ok(()),
            Some(_) => Err(Failure::input(
                "--kubernetes-profile is for files; on a cluster, the profile of its controller decides",
            )),
        }
    }
}
