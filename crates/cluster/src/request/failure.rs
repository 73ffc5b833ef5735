//! What an error of the API server means, for a diagnosis.

use engine::failure::{DeniedAccess, RequestFailure};

use super::ApiError;

impl ApiError {
    /// The class of this error.
    pub fn failure(&self) -> RequestFailure {
        match self.code {
            None => RequestFailure::Unreachable,
            Some(401) => RequestFailure::Unauthorized,
            Some(403) => RequestFailure::Forbidden(denied(&self.message)),
            Some(404) if self.is_status => RequestFailure::NotFound,
            Some(404) => RequestFailure::NotServed,
            Some(429) => RequestFailure::TooManyRequests,
            Some(502 | 503) => RequestFailure::Unavailable,
            Some(504) => RequestFailure::Timeout,
            Some(code) => RequestFailure::Refused(code),
        }
    }
}

/// The parts of a refusal of kube-apiserver's authorizer:
/// `User "u" cannot get resource "deployments/scale" in API group "apps" in the namespace "n"`. Parts that are missing stay empty.
fn denied(message: &str) -> DeniedAccess {
    let quoted = |before: &str| {
        let (_, rest) = message.split_once(before)?;
        rest.split('"').next().map(str::to_owned)
    };
    let verb = message.split_once(" cannot ").and_then(|(_, rest)| rest.split(' ').next());
    DeniedAccess {
        user: quoted("User \"").unwrap_or_default(),
        verb: verb.unwrap_or_default().to_owned(),
        resource: quoted(" resource \"").unwrap_or_default(),
        group: quoted(" API group \"").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_names_user_verb_and_resource() {
        let message = "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:plimsoll:controller\" cannot get \
                       resource \"deployments/scale\" in API group \"apps\" in the namespace \"shop\"";
        let expected = DeniedAccess {
            user: "system:serviceaccount:plimsoll:controller".into(),
            verb: "get".into(),
            resource: "deployments/scale".into(),
            group: "apps".into(),
        };
        assert_eq!(denied(message), expected);
        assert_eq!(denied("Forbidden"), DeniedAccess::default());
    }

    #[test]
    fn not_found_without_a_status_means_not_served() {
        let error =
            |code, is_status| ApiError { code: Some(code), is_status, ..ApiError::unanswered(String::new()) };
        assert_eq!(error(404, true).failure(), RequestFailure::NotFound);
        assert_eq!(error(404, false).failure(), RequestFailure::NotServed);
        assert_eq!(error(503, true).failure(), RequestFailure::Unavailable);
        assert_eq!(ApiError::unanswered(String::new()).failure(), RequestFailure::Unreachable);
    }
}
