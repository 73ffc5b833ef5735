//! openstack-swift: the number of objects in a container of OpenStack Swift.

mod query;
#[cfg(test)]
mod tests;

use http::Method;

use crate::keystone::{KeystoneClient, KeystoneLogin, KeystoneSession, timeout};
use crate::prelude::*;

/// The scaler type `openstack-swift`.
pub const TYPE: ScalerType = ScalerType {
    name: "openstack-swift",
    about: "How many objects are in a container of OpenStack Swift.",
    display: "openstackSwiftScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "objects",
    build,
    samples: &[Sample::http(
        &[("swiftURL", "http://{}"), ("containerName", "c"), ("timeout", "1")],
        &[("authURL", "http://{}"), ("userID", "u"), ("password", sample::SECRET), ("projectID", "p")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of openstack-swift.
    pub struct Parameters of "error parsing swift metadata: error parsing openstack swift metadata" {
        /// URL of the account in Swift, e.g. `https://swift.example/v1/AUTH_project`; that of the service catalog if it is missing.
        swift_url: String = "swiftURL" in [Metadata];
        /// The container.
        container: String = "containerName" in [Metadata], required;
        /// Target number of objects per replica.
        object_count: i64 = "objectCount" in [Metadata], default "2";
        /// The trigger is active above this number of objects.
        activation: i64 = "activationObjectCount" in [Metadata], default "0";
        /// Part of the name of the metric. All objects of the container count, as in KEDA 2.20 and 2.21.
        prefix: String = "objectPrefix" in [Metadata];
        /// Has no effect.
        delimiter: String = "objectDelimiter" in [Metadata];
        /// Has no effect.
        limit: String = "objectLimit" in [Metadata];
        /// Timeout of requests, in seconds; 30 if it is missing.
        timeout: isize = "timeout" in [Metadata];
        /// Has no effect.
        only_files: bool = "onlyFiles" in [Metadata], default "false";
        /// URL of Keystone.
        auth_url: String = "authURL" in [Authentication], required;
        /// The user.
        user_id: String = "userID" in [Authentication];
        /// Password of the user.
        password: Secret = "password" in [Authentication];
        /// Project of the user.
        project_id: String = "projectID" in [Authentication];
        /// An application credential, instead of a user.
        credential_id: String = "appCredentialID" in [Authentication];
        /// Secret of the application credential.
        credential_secret: Secret = "appCredentialSecret" in [Authentication];
        /// The region in the service catalog.
        region: String = "regionName" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if !self.user_id.is_empty() {
            if self.password.reveal().is_empty() {
                return Err("password must be specified when using userID".into());
            }
            if self.project_id.is_empty() {
                return Err("projectID must be specified when using userID".into());
            }
            return Ok(());
        }
        if self.credential_id.is_empty() {
            return Err("either userID or appCredentialID must be specified".into());
        }
        if self.credential_secret.reveal().is_empty() {
            return Err("appCredentialSecret must be specified when using appCredentialID".into());
        }
        Ok(())
    }

    fn login(&self) -> KeystoneLogin<'_> {
        let Self { user_id, password, project_id, credential_id, credential_secret, .. } = self;
        if credential_id.is_empty() || credential_secret.reveal().is_empty() {
            return KeystoneLogin::Password { user_id, password, project_id };
        }
        KeystoneLogin::ApplicationCredential { id: credential_id, secret: credential_secret }
    }
}

/// A container and the login for it.
struct SwiftContainer {
    /// URL of the account; that of the service catalog if it is empty.
    swift_url: String,
    container: String,
    keystone: KeystoneClient,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let mut name = format!("openstack-swift-{}", parameters.container);
    if !parameters.prefix.is_empty() {
        name = format!("{name}-{}", parameters.prefix);
    }
    let spec = external(trigger, &name, whole(parameters.object_count));
    let (activation, within) = (parameters.activation as f64, timeout(parameters.timeout));
    let service = ("object-store", &*parameters.region);
    let keystone = KeystoneClient::new(&parameters.auth_url, parameters.login(), service, within);
    let Parameters { swift_url, container, .. } = parameters;
    let web = Arc::clone(&backends.web);
    SingleMetricScaler::build(
        spec,
        activation,
        SwiftContainer { swift_url, container, keystone, within, web },
    )
}

impl SwiftContainer {
    fn call(&self, session: &KeystoneSession) -> Result<HttpCall, ScalerError> {
        let base = match &*self.swift_url {
            "" => session.service_url.as_deref().ok_or_else(|| {
                scaler_error!(
                    "the service catalog of Keystone has no public object-store in this region: give swiftURL, or \
                     check regionName and projectID"
                )
            })?,
            given => given,
        };
        // The count is in a response header, so there is no body to transfer.
        let call = HttpCall::get(query::url(base, &self.container), self.within);
        HttpCall { method: Method::HEAD, ..call }.header("x-auth-token", session.token.reveal())
    }
}

impl ValueSource for SwiftContainer {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let answer = self.keystone.send(&self.web, |session| self.call(session)).await?;
            let header = answer.headers.get("x-container-object-count");
            let header = header.and_then(|value| value.to_str().ok());
            query::counted(answer.status.as_u16(), header)
        })
    }
}
