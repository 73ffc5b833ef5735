//! Bearer tokens: one of the administrator, and JWTs of service accounts.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::user::User;

/// The issuer of tokens, and the audience of tokens for the API server itself.
pub const ISSUER: &str = "https://kubernetes.default.svc";

/// The signing key for tokens.
pub struct Tokens {
    key: [u8; 32],
    admin: String,
}

/// The service account a token is for.
#[derive(Clone, Copy, Debug)]
pub struct ServiceAccountRef<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Its `metadata.uid`.
    pub uid: &'a str,
}

/// A token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is unknown or expired.
    #[error("invalid bearer token")]
    Invalid,
    /// The token is for another audience.
    #[error(
        "[invalid bearer token, token audiences {} is invalid for the target audiences {}]",
        list(.given), list(.wanted)
    )]
    Audience {
        /// The audiences of the token.
        given: Vec<String>,
        /// The accepted audiences.
        wanted: Vec<String>,
    },
}

fn list(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| api::gotext::quote(word)).collect();
    format!("[{}]", quoted.join(" "))
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Creates a new key, and a token for the administrator.
    pub fn new() -> Self {
        Self { key: crate::random::bytes(), admin: URL_SAFE_NO_PAD.encode(crate::random::bytes::<24>()) }
    }

    /// The administrator's token.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Issues a token for a service account, valid from `now` until `expiry`.
    pub fn issue(
        &self,
        account: ServiceAccountRef<'_>,
        audiences: &[String],
        now: Timestamp,
        expiry: Timestamp,
    ) -> String {
        let ServiceAccountRef { namespace, name, uid } = account;
        let claims = json!({
            "aud": audiences,
            "exp": expiry.as_second(),
            "iat": now.as_second(),
            "iss": ISSUER,
            "jti": crate::random::uid(),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": now.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        let header = json!({"alg": "HS256", "kid": "localkube"});
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = URL_SAFE_NO_PAD.encode(self.sign(&signed));
        format!("{signed}.{signature}")
    }

    /// The user of a token, and the accepted audiences that the token is for.
    pub fn read(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<(User, Vec<String>), TokenError> {
        if same(token.as_bytes(), self.admin.as_bytes()) {
            return Ok((User::admin(), wanted.to_vec()));
        }
        let claims = self.claims(token).ok_or(TokenError::Invalid)?;
        let text = |path: &str| claims.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if claims.get("exp").and_then(Value::as_i64).is_none_or(|expiry| expiry <= now.as_second()) {
            return Err(TokenError::Invalid);
        }
        let given: Vec<String> = claims
            .get("aud")
            .and_then(Value::as_array)
            .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let shared: Vec<String> =
            wanted.iter().filter(|audience| given.contains(audience)).cloned().collect();
        if shared.is_empty() {
            return Err(TokenError::Audience { given, wanted: wanted.to_vec() });
        }
        let mut user = User::service_account(
            text("/kubernetes.io/namespace"),
            text("/kubernetes.io/serviceaccount/name"),
        );
        text("/kubernetes.io/serviceaccount/uid").clone_into(&mut user.uid);
        Ok((user.with_credential(&format!("JTI={}", text("/jti"))), shared))
    }

    /// The claims of a token that this key has signed.
    fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, claims) = signed.split_once('.')?;
        let genuine = same(&URL_SAFE_NO_PAD.decode(signature).ok()?, &self.sign(signed));
        genuine.then(|| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok())?
    }

    /// HMAC-SHA256 of a text.
    fn sign(&self, text: &str) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.key), text.as_bytes()).as_ref().to_vec()
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

/// Compares secrets in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    !a.is_empty() && aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BOB: ServiceAccountRef<'_> = ServiceAccountRef { namespace: "team", name: "bob", uid: "u-1" };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn token_is_valid_for_its_audience_until_it_expires() {
        let tokens = Tokens::new();
        let token = tokens.issue(BOB, &words(&["a", "b"]), at(0), at(600));
        let (user, shared) = tokens.read(&token, &words(&["b", "c"]), at(599)).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:team:bob", "u-1"));
        assert!(user.is_in("system:serviceaccounts:team") && user.is_in("system:authenticated"));
        assert_eq!(shared, ["b"]);
        assert_eq!(tokens.read(&token, &words(&["b"]), at(600)), Err(TokenError::Invalid));
        assert_eq!(
            tokens.read(&token, &words(&["c"]), at(0)).unwrap_err().to_string(),
            "[invalid bearer token, token audiences [\"a\" \"b\"] is invalid for the target audiences [\"c\"]]"
        );
    }

    #[test]
    fn tokens_of_other_signers_are_refused() {
        let (tokens, others) = (Tokens::new(), Tokens::new());
        let audience = words(&["a"]);
        let token = tokens.issue(BOB, &audience, at(0), at(600));
        assert_eq!(others.read(&token, &audience, at(0)), Err(TokenError::Invalid));
        let claims = URL_SAFE_NO_PAD.encode(json!({"aud": ["a"], "exp": 9_999_999}).to_string());
        for forged in [
            format!("e30.{claims}."),
            format!("e30.{claims}"),
            token.replacen('.', "x.", 1),
            String::new(),
            "..".into(),
        ] {
            assert_eq!(tokens.read(&forged, &audience, at(0)), Err(TokenError::Invalid), "{forged}");
        }
        assert_eq!(tokens.read(tokens.admin(), &audience, at(0)).unwrap().0, User::admin());
    }
}
