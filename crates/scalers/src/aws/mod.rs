//! What AWS wants: credentials, and requests signed with them.

mod question;
mod sign;
#[cfg(test)]
mod tests;

pub(crate) use question::{Question, answer, endpoint};
pub(crate) use sign::{Keys, Request, sign};

use crate::parameters::Secret;
use crate::{Error, Trigger};

crate::parameters! {
    /// Who asks AWS.
    pub struct Credentials {
        /// Who asks: `pod` (default) the keys or the role given here, `operator` the operator itself.
        identity_owner: String = "identityOwner" in [Metadata];
        /// A role to take.
        role: Option<String> = "awsRoleArn" in [Authentication];
        /// Access key.
        access_key: Option<String> = "awsAccessKeyID" | "awsAccessKeyId" in [Authentication];
        /// Its secret.
        secret_key: Option<Secret> = "awsSecretAccessKey" in [Authentication];
        /// The session they belong to, if they are temporary.
        session_token: Option<Secret> = "awsSessionToken" in [Authentication];
        /// Access key, from the workload.
        own_access_key: Option<String> = "awsAccessKeyID" in [Metadata, Environment];
        /// Its secret, from the workload.
        own_secret_key: Option<Secret> = "awsSecretAccessKey" in [Environment];
    }
}

/// Who asks AWS.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// Somebody with keys.
    Keys(Keys),
    /// Somebody whose keys AWS would have to be asked for; why this does not work yet.
    Unsupported(&'static str),
}

impl Credentials {
    /// Who asks; an error if keys are missing.
    pub(crate) fn identity(&self, trigger: &Trigger) -> Result<Identity, Error> {
        if trigger.identity.provider == "aws" {
            return Ok(Identity::Unsupported("pod identity aws"));
        }
        match &*self.identity_owner {
            "" | "pod" => {}
            _ => return Ok(Identity::Unsupported("identityOwner operator")),
        }
        if self.role.is_some() {
            return Ok(Identity::Unsupported("awsRoleArn"));
        }
        // The access key says where the secret must be.
        let (access, secret) = match &self.access_key {
            Some(_) => (&self.access_key, &self.secret_key),
            None => (&self.own_access_key, &self.own_secret_key),
        };
        let access = access.clone().ok_or_else(|| Error::new("awsAccessKeyID not found"))?;
        let secret = secret.clone().ok_or_else(|| Error::new("awsSecretAccessKey not found"))?;
        Ok(Identity::Keys(Keys { access, secret, session: self.session_token.clone() }))
    }
}

impl Identity {
    /// The keys, or what to do instead.
    pub(crate) fn keys(&self) -> Result<&Keys, Error> {
        match self {
            Self::Keys(keys) => Ok(keys),
            Self::Unsupported(what) => Err(Error::new(format!(
                "{what} is not supported yet: give awsAccessKeyID and awsSecretAccessKey in a TriggerAuthentication"
            ))),
        }
    }
}
