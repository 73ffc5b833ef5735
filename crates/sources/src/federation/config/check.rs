//! Validation across fields.

use std::collections::BTreeMap;
use std::time::Duration;

use api::yaml::{Diagnostic, Document};
use http::Uri;

use super::{FederationConfig, MAX_UPSTREAMS, UpstreamConfig};
use crate::federation::OwnService;

/// Longest timeout of an upstream; the API server cancels requests after a minute.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const MIN_TIMEOUT: Duration = Duration::from_millis(10);

/// Collects the problems of one upstream.
struct UpstreamCheck<'a> {
    document: &'a Document,
    at: String,
    found: Vec<Diagnostic>,
}

pub(super) fn problems(config: &FederationConfig, document: &Document, own: &OwnService) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if config.upstreams.len() > MAX_UPSTREAMS {
        found.push(document.problem("upstreams", format!("more than {MAX_UPSTREAMS} upstreams")));
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, upstream) in config.upstreams.iter().enumerate() {
        let mut check = UpstreamCheck { document, at: format!("upstreams[{index}]"), found: Vec::new() };
        if let Some(first) = names.insert(&upstream.name, index) {
            let line = document.locate(&format!("upstreams[{first}].name")).line;
            check.add_problem(
                "name",
                format!("there is already an upstream `{}` in line {line}", upstream.name),
                "",
            );
        }
        check.name(upstream);
        check.address(upstream, own);
        check.trust(upstream);
        check.timeout(upstream);
        found.append(&mut check.found);
    }
    found
}

impl UpstreamCheck<'_> {
    fn add_problem(&mut self, field: &str, message: impl AsRef<str>, hint: &str) {
        let path = if field.is_empty() { self.at.clone() } else { format!("{}.{field}", self.at) };
        let problem = self.document.problem(&path, message).in_path(&path);
        self.found.push(if hint.is_empty() { problem } else { problem.with_hint(hint) });
    }

    fn name(&mut self, upstream: &UpstreamConfig) {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        let name = &upstream.name;
        if name.is_empty() || name.len() > 63 || !name.chars().all(good) {
            self.add_problem("name", "a name has 1 to 63 lower-case letters, digits, `-` and `.`", "");
        }
    }

    fn address(&mut self, upstream: &UpstreamConfig, own: &OwnService) {
        match (&upstream.url, &upstream.service) {
            (Some(_), Some(_)) => {
                return self.add_problem("service", "`url` and `service` exclude each other", "keep one");
            }
            (None, None) => {
                let hint = "add `service: {namespace: …, name: …}` or `url: https://…`";
                return self.add_problem("", "this upstream has no address", hint);
            }
            (Some(url), None) => {
                if let Err(why) = url_fault(url) {
                    return self.add_problem(
                        "url",
                        why,
                        "write for example https://adapter.monitoring.svc:443",
                    );
                }
            }
            (None, Some(service)) => {
                for (field, name) in [("namespace", &service.namespace), ("name", &service.name)] {
                    if !is_label(name) {
                        self.add_problem(&format!("service.{field}"), "not a valid Kubernetes name", "");
                    }
                }
            }
        }
        let url = upstream.base_url();
        if url.parse::<Uri>().ok().and_then(|uri| uri.host().map(|host| own.is_at(host))) == Some(true) {
            let field = if upstream.url.is_some() { "url" } else { "service" };
            self.add_problem(
                field,
                "this is the Service of this server; it would query itself",
                "name the adapter's Service",
            );
        }
    }

    fn trust(&mut self, upstream: &UpstreamConfig) {
        let (tls, auth) = (&upstream.tls, &upstream.auth);
        let plain = upstream.base_url().starts_with("http:");
        if tls.insecure && tls.ca_file.is_some() {
            self.add_problem(
                "tls.insecure",
                "with `insecure` nothing is checked, so `caFile` has no use",
                "keep one",
            );
        }
        if plain && (tls.insecure || tls.ca_file.is_some() || tls.server_name.is_some()) {
            self.add_problem("tls", "an upstream at http:// has no certificate", "write https:// in `url`");
        }
        if plain && (auth.token_file.is_some() || auth.client_certificate_file.is_some()) {
            let hint = "write https:// in `url`, or leave `auth` out";
            self.add_problem("auth", "a token must not be sent over http://, where it can be read", hint);
        }
        let certificate = (auth.client_certificate_file.is_some(), auth.client_key_file.is_some());
        if certificate.0 != certificate.1 {
            let hint = "give `clientCertificateFile` and `clientKeyFile`";
            self.add_problem("auth", "a certificate and its key belong together", hint);
        }
        if auth.token_file.is_some() && certificate.0 {
            self.add_problem(
                "auth",
                "`tokenFile` and `clientCertificateFile` are two kinds of credentials",
                "keep one",
            );
        }
    }

    fn timeout(&mut self, upstream: &UpstreamConfig) {
        if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&upstream.timeout.0) {
            self.add_problem("timeout", "must be between 10ms and 30s", "");
        }
    }
}

fn url_fault(url: &str) -> Result<(), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "not a URL")?;
    if !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err("a URL of an upstream begins with https://");
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("the URL has no host");
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("a URL must not carry a password; use `auth`");
    }
    if uri.query().is_some() || url.contains('#') {
        return Err("the URL of an upstream has no `?` and no `#`");
    }
    Ok(())
}

/// Whether a text is a valid name of a namespace or a Service.
fn is_label(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(good) && !name.starts_with('-') && !name.ends_with('-')
}
