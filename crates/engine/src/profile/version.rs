//! A minor release of Kubernetes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A minor release of Kubernetes whose behavior is reproduced (`--kubernetes-profile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KubernetesVersion {
    /// 1.36.
    #[default]
    #[serde(rename = "1.36")]
    V1_36,
    /// 1.37.
    #[serde(rename = "1.37")]
    V1_37,
}

/// The text names no supported release.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown release {0:?} of Kubernetes; write {known}", known = known())]
pub struct UnknownKubernetesVersion(String);

fn known() -> String {
    KubernetesVersion::ALL.map(KubernetesVersion::as_str).join(" or ")
}

impl KubernetesVersion {
    /// All supported releases, oldest first.
    pub const ALL: [Self; 2] = [Self::V1_36, Self::V1_37];

    /// The release as in `--kubernetes-profile`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// The minor number.
    pub fn minor(self) -> u32 {
        match self {
            Self::V1_36 => 36,
            Self::V1_37 => 37,
        }
    }

    /// The supported release for a server that says `minor` at `/version`: the newest that is not newer than the server, or
    /// the oldest. Some providers append a `+`. `None` if it is not a number.
    pub fn of_minor(minor: &str) -> Option<Self> {
        let digits: &str = minor.split(|c: char| !c.is_ascii_digit()).next()?;
        let minor: u32 = digits.parse().ok()?;
        let found = Self::ALL.into_iter().rev().find(|version| version.minor() <= minor);
        Some(found.unwrap_or_default())
    }

    /// Whether this is the default release, which records leave out.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KubernetesVersion {
    type Err = UnknownKubernetesVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|version| version.as_str() == text);
        found.ok_or_else(|| UnknownKubernetesVersion(text.to_owned()))
    }
}
