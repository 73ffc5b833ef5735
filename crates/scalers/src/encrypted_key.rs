//! Private keys that a password protects (PKCS #8 with PBES2, RFC 8018), without IO.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::parameters::Secret;

/// The label of encrypted keys in PEM.
const LABEL: &str = "ENCRYPTED PRIVATE KEY";
/// Maximum number of iterations that a key may require, so that a trigger cannot keep the processor busy; OpenSSL's default is
/// 2048.
const MAX_ITERATIONS: u32 = 200_000;

/// Object identifiers, as encoded in DER.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
const HMAC_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x07];
const HMAC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09];
const HMAC_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a];
const HMAC_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b];
const AES_128_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02];
const AES_192_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x16];
const AES_256_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a];

/// Tags of DER.
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// A key (PEM) without its protection. A key that is not encrypted, or that the password does not open, is returned as it is: who
/// uses it reports that.
pub(crate) fn opened(key: &Secret, password: &Secret) -> Secret {
    if password.reveal().is_empty() || !key.reveal().contains(LABEL) {
        return key.clone();
    }
    let der = body(key.reveal()).and_then(|der| decrypted(&der, password.reveal().as_bytes()));
    match der {
        Some(der) => {
            let text = STANDARD.encode(der);
            Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"))
        }
        None => key.clone(),
    }
}

/// The bytes of the encrypted key in a PEM text.
fn body(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {LABEL}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {LABEL}-----"))?;
    STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
}

fn decrypted(der: &[u8], password: &[u8]) -> Option<Vec<u8>> {
    let mut all = Der(der).sequence()?;
    let mut scheme = all.sequence()?;
    let mut data = all.take(OCTETS)?.to_vec();
    if scheme.take(IDENTIFIER)? != PBES2 {
        return None;
    }
    let mut parameters = scheme.sequence()?;
    let (mut derivation, mut encryption) = (parameters.sequence()?, parameters.sequence()?);
    let (algorithm, length) = cipher(encryption.take(IDENTIFIER)?)?;
    let key = derived(&mut derivation, password, length)?;
    let iv = FixedLength::<16>::try_from(encryption.take(OCTETS)?).ok()?;
    let key = UnboundCipherKey::new(algorithm, &key).ok()?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
    let plain = key.decrypt(&mut data, DecryptionContext::Iv128(iv)).ok()?;
    // A wrong password may leave valid padding by chance.
    Der(plain).sequence()?.take(INTEGER)?;
    Some(plain.to_vec())
}

/// The algorithm of an identifier, and the length of its key.
fn cipher(identifier: &[u8]) -> Option<(&'static Algorithm, usize)> {
    match identifier {
        AES_128_CBC => Some((&AES_128, 16)),
        AES_192_CBC => Some((&AES_192, 24)),
        AES_256_CBC => Some((&AES_256, 32)),
        _ => None,
    }
}

/// The key that PBKDF2 derives from a password.
fn derived(derivation: &mut Der<'_>, password: &[u8], length: usize) -> Option<Vec<u8>> {
    if derivation.take(IDENTIFIER)? != PBKDF2 {
        return None;
    }
    let mut parameters = derivation.sequence()?;
    let salt = parameters.take(OCTETS)?;
    let mut iterations = parameters.take(INTEGER)?.iter();
    let iterations =
        iterations.try_fold(0_u32, |sum, byte| sum.checked_mul(256)?.checked_add(u32::from(*byte)))?;
    let iterations = NonZeroU32::new(iterations).filter(|count| count.get() <= MAX_ITERATIONS)?;
    // The length of the key may be given; that of the cipher is the same.
    if parameters.tag() == Some(INTEGER) {
        parameters.take(INTEGER)?;
    }
    let algorithm = match parameters.tag() {
        Some(SEQUENCE) => match parameters.sequence()?.take(IDENTIFIER)? {
            HMAC_SHA1 => pbkdf2::PBKDF2_HMAC_SHA1,
            HMAC_SHA256 => pbkdf2::PBKDF2_HMAC_SHA256,
            HMAC_SHA384 => pbkdf2::PBKDF2_HMAC_SHA384,
            HMAC_SHA512 => pbkdf2::PBKDF2_HMAC_SHA512,
            _ => return None,
        },
        _ => pbkdf2::PBKDF2_HMAC_SHA1,
    };
    let mut key = vec![0; length];
    pbkdf2::derive(algorithm, iterations, salt, password, &mut key);
    Some(key)
}

/// The rest of a DER encoding.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag of the next element.
    fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The content of the next element, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (length, rest) = match length {
            0..0x80 => (usize::from(*length), rest),
            _ => {
                let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
                let sum = |sum: usize, byte: &u8| sum.checked_mul(256)?.checked_add(usize::from(*byte));
                (bytes.iter().try_fold(0, sum)?, rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (*first == tag).then_some(content)
    }

    fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key made by OpenSSL for this test.
    const PLAIN: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgi1vFIwKFf+dlZtZ4v5OtWwlsBwqSrZFlbFuhetrQEF2hRANCAAQbwlKBRr+2ifkhpNY7KC10mOQd1zWWGPa36Ccj7X2DAZ5CENKiW8VJ3lYmPVgHftEixrj50Lk7Ads8F1oDw2Kh";
    /// The same key with the password `hunter2`: AES-256 with SHA-256, and AES-128 with SHA-1.
    const ENCRYPTED: [&str; 2] = [
        "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjKlug67IOU0QICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEPWhlAG2zR8BJdAE+Mssz0kEgZAODn0jbp9KRA57LnByo2zvTdWRGLUKKkM8XZzvHgQbSiHMbdVx6XiMZDCFS+nuAWwrJ8f7sVl54VlhRkMULpj/4ku5Fd6myWpb9LIu66QekmraohAqFlppQMl7V9ySREyCpodNpolxllxixFbkFnz+zjzV6SGCIdQ9VCB5ovnWS72elN+Ro43n42gEN6GC3Q4=",
        "MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAjgeJNyNFpKmgICCAAwHQYJYIZIAWUDBAECBBBwtjjF07I5K0Nh4k2uzt7wBIGQSwdJpd6PY30Myqyumss2AUgzlL/eddkdHBA/5k0tFOj63xX+cS2DcbSMN7KtDfj8t66srYcoWX2xaTqrvtXf0m/jaQOOBulJ0I36Y11UMrlxVO0FziBcYBEQXJdWrQuWCWFtYplKxbtuY+J7WUL7Dn/BBbRwP95lAIHA6MS3F1qSAgntCC9TUnsBWDw/EIDn",
    ];

    fn pem(body: &str) -> Secret {
        Secret::new(format!("-----BEGIN {LABEL}-----\n{body}\n-----END {LABEL}-----\n"))
    }

    #[test]
    fn the_password_opens_the_key() {
        for body in ENCRYPTED {
            let key = opened(&pem(body), &Secret::new("hunter2"));
            let wanted = format!("-----BEGIN PRIVATE KEY-----\n{PLAIN}\n-----END PRIVATE KEY-----\n");
            assert_eq!(key.reveal(), wanted);
        }
    }

    #[test]
    fn other_keys_stay_as_they_are() {
        for (body, password) in
            [(ENCRYPTED[0], "wrong"), (ENCRYPTED[0], ""), ("AAAA", "x"), ("!", "x"), ("", "x")]
        {
            assert_eq!(opened(&pem(body), &Secret::new(password)), pem(body));
        }
        // Every prefix of a key is refused without a panic.
        let whole = STANDARD.decode(ENCRYPTED[0]).unwrap();
        for end in 0..whole.len() {
            assert_eq!(decrypted(whole.get(..end).unwrap(), b"hunter2"), None);
        }
    }
}
