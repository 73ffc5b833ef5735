//! Which requests may use the console: those to loopback names, of our own pages, with our session cookie.

use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::header::{COOKIE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use tokio::time::Instant;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The names under which a browser reaches this machine. Any other name may be one that its owner points here (DNS rebinding).
const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// Bytes of randomness in a token and in the session.
const SECRET_BYTES: usize = 32;
/// Lifetime of a token for a browser that this machine opens.
const BROWSER_TOKEN_LIFETIME: Duration = Duration::from_mins(1);

/// The tokens, the session, and the port that requests must name.
#[derive(Debug)]
pub struct Access {
    token: String,
    browser_token: Mutex<Option<BrowserToken>>,
    session: String,
    port: OnceLock<u16>,
}

/// A token that is exchanged once.
#[derive(Debug)]
struct BrowserToken {
    token: String,
    expires: Instant,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request names another host.
    #[error("this console answers only at 127.0.0.1, localhost and [::1], with its port")]
    Host,
    /// The request comes from another site.
    #[error("requests of other sites are refused")]
    CrossSite,
    /// There is no session.
    #[error("open the address that the command printed, with its token")]
    NoSession,
}

/// The machine has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine has no random numbers")]
pub struct RandomnessError;

impl Access {
    /// A new token and a new session.
    pub fn new() -> Result<Self, RandomnessError> {
        let browser_token = Mutex::default();
        Ok(Self { token: secret()?, browser_token, session: secret()?, port: OnceLock::new() })
    }

    /// Sets the port once it is bound; until then every request is refused.
    pub fn bound(&self, port: u16) {
        let _ = self.port.set(port);
    }

    /// The token that the printed address carries, valid as long as the console runs.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A new token for the address that a browser is started with: it replaces an earlier one, is exchanged once, and expires soon,
    /// because every user of the machine can read the arguments of a process.
    pub fn browser_token(&self) -> Result<String, RandomnessError> {
        let token = secret()?;
        let own = BrowserToken { token: token.clone(), expires: Instant::now() + BROWSER_TOKEN_LIFETIME };
        *self.browser_token.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
        Ok(token)
    }

    /// Whether the request names this console.
    pub(crate) fn check_host(&self, parts: &Parts) -> Result<(), Refusal> {
        let named = match parts.headers.get(HOST) {
            Some(host) => host.to_str().ok(),
            None => parts.uri.authority().map(http::uri::Authority::as_str),
        };
        named.filter(|host| self.is_own(host)).map(|_| ()).ok_or(Refusal::Host)
    }

    /// Whether the request comes from one of our pages.
    pub(crate) fn check_site(&self, parts: &Parts) -> Result<(), Refusal> {
        let text = |name: HeaderName| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let is_read = parts.method == http::Method::GET || parts.method == http::Method::HEAD;
        match text(SEC_FETCH_SITE) {
            None | Some("same-origin") => {}
            // An address that a person typed.
            Some("none") if is_read => {}
            Some(_) => return Err(Refusal::CrossSite),
        }
        match text(ORIGIN) {
            Some(origin) => match origin.strip_prefix("http://") {
                Some(host) if self.is_own(host) => Ok(()),
                _ => Err(Refusal::CrossSite),
            },
            // Browsers send an origin with every request that changes something.
            None if is_read => Ok(()),
            None => Err(Refusal::CrossSite),
        }
    }

    /// Whether the request has our session.
    pub(crate) fn check_session(&self, parts: &Parts) -> Result<(), Refusal> {
        let name = self.cookie_name();
        let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.any(|(key, value)| key == name && same(value, &self.session));
        if found { Ok(()) } else { Err(Refusal::NoSession) }
    }

    /// The cookie for a correct token.
    pub(crate) fn exchange(&self, token: &str) -> Option<String> {
        let is_correct = same(token, &self.token) || self.use_browser_token(token);
        is_correct
            .then(|| format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.session))
    }

    /// Whether this is the token of a browser, which is not valid any more afterwards.
    fn use_browser_token(&self, given: &str) -> bool {
        let mut kept = self.browser_token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = kept.as_ref().is_some_and(|own| same(given, &own.token) && Instant::now() < own.expires);
        if is_it {
            *kept = None;
        }
        is_it
    }

    /// Cookies do not distinguish ports, so the name does: two consoles do not sign each other out.
    fn cookie_name(&self) -> String {
        format!("plimsoll-console-{}", self.port.get().copied().unwrap_or_default())
    }

    fn is_own(&self, host: &str) -> bool {
        let Some(port) = self.port.get() else { return false };
        let named = |name: &&str| host.strip_prefix(*name)?.strip_prefix(':')?.parse::<u16>().ok();
        LOOPBACK_NAMES.iter().filter_map(named).any(|found| found == *port)
    }
}

/// Compares secrets in a time that does not depend on where they differ.
fn same(given: &str, secret: &str) -> bool {
    let (given, secret) = (given.as_bytes(), secret.as_bytes());
    given.len() == secret.len() && given.iter().zip(secret).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

fn secret() -> Result<String, RandomnessError> {
    let mut bytes = [0; SECRET_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn access() -> Access {
        let access = Access::new().unwrap();
        access.bound(7437);
        access
    }

    fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/api/v1/session");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn hosts_of_other_sites_are_refused() {
        let check = |host: &str| access().check_host(&parts("GET", &[("host", host)]));
        for own in ["127.0.0.1:7437", "localhost:7437", "[::1]:7437"] {
            assert_eq!(check(own), Ok(()), "{own}");
        }
        for other in [
            "evil.example:7437",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:7437",
            "127.0.0.1:7437:7437",
            "",
        ] {
            assert_eq!(check(other), Err(Refusal::Host), "{other}");
        }
        assert_eq!(access().check_host(&parts("GET", &[])), Err(Refusal::Host));
        let unbound = Access::new().unwrap();
        assert_eq!(unbound.check_host(&parts("GET", &[("host", "127.0.0.1:0")])), Err(Refusal::Host));
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let check = |method: &str, headers: &[(&str, &str)]| access().check_site(&parts(method, headers));
        let own = ("origin", "http://127.0.0.1:7437");
        assert_eq!(check("GET", &[("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(check("GET", &[("sec-fetch-site", "none")]), Ok(()));
        assert_eq!(check("POST", &[("sec-fetch-site", "same-origin"), own]), Ok(()));
        for site in ["cross-site", "same-site", "nonsense"] {
            assert_eq!(check("GET", &[("sec-fetch-site", site)]), Err(Refusal::CrossSite), "{site}");
        }
        assert_eq!(check("POST", &[("sec-fetch-site", "none"), own]), Err(Refusal::CrossSite));
        assert_eq!(check("POST", &[]), Err(Refusal::CrossSite), "without an origin");
        for origin in ["http://evil.example", "https://127.0.0.1:7437", "http://127.0.0.1:80", "null"] {
            assert_eq!(check("GET", &[("origin", origin)]), Err(Refusal::CrossSite), "{origin}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_of_a_browser_is_exchanged_once_and_expires() {
        let access = access();
        let first = access.browser_token().unwrap();
        assert_ne!(first, access.token());
        assert_eq!(access.exchange("wrong"), None);
        assert!(access.exchange(&first).is_some());
        assert_eq!(access.exchange(&first), None, "it was exchanged");
        let late = access.browser_token().unwrap();
        tokio::time::advance(BROWSER_TOKEN_LIFETIME).await;
        assert_eq!(access.exchange(&late), None, "it has expired");
        let (replaced, last) = (access.browser_token().unwrap(), access.browser_token().unwrap());
        assert_eq!(access.exchange(&replaced), None);
        assert!(access.exchange(&last).is_some());
        assert!(access.exchange(access.token()).is_some(), "the printed address stays valid");
        assert!(access.exchange(access.token()).is_some(), "the printed address stays valid");
    }

    #[test]
    fn only_the_token_gets_a_session() {
        let access = access();
        assert_eq!(access.token().len(), 64);
        assert_eq!(access.exchange("wrong"), None);
        assert_eq!(access.exchange(""), None);
        let cookie = access.exchange(access.token()).unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        assert!(!pair.contains(access.token()), "the token itself is not in the cookie");
        let check = |text: &str| access.check_session(&parts("GET", &[("cookie", text)]));
        assert_eq!(check(pair), Ok(()));
        assert_eq!(check(&format!("other=1; {pair}")), Ok(()));
        assert_eq!(check("plimsoll-console-7437=wrong"), Err(Refusal::NoSession));
        assert_eq!(check(&pair.replace("7437", "7438")), Err(Refusal::NoSession));
        assert_eq!(access.check_session(&parts("GET", &[])), Err(Refusal::NoSession));
    }
}
