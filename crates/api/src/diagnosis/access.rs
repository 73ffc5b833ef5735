//! Denied access: which verb on which resource for whom.

use engine::failure::DeniedAccess;

use super::{Concern, Described};

/// A request that authorization denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCause {
    /// What was denied.
    pub denied: DeniedAccess,
    /// What cannot be read or written because of it: `the target's scale`.
    pub subject: String,
}

impl Described for AccessCause {
    fn id(&self) -> &'static str {
        "rbac-missing"
    }

    fn concern(&self) -> Concern {
        Concern::Problem
    }

    fn sentence(&self) -> String {
        let DeniedAccess { user, verb, .. } = &self.denied;
        let user = if user.is_empty() { "the controller" } else { user };
        format!("{} is not accessible: {user} may not {verb} {}", self.subject, self.resource())
    }

    fn remedy(&self) -> String {
        let DeniedAccess { user, verb, resource, group } = &self.denied;
        let mut parts = user.split(':').skip(2);
        let subject = match (parts.next(), parts.next()) {
            (Some(namespace), Some(name)) => format!("service account {name} in {namespace}"),
            _ => "the controller's user".to_owned(),
        };
        format!(
            "add a rule to the role of {subject}: apiGroups [\"{group}\"], resources [\"{resource}\"], verbs [\"{verb}\"]"
        )
    }
}

impl AccessCause {
    /// `deployments/scale in apps`.
    fn resource(&self) -> String {
        let DeniedAccess { resource, group, .. } = &self.denied;
        if group.is_empty() { resource.clone() } else { format!("{resource} in {group}") }
    }
}
