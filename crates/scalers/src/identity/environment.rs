//! What the platform has set for this process.

use std::collections::BTreeMap;

/// The variables that are read: those that the clouds' own libraries read.
const VARIABLES: [&str; 16] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_ENDPOINT_URL_STS",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GCE_METADATA_HOST",
    "CLOUDSDK_CORE_PROJECT",
];

/// Variables and endpoints of this process.
#[derive(Clone)]
pub struct IdentityEnvironment {
    variables: BTreeMap<&'static str, String>,
    /// Where Google exchanges signed tokens.
    pub(super) google_token_url: String,
    /// Where Google exchanges tokens of other identity providers.
    pub(super) google_sts_url: String,
    /// Where Google lends the identity of a service account.
    pub(super) google_iam_url: String,
}

impl Default for IdentityEnvironment {
    /// The environment of this process; in tests an empty one, which leads nowhere.
    fn default() -> Self {
        if cfg!(test) {
            return Self::of(|name| (name == "GCE_METADATA_HOST").then(|| "127.0.0.1:1".to_owned()));
        }
        Self::of(|name| std::env::var(name).ok())
    }
}

impl IdentityEnvironment {
    /// The environment with these variables.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let found = VARIABLES.iter().filter_map(|name| Some((*name, variable(name)?)));
        Self {
            variables: found.filter(|(_, value)| !value.is_empty()).collect(),
            google_token_url: "https://oauth2.googleapis.com/token".to_owned(),
            google_sts_url: "https://sts.googleapis.com/v1/token".to_owned(),
            google_iam_url: "https://iamcredentials.googleapis.com".to_owned(),
        }
    }

    /// The value of a variable, if it is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}
