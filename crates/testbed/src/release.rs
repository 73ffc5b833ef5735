//! The release of Kubernetes that the testbed runs, and that localkube serves beside it.

use std::fmt;
use std::str::FromStr;

use localkube::KubernetesVersion;

use crate::parts::{KUBERNETES, KUBERNETES_1_37, Part};

/// The environment variable with the release for tests: `1.36.4` or `1.37.1`.
pub const RELEASE_VARIABLE: &str = "PLIMSOLL_KUBERNETES";

/// A release that can be built.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The programs of the release.
    pub part: &'static Part,
    /// The minor version.
    pub kubernetes: KubernetesVersion,
}

/// The error for a release that the testbed cannot build.
#[derive(Debug, thiserror::Error)]
#[error("there is no Kubernetes {0:?} here; write {known}", known = known())]
pub struct UnknownRelease(String);

/// All releases, the default first.
const RELEASES: [Release; 2] = [
    Release { part: &KUBERNETES, kubernetes: KubernetesVersion::V1_36 },
    Release { part: &KUBERNETES_1_37, kubernetes: KubernetesVersion::V1_37 },
];

fn known() -> String {
    RELEASES.map(|release| release.part.version).join(" or ")
}

impl Release {
    /// The release of [`RELEASE_VARIABLE`], or the default.
    pub fn chosen() -> Result<Self, UnknownRelease> {
        match std::env::var(RELEASE_VARIABLE) {
            Ok(text) if !text.is_empty() => text.parse(),
            _ => Ok(Self::default()),
        }
    }

    /// Whether tests build it: each further release takes minutes.
    pub fn is_default(&self) -> bool {
        self.part.version == Self::default().part.version
    }
}

impl Default for Release {
    fn default() -> Self {
        let [first, _] = RELEASES;
        first
    }
}

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = RELEASES.into_iter().find(|release| release.part.version == text);
        found.ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.part.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_release_can_be_built() {
        for version in KubernetesVersion::ALL {
            let release = RELEASES.into_iter().find(|release| release.kubernetes == version).unwrap();
            assert_eq!(format!("v{release}"), version.profile().git_version);
            assert_eq!(release.to_string().parse::<Release>().unwrap().kubernetes, version);
        }
        assert_eq!(
            "1.35.0".parse::<Release>().unwrap_err().to_string(),
            "there is no Kubernetes \"1.35.0\" here; write 1.36.4 or 1.37.1"
        );
    }
}
