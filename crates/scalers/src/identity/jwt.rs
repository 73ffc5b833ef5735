//! JSON web tokens signed with RSA (RFC 7515, RFC 7519).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use sources::http::Secret;

/// The key is no RSA private key in PEM form. It is not quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the private key is no RSA key in PEM form")]
pub(crate) struct InvalidKey;

/// A token with this header and these claims.
pub(crate) fn signed(header: &Value, claims: &Value, key: &Secret) -> Result<Secret, InvalidKey> {
    let pair = match PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).map_err(|_| InvalidKey)? {
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        _ => return Err(InvalidKey),
    };
    let pair = pair.map_err(|_| InvalidKey)?;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| InvalidKey)?;
    Ok(Secret::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
}
