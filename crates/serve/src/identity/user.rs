//! A user of the API.

use std::collections::BTreeMap;

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra fields.
    pub extra: BTreeMap<String, Vec<String>>,
}

const AUTHENTICATED: &str = "system:authenticated";

impl User {
    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the user was not authenticated.
    pub(crate) fn is_anonymous(&self) -> bool {
        !self.is_in(AUTHENTICATED)
    }

    /// Adds `system:authenticated`, except for an anonymous user whom the front proxy names.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && self.name != "system:anonymous" {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
