//! The release of KEDA whose behavior is reproduced.

use std::fmt;
use std::str::FromStr;

/// The release of KEDA whose behavior is reproduced (`--keda-profile`), where releases differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KedaProfile {
    /// KEDA 2.20.
    #[default]
    V2_20,
    /// KEDA 2.21.
    V2_21,
}

impl KedaProfile {
    /// All profiles, oldest first.
    pub const ALL: [Self; 2] = [Self::V2_20, Self::V2_21];

    /// The profile of a release such as `2.21.0`; none for releases that are not known here.
    pub fn of_release(release: &str) -> Option<Self> {
        let of_it = |profile: &Self| {
            release.strip_prefix(profile.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        Self::ALL.into_iter().find(of_it)
    }

    /// The release as in `--keda-profile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2_20 => "2.20",
            Self::V2_21 => "2.21",
        }
    }
}

impl fmt::Display for KedaProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A release that is not known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a known release of KEDA: 2.20 or 2.21")]
pub struct UnknownProfile(String);

impl FromStr for KedaProfile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|profile| profile.name() == text);
        known.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_others_refused() {
        for profile in KedaProfile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert_eq!(KedaProfile::of_release("2.21.0"), Some(KedaProfile::V2_21));
        assert_eq!(KedaProfile::of_release("2.20"), Some(KedaProfile::V2_20));
        assert_eq!(KedaProfile::of_release("2.210.0"), None);
        assert!("2.19".parse::<KedaProfile>().is_err());
        assert!(KedaProfile::V2_20 < KedaProfile::V2_21);
    }
}
