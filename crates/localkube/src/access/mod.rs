//! Authentication and authorization.
//!
//! ```text
//! user    the user of a request
//! pki     authentication by certificate
//! tokens  authentication by bearer token
//! policy  authorization
//! review  TokenReview, SubjectAccessReview and the like
//! ```

mod pki;
mod policy;
mod review;
mod tokens;
mod user;

#[cfg(test)]
mod tests;

use std::sync::RwLock;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use jiff::Timestamp;
use locks::RwLockExt as _;

pub(crate) use self::pki::parts;
pub use self::pki::{
    Authority, FRONT_PROXY, Identity, Pki, PkiError, SERVER_NAMES, kubeconfig, roots, server_config,
};
pub use self::policy::{AccessTarget, Attributes, DenyRule};
pub use self::review::{answer, token_request};
pub use self::tokens::{ISSUER, ServiceAccountRef, TokenError, Tokens};
pub use self::user::User;

use self::pki::MASTERS;
use self::user::{ANONYMOUS, AUTHENTICATED};
use crate::request::{Query, RequestPath};
use crate::status::Status;

/// Authentication and authorization of a cluster.
#[derive(Debug)]
pub struct Access {
    /// Certificates.
    pub pki: Pki,
    /// Bearer tokens.
    pub tokens: Tokens,
    denied: RwLock<Vec<DenyRule>>,
}

impl Access {
    /// Creates new keys for all identities.
    pub fn new() -> Result<Self, PkiError> {
        Ok(Self { pki: Pki::new()?, tokens: Tokens::new(), denied: RwLock::default() })
    }

    /// Denies what the rule describes from now on; tests use this.
    pub fn deny(&self, rule: DenyRule) {
        self.denied.write_locked().push(rule);
    }

    /// Whether a user may perform an action.
    pub fn allows(&self, user: &User, wanted: &Attributes) -> bool {
        wanted.allowed(user, &self.denied.read_locked())
    }

    /// The user that sent a request: that of the connection, else that of the bearer token, else the anonymous user.
    /// Impersonation headers replace it if the user may impersonate.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: Option<&User>,
        now: Timestamp,
    ) -> Result<User, Status> {
        let user = match (bearer(headers), peer) {
            (_, Some(peer)) => peer.clone(),
            (Some(token), None) => {
                let read = self.tokens.read(token, &[ISSUER.to_owned()], now);
                read.map_err(|_| unauthorized())?.0
            }
            (None, None) => User::anonymous(),
        };
        impersonated(headers, user)
    }

    /// Whether the user may send this request.
    pub fn authorize(
        &self,
        user: &User,
        method: &Method,
        path: &RequestPath,
        raw: &str,
        query: &Query,
    ) -> Result<(), Status> {
        let wanted = Attributes::of(method, path, raw, query);
        if self.allows(user, &wanted) { Ok(()) } else { Err(wanted.refusal(user)) }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unauthorized() -> Status {
    Status {
        code: 401,
        reason: "Unauthorized",
        message: "Unauthorized".to_owned(),
        about: None,
        causes: Vec::new(),
        retry_after: None,
    }
}

/// The user that the impersonation headers name; only administrators may impersonate.
fn impersonated(headers: &HeaderMap, user: User) -> Result<User, Status> {
    const EXTRA: &str = "impersonate-extra-";
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let groups = all("impersonate-group");
    let mut asked = User { groups, ..User::default() };
    asked.uid = all("impersonate-uid").into_iter().next().unwrap_or_default();
    for name in headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)) {
        asked.extra.insert(name.to_owned(), all(&format!("{EXTRA}{name}")));
    }
    let Some(name) = all("impersonate-user").into_iter().next().filter(|name| !name.is_empty()) else {
        if asked == User::default() {
            return Ok(user);
        }
        let text = "impersonation needs the header Impersonate-User";
        return Err(Status::bad_request(text));
    };
    if !user.is_in(MASTERS) {
        let target = AccessTarget::Resource(crate::request::ResourcePath {
            resource: "users".to_owned(),
            name: Some(name),
            ..Default::default()
        });
        return Err(Attributes { verb: "impersonate".to_owned(), target }.refusal(&user));
    }
    if name == ANONYMOUS {
        return Ok(User::anonymous());
    }
    if let (true, [_, _, namespace, account]) = (
        asked.groups.is_empty() && name.starts_with("system:serviceaccount:"),
        &name.split(':').collect::<Vec<_>>()[..],
    ) {
        asked.groups = User::service_account(namespace, account).groups;
    }
    if !asked.is_in(AUTHENTICATED) {
        asked.groups.push(AUTHENTICATED.to_owned());
    }
    Ok(User { name, ..asked })
}
