//! GitHub Apps: an installation token is requested with a JWT signed by the app's key (RFC 7519).

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::query;
use crate::ScalerError;
use crate::parameters::Secret;
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient};

/// How long a token is used; GitHub's tokens are valid for an hour.
const TOKEN_LIFETIME: Duration = Duration::from_mins(50);

/// A GitHub App, and the cached token of its installation.
pub(super) struct App {
    pub(super) id: i64,
    pub(super) installation: i64,
    pub(super) key: Secret,
    pub(super) token: Mutex<Option<(Secret, Instant)>>,
}

impl App {
    /// The cached token, or a new one. `now` is a Unix time in seconds.
    pub(super) async fn token(
        &self,
        web: &SharedHttpClient,
        api: &str,
        within: Duration,
        now: i64,
    ) -> Result<Secret, ScalerError> {
        let mut kept = self.token.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let assertion = assertion(self.id, self.key.reveal(), now)?;
        let call = HttpCall::post(query::token_url(api, self.installation), "", within)
            .header("authorization", &format!("Bearer {assertion}"))?
            .header("accept", "application/vnd.github+json")?;
        let (status, body) = send(web, call).await?;
        let token = Secret::new(query::token(status, &body)?);
        *kept = Some((token.clone(), Instant::now() + TOKEN_LIFETIME));
        Ok(token)
    }
}

/// The signed JWT of the app.
pub(super) fn assertion(id: i64, key: &str, now: i64) -> Result<String, ScalerError> {
    let bad = || scaler_error!("appKey is no RSA private key in PEM form");
    let pair = match PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| bad())? {
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        _ => return Err(bad()),
    };
    let pair = pair.map_err(|_| bad())?;
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    // Issued a little in the past, because clocks differ.
    let claims = format!(r#"{{"iat":{},"exp":{},"iss":"{id}"}}"#, now - 60, now + 540);
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims));
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| bad())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
