//! A user of the API.

use std::collections::BTreeMap;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// Name.
    pub name: String,
    /// What tells users of one name apart over time.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

const AUTHENTICATED: &str = "system:authenticated";

impl User {
    /// Whoever does not say who he is.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }

    /// Whether he belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// With the group of all who said who they are. The front proxy also speaks for those who did not.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && self.name != "system:anonymous" {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
