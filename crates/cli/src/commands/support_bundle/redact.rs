//! Removes secrets from objects and texts.

use serde_json::Value;

/// What stands in the place of a secret.
pub(super) const REDACTED: &str = "REDACTED";
/// Parts of the names of fields and parameters whose texts are secret, in lower case.
const SECRET_NAMES: [&str; 12] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "connection",
    "authorization",
    "signature",
    "accesskey",
    "cookie",
];
/// Names that are secret as a whole.
const SECRET_WORDS: [&str; 4] = ["auth", "sig", "pass", "cert"];
/// Prefixes of annotations that are kept. The last applied configuration, a copy of the whole object, is none of them.
const KEPT_ANNOTATIONS: [&str; 5] = [
    "plimsoll.dev/",
    "autoscaling.keda.sh/",
    "scaledobject.keda.sh/",
    "autoscaling.alpha.kubernetes.io/",
    "meta.helm.sh/",
];
/// Characters that end a value in a connection string, a query or a sentence.
const VALUE_END_CHARS: &[char] = &[';', '&', ' ', '"', '\'', '\\', ',', '\n', '\t', ')', '}'];
/// Characters that end the value of an `Authorization` or `Cookie` header, which is several words.
const HEADER_VALUE_END_CHARS: &[char] = &['"', '\'', '\\', '\n'];
/// Characters around the names and values of quoted texts.
const QUOTES: &[char] = &[' ', '"', '\'', '\\'];

/// Removes secrets from an object or a list.
pub(super) fn object(value: &mut Value) {
    walk(value, "", "");
}

/// `name` is the field that holds the value, and `parent` the field around it.
fn walk(value: &mut Value, name: &str, parent: &str) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("managedFields");
            if name == "annotations" {
                fields.retain(|key, _| KEPT_ANNOTATIONS.iter().any(|kept| key.starts_with(kept)));
            }
            // A variable of a container, a header, or the like.
            let is_variable = fields.contains_key("name") && fields.contains_key("value");
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "value" && is_variable => REDACTED.clone_into(text),
                    // The path of a webhook is often its password.
                    Value::String(text) if key == "uri" => *text = origin(text),
                    _ => walk(value, key, name),
                }
            }
        }
        Value::Array(items) => {
            // A flag and its value may be two words of a command line.
            let mut after_secret_flag = false;
            for item in items {
                let is_flag = |word: &str| word.starts_with('-') && !word.contains('=');
                let is_secret_flag = item.as_str().is_some_and(|word| is_flag(word) && is_secret(word));
                match item {
                    Value::String(text) if after_secret_flag => REDACTED.clone_into(text),
                    _ => walk(item, name, parent),
                }
                after_secret_flag = is_secret_flag;
            }
        }
        // References name a Secret and a key in it, which are no secrets.
        Value::String(text) if is_secret(name) && !is_reference(parent) => REDACTED.clone_into(text),
        Value::String(text) => *text = self::text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_reference(name: &str) -> bool {
    name.ends_with("Ref") || name.ends_with("From")
}

/// Whether a field or parameter of this name holds a secret.
fn is_secret(name: &str) -> bool {
    // The names of variables and objects are no secrets.
    if ["FromEnv", "Name", "Ref", "Kind"].iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    name.ends_with("key")
        || SECRET_WORDS.contains(&name.as_str())
        || SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Scheme and host of a URL.
fn origin(url: &str) -> String {
    let url = text(url);
    let Some((scheme, rest)) = url.split_once("://") else { return REDACTED.to_owned() };
    format!("{scheme}://{}", rest.split(['/', '?', '#']).next().unwrap_or_default())
}

/// Removes credentials of URLs, values of secret names and flags, and bearer tokens from a text.
pub(super) fn text(text: &str) -> String {
    pairs(&flags(&bearers(&users(text))))
}

/// `https://user:password@host` and `user:password@tcp(host)` without user and password.
fn users(text: &str) -> String {
    text.split_inclusive([' ', '"', '\n']).map(without_user).collect()
}

fn without_user(word: &str) -> String {
    // A password may have an `@` or a `/`, so that the last `@` ends it.
    let Some((user, host)) = word.rsplit_once('@') else { return word.to_owned() };
    let scheme = user.find("://").and_then(|at| user.get(..at + 3));
    // The digest of an image follows its tag.
    if host.starts_with("sha256:") || (scheme.is_none() && !user.contains(':')) {
        return word.to_owned();
    }
    format!("{}{REDACTED}@{host}", scheme.unwrap_or_default())
}

/// `password=…` and `password: …` without the value.
fn pairs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let name = last_name(before.trim_end_matches(QUOTES));
        let sign_end =
            1 + after.get(1..).map_or(0, |after| after.len() - after.trim_start_matches(QUOTES).len());
        let (sign, value) = after.split_at(sign_end);
        out.push_str(sign);
        rest = value;
        if is_secret(name) {
            let lower = name.to_ascii_lowercase();
            let is_header = lower.ends_with("authorization") || lower.ends_with("cookie");
            let end_chars = if is_header { HEADER_VALUE_END_CHARS } else { VALUE_END_CHARS };
            rest = without_value(&mut out, sign, value, end_chars);
        }
    }
    out.push_str(rest);
    out
}

/// `--password …` without the value: a command line for a shell is one text.
fn flags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, after) = rest.split_at(at);
        let (sign, value) = after.split_at(after.len() - after.trim_start_matches(QUOTES).len());
        out.push_str(before);
        out.push_str(sign);
        rest = value;
        let name = last_name(before);
        if name.starts_with('-') && is_secret(name) {
            rest = without_value(&mut out, sign, value, VALUE_END_CHARS);
        }
    }
    out.push_str(rest);
    out
}

/// The name at the end of a text.
fn last_name(text: &str) -> &str {
    text.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).next().unwrap_or_default()
}

/// Replaces the value after a sign, and returns what follows. A value whose sign ends with a quote ends with it too.
fn without_value<'a>(out: &mut String, sign: &str, value: &'a str, end_chars: &[char]) -> &'a str {
    let end = match sign.chars().next_back() {
        Some(quote @ ('"' | '\'')) => value.find(quote),
        _ => value.find(end_chars),
    };
    let end = end.unwrap_or(value.len());
    if end > 0 {
        out.push_str(REDACTED);
    }
    value.get(end..).unwrap_or_default()
}

/// `Bearer …` without the token.
fn bearers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_bearer = false;
    for part in text.split_inclusive(' ') {
        if after_bearer && !part.trim().is_empty() {
            out.push_str(REDACTED);
            out.push_str(if part.ends_with(' ') { " " } else { "" });
        } else {
            out.push_str(part);
        }
        // The scheme may follow a sign: `Authorization=Bearer …`.
        let word = part.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        after_bearer = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
    }
    out
}
