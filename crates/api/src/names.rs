//! Kubernetes' rules for names, labels and path segments, with their messages.

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Errors of a label key (also called a qualified name), one message each.
pub fn label_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > 253 {
                    faults.push("prefix part must be no more than 253 bytes".to_owned());
                }
                if !is_subdomain(prefix) {
                    faults.push(format!("prefix part {SUBDOMAIN_RULE}"));
                }
            }
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        faults.push(format!("name part {NAME_RULE}"));
    }
    faults
}

/// Errors of a label value, one message each.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > 63 {
        faults.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(VALUE_RULE.to_owned());
    }
    faults
}

/// Errors of a name that must be a DNS subdomain.
pub fn subdomain_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 253 {
        faults.push("must be no more than 253 characters".to_owned());
    }
    if !is_subdomain(name) {
        faults.push(SUBDOMAIN_RULE.to_owned());
    }
    faults
}

/// Errors of a name that must be a DNS label.
pub fn dns_label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 63 {
        faults.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(name) {
        faults.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            LABEL_RULE.to_owned()
        });
    }
    faults
}

/// Errors of a name that must be one segment of a URL path. `.` and `..` end the check.
pub fn path_segment_faults(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|mark| name.contains(mark))
        .map(|mark| format!("may not contain '{mark}'"))
        .collect()
}

/// Letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bounded_by(bytes, |byte| byte.is_ascii_alphanumeric())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bounded_by(bytes, is_lower_alphanumeric) && bytes.iter().all(|b| is_lower_alphanumeric(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn bounded_by(bytes: &[u8], allowed: impl Fn(u8) -> bool) -> bool {
    bytes.first().is_some_and(|first| allowed(*first)) && bytes.last().is_some_and(|last| allowed(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys() {
        for good in ["a", "A_b-C.d", "k8s.io/name", "1", "a.b/c"] {
            assert!(label_key_faults(good).is_empty(), "{good}");
        }
        for (bad, count) in
            [("", 2), ("/a", 1), ("a/", 2), ("-/", 3), ("a/b/c", 1), ("A.B/c", 1), ("é", 1), ("a ", 1)]
        {
            assert_eq!(label_key_faults(bad).len(), count, "{bad}");
        }
        assert_eq!(label_key_faults(&"k".repeat(64)), ["name part must be no more than 63 bytes"]);
    }

    #[test]
    fn label_values() {
        for good in ["", "x", "v1.2.3", "a-b_c.d"] {
            assert!(label_value_faults(good).is_empty(), "{good}");
        }
        for bad in ["-", ".", "a-", "a b", "é", "a/b"] {
            assert_eq!(label_value_faults(bad).len(), 1, "{bad}");
        }
        assert_eq!(label_value_faults(&format!("-{}", "v".repeat(64))).len(), 2);
    }

    #[test]
    fn dns_names() {
        assert!(subdomain_faults("a.b-c.1").is_empty());
        assert_eq!(subdomain_faults("a..b").len(), 1);
        assert_eq!(subdomain_faults(&"n".repeat(254)), ["must be no more than 253 characters"]);
        assert_eq!(dns_label_faults("a.b"), ["must not contain dots"]);
        assert_eq!(dns_label_faults("-a").len(), 1);
        assert!(dns_label_faults("app-1").is_empty());
    }

    #[test]
    fn path_segments() {
        assert!(path_segment_faults("").is_empty());
        assert_eq!(path_segment_faults(".."), ["may not be '..'"]);
        assert_eq!(path_segment_faults("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
    }
}
