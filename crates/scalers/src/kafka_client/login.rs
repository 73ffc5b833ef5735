//! SASL logins with tokens.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sources::http::{Endpoint, Secret};

use crate::oauth::OAuthClient;
use crate::parameters::QueryValues;
use crate::web::SharedHttpClient;
use crate::{ScalerError, ScalerFuture};

/// Makes the SASL message of a login.
pub(crate) trait TokenSource: Send + Sync {
    /// The message for a broker.
    fn message<'a>(&'a self, host: &'a str) -> ScalerFuture<'a, Secret>;
}

/// A login whose token is requested when a connection is made. Logins are equal if their credentials are.
#[derive(Clone)]
pub(crate) struct TokenLogin {
    /// The SASL mechanism.
    pub(crate) mechanism: &'static str,
    /// Everything that tells this login from others.
    pub(crate) credentials: Vec<Secret>,
    /// Whether the token is one of the operator, so that it is sent to brokers with a verified certificate only.
    pub(crate) is_of_operator: bool,
    /// Where the token comes from.
    pub(crate) source: Arc<dyn TokenSource>,
}

impl PartialEq for TokenLogin {
    fn eq(&self, other: &Self) -> bool {
        self.mechanism == other.mechanism && self.credentials == other.credentials
    }
}

impl Eq for TokenLogin {}

impl Hash for TokenLogin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mechanism.hash(state);
        self.credentials.hash(state);
    }
}

impl fmt::Debug for TokenLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenLogin").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

/// A token of an OAuth2 server, with the client credentials grant.
pub(crate) struct OAuthToken {
    client: OAuthClient,
    /// Extensions of the message, each `key=value`.
    extensions: Vec<(String, String)>,
    web: Arc<SharedHttpClient>,
    within: Duration,
}

impl OAuthToken {
    /// The login of a client at a token endpoint.
    pub(crate) fn login(
        uri: &str,
        (id, secret): (&str, &Secret),
        scopes: &[String],
        extensions: &[(String, String)],
        web: &Arc<SharedHttpClient>,
        within: Duration,
    ) -> TokenLogin {
        let client =
            OAuthClient::new((uri, Endpoint::default()), (id, secret), scopes, &QueryValues::default());
        let mut credentials = vec![Secret::new(uri), Secret::new(id), secret.clone()];
        credentials.extend(scopes.iter().map(Secret::new));
        credentials.extend(extensions.iter().map(|(key, value)| Secret::new(format!("{key}={value}"))));
        let source = Self { client, extensions: extensions.to_vec(), web: Arc::clone(web), within };
        TokenLogin { mechanism: "OAUTHBEARER", credentials, is_of_operator: false, source: Arc::new(source) }
    }
}

impl TokenSource for OAuthToken {
    fn message<'a>(&'a self, _host: &'a str) -> ScalerFuture<'a, Secret> {
        Box::pin(async move {
            let token = self.client.token(&self.web, self.within).await?;
            bearer_message(&token, &self.extensions)
        })
    }
}

/// The message of OAUTHBEARER (RFC 7628, 3.1).
pub(super) fn bearer_message(token: &Secret, extensions: &[(String, String)]) -> Result<Secret, ScalerError> {
    let separated = |text: &str| text.contains('\u{1}');
    if separated(token.reveal()) || extensions.iter().any(|(key, value)| separated(key) || separated(value)) {
        bail!("the token or an extension has a character that cannot be sent");
    }
    let mut message = format!("n,,\u{1}auth=Bearer {}\u{1}", token.reveal());
    for (key, value) in extensions {
        message.push_str(&format!("{key}={value}\u{1}"));
    }
    message.push('\u{1}');
    Ok(Secret::new(message))
}
