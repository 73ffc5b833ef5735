//! Resolution of target references (docs/spec/keda.md 2.5).

use std::fmt;

/// A resolved scale target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Group; empty for the core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Why a reference cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The group and version are invalid.
    #[error("unexpected GroupVersion string: {0}")]
    GroupVersion(String),
    /// The cluster has no such kind.
    #[error("no matches for kind {} in version {}", api::gotext::quote(kind), api::gotext::quote(version))]
    NoMatch {
        /// The kind.
        kind: String,
        /// Group and version.
        version: String,
    },
}

impl Target {
    /// Parses a reference; an empty version means `apps/v1`, an empty kind Deployment.
    pub fn parse(api_version: &str, kind: &str, name: &str) -> Result<Self, TargetError> {
        let api_version = if api_version.is_empty() { "apps/v1" } else { api_version };
        let kind = if kind.is_empty() { "Deployment" } else { kind };
        let (group, version) = match api_version.split_once('/') {
            None => ("", api_version),
            Some(("", "")) => ("", ""),
            Some((_, rest)) if rest.contains('/') => {
                return Err(TargetError::GroupVersion(api_version.to_owned()));
            }
            Some(both) => both,
        };
        let own = str::to_owned;
        Ok(Self { group: own(group), version: own(version), kind: own(kind), name: own(name) })
    }

    /// `apps/v1`; `v1` in the core.
    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for Target {
    /// `apps/v1.Deployment`; `/v1.Pod` in the core.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.{}", self.group, self.version, self.kind)
    }
}
