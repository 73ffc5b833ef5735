//! The server side of SCRAM, which verifies the proof of a client.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::scram::ScramHash;

const SALT: &[u8] = b"sixteen bytes ...";
const ITERATIONS: u32 = 4096;

pub(crate) struct ScramServer {
    hash: ScramHash,
    user: String,
    password: String,
    /// The client's first message without header, and the answer to it.
    first: Option<(String, String)>,
}

impl ScramServer {
    pub(crate) fn new(hash: ScramHash, user: &str, password: &str) -> Self {
        Self { hash, user: user.to_owned(), password: password.to_owned(), first: None }
    }

    /// The answer to a message, and whether the client is logged in; none if it is refused.
    pub(crate) fn reply(&mut self, message: &[u8]) -> Option<(Vec<u8>, bool)> {
        let message = std::str::from_utf8(message).ok()?;
        let Some((bare, answer)) = self.first.take() else {
            let bare = message.strip_prefix("n,,")?;
            let nonce = bare.strip_prefix(&format!("n={},r=", self.user))?;
            let salt = BASE64_STANDARD.encode(SALT);
            let answer = format!("r={nonce}server,s={salt},i={ITERATIONS}");
            self.first = Some((bare.to_owned(), answer.clone()));
            return Some((answer.into_bytes(), false));
        };
        let (hmac, digest, derive) = match self.hash {
            ScramHash::Sha1 => (
                hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
                &digest::SHA1_FOR_LEGACY_USE_ONLY,
                pbkdf2::PBKDF2_HMAC_SHA1,
            ),
            ScramHash::Sha256 => (hmac::HMAC_SHA256, &digest::SHA256, pbkdf2::PBKDF2_HMAC_SHA256),
            ScramHash::Sha512 => (hmac::HMAC_SHA512, &digest::SHA512, pbkdf2::PBKDF2_HMAC_SHA512),
        };
        let mac = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac, key), text.as_bytes()).as_ref().to_vec()
        };
        let mut salted = vec![0; digest.output_len];
        let iterations = NonZeroU32::new(ITERATIONS)?;
        pbkdf2::derive(derive, iterations, SALT, self.password.as_bytes(), &mut salted);
        let (without_proof, proof) = message.split_once(",p=")?;
        let nonce = answer.strip_prefix("r=")?.split(',').next()?;
        if without_proof != format!("c=biws,r={nonce}") {
            return None;
        }
        let signed = format!("{bare},{answer},{without_proof}");
        let stored = digest::digest(digest, &mac(&salted, "Client Key"));
        let mask = mac(stored.as_ref(), &signed);
        let proof = BASE64_STANDARD.decode(proof).ok()?;
        let key: Vec<u8> = proof.iter().zip(mask).map(|(proof, mask)| proof ^ mask).collect();
        if digest::digest(digest, &key).as_ref() != stored.as_ref() {
            return None;
        }
        let signature = mac(&mac(&salted, "Server Key"), &signed);
        Some((format!("v={}", BASE64_STANDARD.encode(signature)).into_bytes(), true))
    }
}
