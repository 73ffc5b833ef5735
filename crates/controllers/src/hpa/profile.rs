//! Which release of Kubernetes is reproduced: a fixed one, or the one that the API server names at `/version`.

use std::str::FromStr;
use std::time::Duration;

use cluster::request::{self, ApiError, Request};
use engine::KubernetesVersion;
use engine::profile::UnknownKubernetesVersion;
use kube::Client;
use serde::Deserialize;

/// The release to reproduce (`--kubernetes-profile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileChoice {
    /// The release of the API server, also after an upgrade.
    Auto,
    /// This release, whatever the API server says.
    Fixed(KubernetesVersion),
}

/// The text is neither `auto` nor a release.
#[derive(Debug, thiserror::Error)]
#[error("{0} or auto")]
pub struct UnknownProfileChoice(#[from] UnknownKubernetesVersion);

/// Why the release of the API server is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VersionError {
    #[error(transparent)]
    Request(#[from] ApiError),
    #[error("failed to decode /version: {0}")]
    Json(#[from] serde_json::Error),
    #[error("/version has no minor version: {0:?}")]
    Minor(String),
}

/// The release in force and releases that were read since. API servers of several releases may answer while a control plane is
/// upgraded, and each change of the profile rewrites every status, so that a change needs several reads that agree.
#[derive(Debug)]
pub(crate) struct ReleaseTracker {
    current: KubernetesVersion,
    /// A release other than the current one, and how often it was read in a row.
    candidate: Option<(KubernetesVersion, u32)>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServerVersion {
    minor: String,
    /// The release that the API server emulates, whose feature gates count.
    emulation_minor: String,
}

/// The deadline of reading `/version`.
const VERSION_DEADLINE: Duration = Duration::from_secs(10);
/// How many reads in a row must name a newer release: Kubernetes upgrades its controllers after its API servers.
const READS_OF_NEWER_RELEASE: u32 = 3;
/// How many reads in a row must name an older release, which is rare: a control plane that was rolled back.
const READS_OF_OLDER_RELEASE: u32 = 10;

impl FromStr for ProfileChoice {
    type Err = UnknownProfileChoice;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(Self::Auto) } else { Ok(Self::Fixed(text.parse()?)) }
    }
}

impl ReleaseTracker {
    pub(crate) fn new(current: KubernetesVersion) -> Self {
        Self { current, candidate: None }
    }

    /// Counts a read; returns the release if it is to be reproduced from now on.
    pub(crate) fn read(&mut self, version: KubernetesVersion) -> Option<KubernetesVersion> {
        if version == self.current {
            self.candidate = None;
            return None;
        }
        let before =
            self.candidate.filter(|(candidate, _)| *candidate == version).map_or(0, |(_, reads)| reads);
        let reads = before + 1;
        let needed = if version > self.current { READS_OF_NEWER_RELEASE } else { READS_OF_OLDER_RELEASE };
        if reads < needed {
            self.candidate = Some((version, reads));
            return None;
        }
        *self = Self::new(version);
        Some(version)
    }
}

/// Reads the release of the API server.
pub(crate) async fn release_of_server(client: &Client) -> Result<KubernetesVersion, VersionError> {
    let answer = request::send(client, Request::get("/version", "version", VERSION_DEADLINE)).await?;
    let ServerVersion { minor, emulation_minor } = serde_json::from_slice(&answer)?;
    let minor = if emulation_minor.is_empty() { minor } else { emulation_minor };
    KubernetesVersion::of_minor(&minor).ok_or(VersionError::Minor(minor))
}

/// Reads the release of the API server again and again, and reports each change.
pub(crate) async fn follow_release(
    client: Client,
    interval: Duration,
    mut tracker: ReleaseTracker,
    changed: impl Fn(KubernetesVersion),
) {
    loop {
        tokio::time::sleep(interval).await;
        match release_of_server(&client).await {
            Ok(version) => {
                if let Some(version) = tracker.read(version) {
                    changed(version);
                }
            }
            // The watches report an API server that does not answer.
            Err(error) => tracing::debug!(%error, "failed to read the release of the API server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use KubernetesVersion::{V1_36, V1_37};

    use super::*;

    #[test]
    fn choices_are_parsed() {
        let parse = |text: &str| text.parse::<ProfileChoice>().map_err(|error| error.to_string());
        assert_eq!(parse("auto"), Ok(ProfileChoice::Auto));
        assert_eq!(parse("1.37"), Ok(ProfileChoice::Fixed(V1_37)));
        assert_eq!(
            parse("1.2"),
            Err("unknown release \"1.2\" of Kubernetes; write 1.36 or 1.37 or auto".to_owned())
        );
    }

    #[test]
    fn an_upgrade_is_followed_once_reads_agree() {
        let mut tracker = ReleaseTracker::new(V1_36);
        assert_eq!(tracker.read(V1_36), None);
        let reads: Vec<_> = (0..READS_OF_NEWER_RELEASE).map(|_| tracker.read(V1_37)).collect();
        assert_eq!(reads, [None, None, Some(V1_37)]);
        assert_eq!(tracker.read(V1_37), None);
    }

    #[test]
    fn api_servers_of_two_releases_do_not_change_the_profile_back_and_forth() {
        let mut tracker = ReleaseTracker::new(V1_36);
        let mut changes = Vec::new();
        for round in 0..100 {
            changes.extend(tracker.read(if round % 2 == 0 { V1_37 } else { V1_36 }));
        }
        assert_eq!(changes, [], "alternating answers");
        // Mostly new ones: the profile changes once.
        for round in 0..100 {
            changes.extend(tracker.read(if round % 5 == 0 { V1_36 } else { V1_37 }));
        }
        assert_eq!(changes, [V1_37]);
        for _ in 0..READS_OF_OLDER_RELEASE {
            changes.extend(tracker.read(V1_36));
        }
        assert_eq!(changes, [V1_37, V1_36], "rolled back");
    }
}
