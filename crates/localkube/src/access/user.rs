//! Users of the API.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use serde_json::{Map, Value, json};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::pki::{ADMIN, MASTERS};

/// A user of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Distinguishes users of the same name over time.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The name of unauthenticated users.
pub(super) const ANONYMOUS: &str = "system:anonymous";

/// The group of all authenticated users.
pub(super) const AUTHENTICATED: &str = "system:authenticated";

const UNAUTHENTICATED: &str = "system:unauthenticated";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

impl User {
    fn of(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The API server itself.
    pub fn system() -> Self {
        Self::of("system:apiserver", &[MASTERS, AUTHENTICATED])
    }

    /// The administrator.
    pub fn admin() -> Self {
        Self::of(ADMIN, &[MASTERS, AUTHENTICATED])
    }

    /// The unauthenticated user.
    pub fn anonymous() -> Self {
        Self::of(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let group = format!("system:serviceaccounts:{namespace}");
        let groups = ["system:serviceaccounts", &group, AUTHENTICATED];
        Self::of(&format!("system:serviceaccount:{namespace}:{name}"), &groups)
    }

    /// The user of a certificate (DER): its common name, with its organizations as groups.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let organizations = subject.iter_organization().filter_map(|o| o.as_str().ok());
        let groups = organizations.chain([AUTHENTICATED]).map(str::to_owned).collect();
        let hash = digest::digest(&digest::SHA256, der)
            .as_ref()
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        Some(Self { name, groups, ..Self::default() }.with_credential(&format!("X509SHA256={hash}")))
    }

    pub(super) fn with_credential(mut self, id: &str) -> Self {
        self.extra.insert(CREDENTIAL_ID.to_owned(), vec![id.to_owned()]);
        self
    }

    /// Whether the user is a member of a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The `UserInfo` object.
    pub fn to_json(&self) -> Value {
        let mut info = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(field.to_owned(), json!(text));
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}
