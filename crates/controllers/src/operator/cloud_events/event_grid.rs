//! Topics of Azure Event Grid: with the access key of an authentication, or with the operator's identity at Azure's own hosts
//! (docs/spec/keda.md 1.4).

use std::sync::Arc;

use api::keda::CloudEventSource;
use http::header::{AUTHORIZATION, InvalidHeaderValue};
use http::{HeaderName, HeaderValue, Uri};
use scalers::ScalerError;
use scalers::identity::{AzureIdentity, Identities};
use scalers::web::SharedHttpClient;

use crate::operator::auth::{AuthError, AuthQuery, AuthResolver};

/// Appended to the URL of a topic.
pub(super) const QUERY: &str = "?api-version=2018-01-01";
/// The content type of a batch of events.
pub(super) const CONTENT_TYPE: &str = "application/cloudevents-batch+json; charset=utf-8";

/// The scope of tokens.
const SCOPE: &str = "https://eventgrid.azure.net/.default";
/// The header of access keys.
const KEY_HEADER: &str = "aeg-sas-key";
/// Ends of the host names of topics in Azure's clouds.
const HOST_SUFFIXES: [&str; 3] = [".eventgrid.azure.net", ".eventgrid.azure.us", ".eventgrid.azure.cn"];

/// What credentials for topics are read with.
#[derive(Clone)]
pub(crate) struct TopicCredentials {
    pub(crate) auth: AuthResolver,
    /// Tokens of the operator's identity.
    pub(crate) identities: Arc<Identities>,
    /// Sends the requests for these tokens.
    pub(crate) web: Arc<SharedHttpClient>,
}

/// The header that authorizes requests to a topic.
#[derive(Clone, Debug)]
pub(super) struct TopicHeader {
    pub(super) name: HeaderName,
    /// Marked as sensitive, so that no log shows it.
    pub(super) value: HeaderValue,
}

/// Why there are no credentials for a topic.
#[derive(Debug, thiserror::Error)]
pub(super) enum TopicError {
    /// The authentication cannot be resolved.
    #[error(transparent)]
    Auth(#[from] Box<AuthError>),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] ScalerError),
    /// The authentication has no key.
    #[error("no azure event grid access key provided: the authentication needs the parameter accessKey")]
    NoAccessKey,
    /// A source without a namespace names an object of a namespace.
    #[error(
        "a ClusterCloudEventSource has no namespace, in which TriggerAuthentication {0:?} could be: refer to a \
         ClusterTriggerAuthentication (authenticationRef.kind)"
    )]
    NoNamespace(String),
    /// The identity is of another cloud.
    #[error("a topic cannot be used with pod identity {0}: use azure-workload, or the parameter accessKey")]
    OtherIdentity(String),
    /// The operator's token would be sent to a server outside Event Grid.
    #[error(
        "azure-workload can be used for topics at https://….eventgrid.azure.net only: use the parameter accessKey"
    )]
    ForeignHost,
    /// A key has characters that cannot be sent.
    #[error(transparent)]
    Header(#[from] InvalidHeaderValue),
}

impl TopicError {
    /// Whether the same request fails in the same way until an object is edited.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::NoAccessKey
            | Self::NoNamespace(_)
            | Self::OtherIdentity(_)
            | Self::ForeignHost
            | Self::Header(_) => true,
            Self::Auth(_) | Self::Token(_) => false,
        }
    }
}

impl TopicCredentials {
    /// The header that authorizes requests to the topic of a source.
    pub(super) async fn header(
        &self,
        source: &CloudEventSource,
        endpoint: &str,
    ) -> Result<TopicHeader, TopicError> {
        let authentication = source.spec.authentication_ref.as_ref();
        if let Some(reference) = authentication
            && source.metadata.namespace.is_empty()
            && matches!(reference.kind.as_str(), "" | "TriggerAuthentication")
        {
            return Err(TopicError::NoNamespace(reference.name.clone()));
        }
        let query = AuthQuery {
            namespace: &source.metadata.namespace,
            authentication,
            template: None,
            container: "",
        };
        let resolved = self.auth.resolve(query).await.map_err(Box::new)?;
        let (name, mut value) = match resolved.identity.provider.as_str() {
            "" | "none" => {
                let key = resolved.parameters.get("accessKey").filter(|key| !key.is_empty());
                let value = HeaderValue::from_str(key.ok_or(TopicError::NoAccessKey)?)?;
                (HeaderName::from_static(KEY_HEADER), value)
            }
            "azure-workload" if is_of_azure(endpoint) => {
                let identity = AzureIdentity::of(&resolved.identity);
                let token = self.identities.azure(&identity, SCOPE, &self.web).await?;
                (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?)
            }
            "azure-workload" => return Err(TopicError::ForeignHost),
            other => return Err(TopicError::OtherIdentity(other.to_owned())),
        };
        value.set_sensitive(true);
        Ok(TopicHeader { name, value })
    }
}

/// Whether a URL is that of a topic in one of Azure's clouds.
fn is_of_azure(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.trim().parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    uri.scheme_str() == Some("https")
        && uri.port().is_none()
        && HOST_SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_hosts_of_azure_only() {
        for good in [
            "https://topic.westus2-1.eventgrid.azure.net/api/events",
            "https://Topic.eventgrid.azure.us/api/events",
        ] {
            assert!(is_of_azure(good), "{good}");
        }
        for bad in [
            "http://topic.eventgrid.azure.net/api/events",
            "https://topic.eventgrid.azure.net:8443/api/events",
            "https://topic.eventgrid.azure.net@tenant.example/api/events",
            "https://eventgrid.azure.net.tenant.example/",
            "https://tenant.example/.eventgrid.azure.net",
            "topic.eventgrid.azure.net",
            "",
        ] {
            assert!(!is_of_azure(bad), "{bad}");
        }
    }
}
