//! The client side of SCRAM (RFC 5802, RFC 7677), for Kafka and MongoDB.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2, rand};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sources::http::Secret;

use crate::off_thread::compute_login;
use crate::responses::excerpt;
use crate::{ScalerError, SourceRefusal};

/// Bytes of a nonce.
const NONCE_BYTES: usize = 18;
/// Maximum number of iterations that a server may require: each costs CPU time here.
const MAX_ITERATIONS: u32 = 100_000;
/// The header of a client without channel binding.
const NO_CHANNEL_BINDING: &str = "n,,";

/// The hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScramHash {
    /// SCRAM-SHA-1, which MongoDB still offers to old users.
    Sha1,
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

/// A server broke the rules of SCRAM, or the password is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScramError {
    /// A message that is not as specified.
    #[error("the server's SCRAM message is not valid: {0}")]
    Invalid(&'static str),
    /// The server refused.
    #[error("the server refused the login: {0}")]
    Refused(String),
}

impl From<ScramError> for ScalerError {
    fn from(error: ScramError) -> Self {
        let refusal = matches!(error, ScramError::Refused(_)).then_some(SourceRefusal::Credentials);
        Self::caused_by(error.to_string(), error).with_refusal(refusal)
    }
}

/// An exchange that has sent its first message.
pub(crate) struct ScramExchange {
    hash: ScramHash,
    password: Secret,
    nonce: String,
    /// The first message without its header.
    first_bare: String,
}

/// An exchange that has sent its proof.
pub(crate) struct ScramProof {
    /// The message with the proof.
    pub(crate) message: Secret,
    /// The signature that only a server that knows the password can send.
    signature: Vec<u8>,
}

impl ScramHash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

impl ScramExchange {
    /// Starts an exchange.
    pub(crate) fn start(hash: ScramHash, user: &str, password: &Secret) -> Result<Self, ScalerError> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).map_err(|_| scaler_error!("the machine has no random numbers"))?;
        Ok(Self::with_nonce(hash, user, password, BASE64_STANDARD.encode(nonce)))
    }

    fn with_nonce(hash: ScramHash, user: &str, password: &Secret, nonce: String) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first_bare = format!("n={user},r={nonce}");
        Self { hash, password: password.clone(), nonce, first_bare }
    }

    /// The first message.
    pub(crate) fn first(&self) -> String {
        format!("{NO_CHANNEL_BINDING}{}", self.first_bare)
    }

    /// The proof for the server's first message. It takes some milliseconds, or a tenth of a second if the server demands that, which
    /// are spent on few threads: otherwise logins to servers of a tenant could use all CPUs.
    pub(crate) async fn prove(self, server_first: &[u8]) -> Result<ScramProof, ScalerError> {
        let server_first = server_first.to_vec();
        Ok(compute_login(move || self.proof(&server_first)).await?)
    }

    fn proof(&self, server_first: &[u8]) -> Result<ScramProof, ScramError> {
        let server_first = std::str::from_utf8(server_first).map_err(|_| ScramError::Invalid("no text"))?;
        let mut parts = server_first.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        if let Some(reason) = server_first.strip_prefix("e=") {
            return Err(ScramError::Refused(excerpt(reason)));
        }
        let nonce = part("r=").ok_or(ScramError::Invalid("no nonce"))?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramError::Invalid("the nonce is not ours"));
        }
        let salt = part("s=").and_then(|salt| BASE64_STANDARD.decode(salt).ok());
        let salt = salt.ok_or(ScramError::Invalid("no salt"))?;
        let iterations = part("i=").and_then(|text| text.parse::<NonZeroU32>().ok());
        let iterations = iterations.ok_or(ScramError::Invalid("no number of iterations"))?;
        if iterations.get() > MAX_ITERATIONS {
            return Err(ScramError::Invalid("too many iterations"));
        }
        let mut salted = vec![0; self.hash.digest().output_len];
        let password = self.password.reveal().as_bytes();
        pbkdf2::derive(self.hash.pbkdf2(), iterations, &salt, password, &mut salted);
        let client_key = self.mac(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest(), client_key.as_ref());
        let header = BASE64_STANDARD.encode(NO_CHANNEL_BINDING);
        let without_proof = format!("c={header},r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let client_signature = self.mac(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(client_signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        let server_key = self.mac(&salted, b"Server Key");
        let signature = self.mac(server_key.as_ref(), signed.as_bytes()).as_ref().to_vec();
        let message = format!("{without_proof},p={}", BASE64_STANDARD.encode(proof));
        Ok(ScramProof { message: Secret::new(message), signature })
    }

    fn mac(&self, key: &[u8], text: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hash.hmac(), key), text)
    }
}

impl ScramProof {
    /// Checks that the server knows the password, too.
    pub(crate) fn verify(&self, server_final: &[u8]) -> Result<(), ScramError> {
        let text = std::str::from_utf8(server_final).map_err(|_| ScramError::Invalid("no text"))?;
        if let Some(reason) = text.strip_prefix("e=") {
            return Err(ScramError::Refused(excerpt(reason)));
        }
        let sent = text.split(',').next().and_then(|part| part.strip_prefix("v="));
        match sent.and_then(|sent| BASE64_STANDARD.decode(sent).ok()) {
            Some(sent) if sent == self.signature => Ok(()),
            _ => Err(ScramError::Invalid("the server does not know the password")),
        }
    }
}
