//! Parameters that many scalers share.

use sources::http::{Auth, Endpoint};

use super::{QueryValues, Secret};
use crate::web::Call;
use crate::{Error, Trigger};

crate::parameters! {
    /// How to show an HTTP server who we are: the same for all scalers that speak HTTP.
    pub struct HttpAuth {
        /// How to show who we are; several with commas between them.
        modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication],
            one_of ["apiKey", "basic", "tls", "bearer", "custom", "oauth"],
            only_one_of ["bearer", "basic", "oauth"];
        /// The token of `bearer`.
        token: Secret = "bearerToken" | "token" in [Authentication];
        /// The user of `basic`.
        username: String = "username" in [Authentication];
        /// The password of `basic`.
        password: Secret = "password" in [Authentication];
        /// Our certificate for `tls` (PEM).
        certificate: String = "cert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "key" in [Authentication];
        /// The authority that the server's certificate must be of (PEM).
        authority: String = "ca" in [Authentication];
        /// Where `oauth` has its tokens from.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication];
        /// The scopes that `oauth` asks for.
        scopes: Vec<String> = "scopes" | "scope" in [Authentication];
        /// The client of `oauth`.
        client_id: String = "clientID" in [Authentication];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// What else `oauth` sends when it asks for a token.
        endpoint_params: QueryValues = "endpointParams" in [Authentication];
        /// The header of `custom`.
        custom_header: String = "customAuthHeader" in [Authentication];
        /// Its value.
        custom_value: Secret = "customAuthValue" in [Authentication];
        /// The key of `apiKey`.
        api_key: Secret = "apiKey" in [Metadata, Authentication];
        /// Where the key of `apiKey` stands.
        method: String = "method" in [Metadata, Authentication], default "header", one_of ["header", "query"];
        /// The header or the parameter that holds it.
        key_param_name: String = "keyParamName" in [Metadata, Authentication];
    }
    check HttpAuth::check
}

impl HttpAuth {
    /// Whether a mode was chosen.
    pub fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|chosen| chosen == mode)
    }

    /// Whether any was.
    pub fn is_enabled(&self) -> bool {
        !self.modes.is_empty()
    }

    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        let there = |there: bool| if there { "<present>" } else { "<empty>" };
        let given = |secret: &Secret| !secret.reveal().is_empty();
        let pair = |mode: &str, [first, second]: [(&str, bool); 2], enabled: &str| {
            if !self.has(mode) || first.1 && second.1 {
                return Ok(());
            }
            let (a, b) = (there(first.1), there(second.1));
            Err(format!("{}={a} and {}={b} are required when {enabled} is enabled", first.0, second.0))
        };
        if self.has("bearer") && !given(&self.token) {
            return Err("bearer token=<empty> is required when bearer auth is enabled".to_owned());
        }
        if self.has("basic") && self.username.is_empty() {
            return Err("username=<empty> is required when basic auth is enabled".to_owned());
        }
        let key = ("key", given(&self.key));
        pair("tls", [("cert", !self.certificate.is_empty()), key], "tls auth")?;
        let client = ("clientID", !self.client_id.is_empty());
        pair("oauth", [("oauthTokenURI", !self.oauth_token_uri.is_empty()), client], "oauth")?;
        let value = ("customAuthValue", given(&self.custom_value));
        pair("custom", [("customAuthHeader", !self.custom_header.is_empty()), value], "custom auth")?;
        if self.has("apiKey") && !given(&self.api_key) {
            return Err("apiKey is required when apiKey auth is enabled".to_owned());
        }
        Ok(())
    }

    /// Trust and certificate: `unsafe_ssl` counts only where there is neither a certificate nor an authority.
    pub fn trust(&self, unsafe_ssl: bool) -> Endpoint {
        let tls = self.has("tls");
        let authority = (!self.authority.is_empty()).then(|| self.authority.clone().into_bytes());
        Endpoint {
            insecure: unsafe_ssl && !tls && authority.is_none(),
            certificate: tls.then(|| self.certificate.clone().into_bytes()),
            key: tls.then(|| self.key.clone()),
            system_roots_too: authority.is_some(),
            ca_bundle: authority,
            ..Endpoint::default()
        }
    }

    /// A call with trust and credentials: `bearer`, else `basic`, else `custom`.
    pub fn sign(&self, mut call: Call, unsafe_ssl: bool) -> Result<Call, Error> {
        call.access = self.trust(unsafe_ssl);
        if self.has("bearer") {
            call.access.auth = Auth::Token(self.token.clone());
        } else if self.has("basic") {
            return Ok(call.basic(&self.username, &self.password));
        } else if self.has("custom") {
            return call.header(&self.custom_header, self.custom_value.reveal());
        }
        Ok(call)
    }
}
