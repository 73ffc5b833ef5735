//! Collects validation errors in order, with the checks that many kinds share.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;

use api::field::{AsJson, FieldError, FieldErrorValue};
use api::names::{label_key_faults, label_value_faults};
use api::selector::LabelSelector;
use serde::Deserialize as _;
use serde_json::Value;

use super::json::{at, entries, has, list, text};

/// Error text for a changed immutable field.
pub(super) const IMMUTABLE: &str = "field is immutable";
/// Error text for a negative number.
pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";

/// Returns the errors of a name.
pub(super) type NameRule = fn(&str) -> Vec<String>;

/// The errors so far.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<FieldError>);

impl IntoIterator for Faults {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Faults> for Vec<FieldError> {
    fn from(faults: Faults) -> Self {
        faults.0
    }
}

impl Faults {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, fault: FieldError) {
        self.0.push(fault);
    }

    pub(super) fn extend(&mut self, others: impl IntoIterator<Item = FieldError>) {
        self.0.extend(others);
    }

    pub(super) fn invalid(
        &mut self,
        path: impl Display,
        value: impl FieldErrorValue,
        detail: impl Into<String>,
    ) {
        self.add(FieldError::invalid(path, value, detail));
    }

    pub(super) fn required(&mut self, path: impl Display) {
        self.add(FieldError::required(path, ""));
    }

    pub(super) fn forbidden(&mut self, path: impl Display, detail: impl Into<String>) {
        self.add(FieldError::forbidden(path, detail));
    }

    /// Requires a non-empty text; returns whether it is present.
    pub(super) fn present(&mut self, path: impl Display, text: &str) -> bool {
        if text.is_empty() {
            self.required(path);
        }
        !text.is_empty()
    }

    /// Requires a text that fulfils a rule.
    pub(super) fn name(&mut self, path: impl Display, name: &str, rule: NameRule) {
        if self.present(&path, name) {
            self.follows(path, name, rule);
        }
    }

    /// Requires that a text fulfils a rule.
    pub(super) fn follows(&mut self, path: impl Display, name: &str, rule: NameRule) {
        for wrong in rule(name) {
            self.invalid(&path, name, wrong);
        }
    }

    /// Requires one of several texts.
    pub(super) fn one_of(&mut self, path: impl Display, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.add(FieldError::not_supported(path, value, supported));
        }
    }

    /// Requires that a number is not negative, if it is set.
    pub(super) fn not_negative(&mut self, path: impl Display, value: Option<i64>) {
        if let Some(value) = value.filter(|value| *value < 0) {
            self.invalid(path, value, NEGATIVE);
        }
    }

    /// Requires that a number is within bounds.
    pub(super) fn within(&mut self, path: impl Display, value: i64, low: i64, high: i64) {
        if !(low..=high).contains(&value) {
            self.invalid(path, value, format!("must be between {low} and {high}, inclusive"));
        }
    }

    /// Requires a port number or name.
    pub(super) fn port(&mut self, path: impl Display, port: &Value) {
        match port.as_str() {
            Some(name) => self.follows(path, name, port_name_faults),
            None => self.within(path, port.as_i64().unwrap_or_default(), 1, 65535),
        }
    }

    /// Requires an IP address.
    pub(super) fn address(&mut self, path: impl Display, address: &str) {
        if address.parse::<IpAddr>().is_err() {
            self.invalid(path, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
    }

    /// Requires a CIDR.
    pub(super) fn range(&mut self, path: impl Display, range: &str) {
        let fits = |(address, bits): (&str, &str)| match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
            (Ok(address), Ok(bits)) => bits <= if address.is_ipv4() { 32 } else { 128 },
            _ => false,
        };
        if !range.split_once('/').is_some_and(fits) {
            self.invalid(path, range, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
    }

    /// Validates labels or a map selector.
    pub(super) fn labels(&mut self, path: impl Display, holder: &Value, field: &str) {
        for (key, value) in entries(holder, field) {
            self.follows(&path, key, label_key_faults);
            self.follows(&path, value.as_str().unwrap_or_default(), label_value_faults);
        }
    }

    /// Validates annotations.
    pub(super) fn annotations(&mut self, path: impl Display, holder: &Value, field: &str) {
        for (key, _) in entries(holder, field) {
            for wrong in label_key_faults(&key.to_lowercase()) {
                self.invalid(&path, key, wrong);
            }
        }
    }

    /// Validates a label selector.
    pub(super) fn selector(&mut self, path: &str, selector: &Value) {
        self.labels(format_args!("{path}.matchLabels"), selector, "matchLabels");
        for (i, expression) in list(selector, "matchExpressions").iter().enumerate() {
            let path = format!("{path}.matchExpressions[{i}]");
            let operator = text(expression, "operator");
            self.values(&path, operator, !list(expression, "values").is_empty());
            if !matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist") {
                let detail = "not a valid selector operator";
                self.invalid(format_args!("{path}.operator"), operator, detail);
            }
            self.follows(format_args!("{path}.key"), text(expression, "key"), label_key_faults);
        }
    }

    /// Requires that the values fit the operator.
    pub(super) fn values(&mut self, path: &str, operator: &str, given: bool) {
        let path = format_args!("{path}.values");
        match operator {
            "In" | "NotIn" if !given => {
                self.add(FieldError::required(path, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if given => {
                self.forbidden(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            _ => {}
        }
    }

    /// Requires that a field is unchanged.
    pub(super) fn unchanged(&mut self, path: &str, new: &Value, old: &Value) {
        let value = at(new, path);
        if value != at(old, path) {
            self.invalid(path, AsJson(value), IMMUTABLE);
        }
    }

    /// Requires that replica counts are not negative and do not exceed their totals.
    pub(super) fn counts(&mut self, status: &Value, counts: &[&str], parts: &[(&str, &str, &str)]) {
        let count = |name: &str| at(status, name).as_i64().unwrap_or_default();
        for name in counts {
            self.not_negative(format_args!("status.{name}"), Some(count(name)));
        }
        for (part, whole, words) in parts {
            if count(part) > count(whole) {
                let detail = format!("cannot be greater than {words}");
                self.invalid(format_args!("status.{part}"), count(part), detail);
            }
        }
    }
}

/// A map with sorted keys, as Go prints it; `None` if it is absent.
pub(super) fn sorted<'a>(value: &'a Value, path: &str) -> Option<BTreeMap<&'a str, &'a Value>> {
    has(value, path).then(|| entries(value, path).into_iter().collect())
}

/// Decodes a label selector.
pub(super) fn label_selector(value: &Value) -> LabelSelector {
    LabelSelector::deserialize(value).unwrap_or_default()
}

/// Errors of a port name.
pub(super) fn port_name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 15 {
        faults.push("must be no more than 15 characters");
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(plain) || name.is_empty() {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        faults.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push("must not begin or end with a hyphen");
    }
    faults.into_iter().map(str::to_owned).collect()
}

/// Errors of a ConfigMap or secret key.
pub(super) fn config_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if key.len() > 253 {
        faults.push("must be no more than 253 characters");
    }
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        faults.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    match key {
        "." => faults.push("must not be '.'"),
        ".." => faults.push("must not be '..'"),
        key if key.starts_with("..") => faults.push("must not start with '..'"),
        _ => {}
    }
    faults.into_iter().map(str::to_owned).collect()
}

/// Errors of a DNS-1035 label.
pub(crate) fn letter_label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 63 {
        faults.push("must be no more than 63 characters");
    }
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') || !name.bytes().all(fine) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        );
    }
    faults.into_iter().map(str::to_owned).collect()
}
