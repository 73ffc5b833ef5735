//! Parameters that many scalers share.

use sources::http::{Auth, Endpoint};

use super::{InvalidParameters, ParameterProblem, ParameterReader, QueryValues, Secret};
use crate::web::HttpCall;
use crate::{ParseError, ScalerError, Trigger};

crate::parameters! {
    /// HTTP authentication, the same for all HTTP scalers.
    pub struct HttpAuth {
        /// Authentication modes, separated by commas.
        modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication],
            one_of ["apiKey", "basic", "tls", "bearer", "custom", "oauth"],
            only_one_of ["bearer", "basic", "oauth"];
        /// The bearer token of `bearer`.
        token: Secret = "bearerToken" | "token" in [Authentication];
        /// The user of `basic`.
        username: String = "username" in [Authentication];
        /// The password of `basic`.
        password: Secret = "password" in [Authentication];
        /// Client certificate of `tls` (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// CA certificate that must have signed the server certificate (PEM).
        authority: String = "ca" in [Authentication];
        /// Token endpoint of `oauth`.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication];
        /// Scopes of `oauth`.
        scopes: Vec<String> = "scopes" | "scope" in [Authentication];
        /// Client id of `oauth`.
        client_id: String = "clientID" in [Authentication];
        /// Its secret key.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// Further parameters of the token request of `oauth`.
        endpoint_params: QueryValues = "endpointParams" in [Authentication];
        /// Header name of `custom`.
        custom_header: String = "customAuthHeader" in [Authentication];
        /// Its value.
        custom_value: Secret = "customAuthValue" in [Authentication];
        /// API key of `apiKey`.
        api_key: Secret = "apiKey" in [Metadata, Authentication];
        /// Where the API key of `apiKey` is sent.
        method: String = "method" in [Metadata, Authentication], default "header", one_of ["header", "query"];
        /// Name of the header or query parameter that carries the API key.
        key_param_name: String = "keyParamName" in [Metadata, Authentication];
    }
    check HttpAuth::check
}

impl HttpAuth {
    /// Whether a mode is enabled.
    pub fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|chosen| chosen == mode)
    }

    /// Whether any mode is enabled.
    pub fn is_enabled(&self) -> bool {
        !self.modes.is_empty()
    }

    /// Reads the group for a scaler that checks it among other rules of its own, with everything that is wrong.
    pub(crate) fn with_problems(trigger: &Trigger) -> (Self, Vec<ParameterProblem>) {
        ParameterReader::problems(trigger)
    }

    /// Checks the modes of a scaler that declares these parameters itself, because it reads some of them from more sources.
    pub(crate) fn check_own(
        trigger: &Trigger,
        modes: &[String],
        (oauth_token_uri, client_id): (&str, &str),
    ) -> Result<(), ParseError> {
        let (read, _) = Self::with_problems(trigger);
        let (oauth_token_uri, client_id) = (oauth_token_uri.to_owned(), client_id.to_owned());
        Self { modes: modes.to_vec(), oauth_token_uri, client_id, ..read }.check_complete()
    }

    /// Reads the group for a scaler that has it only since KEDA 2.21, and refuses modes that the scaler cannot use.
    pub(crate) fn of_newer(trigger: &Trigger, supported: &[&str]) -> Result<Self, ParseError> {
        let (auth, mut problems) = Self::with_problems(trigger);
        problems.extend(auth.check_supported(supported).err().map(Into::into));
        if problems.is_empty() { Ok(auth) } else { Err(InvalidParameters(problems).to_string().into()) }
    }

    /// Refuses modes that a scaler cannot use. Like KEDA 2.21, a scaler also repeats what the group says of incomplete modes.
    pub(crate) fn check_supported(&self, supported: &[&str]) -> Result<(), ParseError> {
        match self.modes.iter().find(|mode| !supported.contains(&&***mode)) {
            Some(mode) => Err(format!(
                "auth mode {} is not supported by this scaler; supported modes: [{}]",
                api::gotext::quote(mode),
                supported.join(" ")
            )
            .into()),
            None => self.check_complete(),
        }
    }

    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.check_complete()
    }

    /// Checks that every mode has its credentials.
    pub(crate) fn check_complete(&self) -> Result<(), ParseError> {
        let there = |there: bool| if there { "<present>" } else { "<empty>" };
        let given = |secret: &Secret| !secret.reveal().is_empty();
        let pair =
            |mode: &str, [first, second]: [(&str, bool); 2], enabled: &str| -> Result<(), ParseError> {
                if !self.has(mode) || first.1 && second.1 {
                    return Ok(());
                }
                let (a, b) = (there(first.1), there(second.1));
                Err(format!("{}={a} and {}={b} are required when {enabled} is enabled", first.0, second.0)
                    .into())
            };
        if self.has("bearer") && !given(&self.token) {
            return Err("bearer token=<empty> is required when bearer auth is enabled".into());
        }
        if self.has("basic") && self.username.is_empty() {
            return Err("username=<empty> is required when basic auth is enabled".into());
        }
        let key = ("key", given(&self.key));
        pair("tls", [("cert", !self.certificate.is_empty()), key], "tls auth")?;
        let client = ("clientID", !self.client_id.is_empty());
        pair("oauth", [("oauthTokenURI", !self.oauth_token_uri.is_empty()), client], "oauth")?;
        let value = ("customAuthValue", given(&self.custom_value));
        pair("custom", [("customAuthHeader", !self.custom_header.is_empty()), value], "custom auth")?;
        if self.has("apiKey") && !given(&self.api_key) {
            return Err("apiKey is required when apiKey auth is enabled".into());
        }
        Ok(())
    }

    /// TLS settings: `unsafe_ssl` applies only without a client certificate and CA certificate.
    pub fn trust(&self, unsafe_ssl: bool) -> Endpoint {
        let tls = self.has("tls");
        let insecure = unsafe_ssl && !tls && self.authority.is_empty();
        let own = tls.then_some((&*self.certificate, &self.key));
        Endpoint { insecure, ..tls_endpoint(&self.authority, own) }
    }

    /// Adds TLS settings and credentials to a call: `bearer`, else `basic`, else `custom`.
    pub fn sign(&self, mut call: HttpCall, unsafe_ssl: bool) -> Result<HttpCall, ScalerError> {
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

/// An endpoint with a CA certificate that is trusted in addition to the system's (empty if there is none), and a client certificate
/// with its key, all as PEM.
pub(crate) fn tls_endpoint(authority: &str, own: Option<(&str, &Secret)>) -> Endpoint {
    let authority = (!authority.is_empty()).then(|| authority.as_bytes().to_vec());
    Endpoint {
        certificate: own.map(|(certificate, _)| certificate.as_bytes().to_vec()),
        key: own.map(|(_, key)| key.clone()),
        system_roots_too: authority.is_some(),
        ca_bundle: authority,
        ..Endpoint::default()
    }
}
