//! openstack-swift: the number of objects in a container of OpenStack Swift.

use crate::prelude::*;

/// The scaler type `openstack-swift`.
pub const TYPE: ScalerType = ScalerType {
    name: "openstack-swift",
    about: "How many objects are in a container of OpenStack Swift.",
    display: "openstackSwiftScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "objects",
    build,
    samples: &[Sample::http(
        &[("swiftURL", "http://{}"), ("containerName", "c")],
        &[("authURL", "http://{}"), ("userID", "u"), ("password", sample::SECRET), ("projectID", "p")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of openstack-swift.
    pub struct Parameters of "error parsing swift metadata: error parsing openstack swift metadata" {
        /// URL of Swift; that of the service catalog if it is missing.
        swift_url: String = "swiftURL" in [Metadata];
        /// The container.
        container: String = "containerName" in [Metadata], required;
        /// Target number of objects per replica.
        object_count: i64 = "objectCount" in [Metadata], default "2";
        /// The trigger is active above this number of objects.
        activation: i64 = "activationObjectCount" in [Metadata], default "0";
        /// Only objects whose name begins so count.
        prefix: String = "objectPrefix" in [Metadata];
        /// Separates the levels of names; objects of deeper levels do not count.
        delimiter: String = "objectDelimiter" in [Metadata];
        /// Objects beyond this number are not counted.
        limit: String = "objectLimit" in [Metadata];
        /// Timeout of requests, in seconds; 30 if it is missing.
        timeout: isize = "timeout" in [Metadata];
        /// Leaves out folders.
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
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let mut name = format!("openstack-swift-{}", parameters.container);
    if !parameters.prefix.is_empty() {
        name = format!("{name}-{}", parameters.prefix);
    }
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.object_count))])
}
