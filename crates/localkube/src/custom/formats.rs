//! The formats of strings and numbers that the API server checks. A few more that no Kubernetes API uses (colours,
//! credit cards, book numbers) are accepted unchecked, like unknown formats.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// A format that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format(&'static str);

const KNOWN_FORMATS: &[&str] = &[
    "int32",
    "int64",
    "float",
    "double",
    "date-time",
    "datetime",
    "date",
    "byte",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "ipv4",
    "ipv6",
    "cidr",
    "email",
    "hostname",
    "uri",
    "duration",
    "mac",
    "password",
    "k8s-short-name",
    "k8s-long-name",
];

impl Format {
    /// The format of this name, if it is checked.
    pub(crate) fn known(name: &str) -> Option<Self> {
        KNOWN_FORMATS.iter().find(|known| **known == name).map(|known| Self(known))
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.0
    }

    /// Whether a string has this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self.0 {
            "date-time" | "datetime" => date_time(text),
            "date" => date(text),
            "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
            "uuid" | "uuid3" | "uuid4" | "uuid5" => matches(&UUID, text),
            "ipv4" => ipv4(text),
            "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
            "cidr" => cidr(text),
            "email" => email(text),
            "hostname" => matches(&HOST, text) && text.len() <= 255,
            "uri" => uri(text),
            "duration" => duration(text),
            "mac" => matches(&MAC, text),
            "k8s-short-name" => api::names::dns_label_faults(text).is_empty(),
            "k8s-long-name" => api::names::subdomain_faults(text).is_empty(),
            _ => true,
        }
    }

    /// Whether an integer is in range.
    pub(crate) fn holds_integer(self, number: f64) -> bool {
        self.0 != "int32" || (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
    }

    /// Whether a number is in range.
    pub(crate) fn holds_number(self, number: f64) -> bool {
        self.0 != "float" || number.abs() <= f64::from(f32::MAX)
    }
}

type Pattern = LazyLock<Option<Regex>>;

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

static UUID: Pattern = LazyLock::new(|| {
    Regex::new(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
// The server's rule is unusual: one word, or several of which the last has at least two letters.
static HOST: Pattern = LazyLock::new(|| {
    Regex::new(r"^([a-zA-Z0-9\p{L}]([a-zA-Z0-9\-\p{L}]{0,61}[a-zA-Z0-9\p{L}])?\.)*[a-zA-Z\p{L}]{2,63}$").ok()
});
static MAC: Pattern = LazyLock::new(|| {
    Regex::new(
        r"^(?i)([0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(-[0-9a-f]{2}){5}|[0-9a-f]{4}(\.[0-9a-f]{4}){2}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|[0-9a-f]{4}(\.[0-9a-f]{4}){3})$",
    )
    .ok()
});
static DURATION: Pattern = LazyLock::new(|| {
    let units = "ns|us|µs|μs|ms|s|m|h|d|w|nanos|micros|millis|milli|micro|nano|secs?|seconds?|mins?|minutes?|hrs?|hours?|\
                 days?|wks?|weeks?";
    Regex::new(&format!(r"^(?i)[-+]?(\s*\d+(\.\d*)?\s*({units}))+$")).ok()
});
static DATE_TIME: Pattern = LazyLock::new(|| {
    Regex::new(r"^(?i)(\d{4}-\d{2}-\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})$").ok()
});

fn date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let below = |part: Option<regex::Match<'_>>, limit: u32| {
        part.and_then(|part| part.as_str().parse::<u32>().ok()).is_some_and(|number| number < limit)
    };
    DATE_TIME.as_ref().and_then(|pattern| pattern.captures(text)).is_some_and(|parts| {
        parts.get(1).is_some_and(|part| date(part.as_str()))
            && below(parts.get(2), 24)
            && below(parts.get(3), 60)
            && below(parts.get(4), 60)
    })
}

/// Leading zeros are accepted.
fn ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let byte = |part: &&str| {
        (1..=3).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u8>().is_ok()
    };
    parts.len() == 4 && parts.iter().all(byte)
}

fn cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| {
        let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
            (Ok(_), _) => 32,
            (_, Ok(_)) => 128,
            _ => return false,
        };
        bits.bytes().all(|b| b.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

/// An address with or without a display name.
fn email(text: &str) -> bool {
    let address = match text.split_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    address.split_once('@').is_some_and(|(who, place)| {
        let plain = |part: &str| {
            !part.is_empty() && !part.contains([' ', '@', '<', '>', ',', ';', ':', '"', '(', ')'])
        };
        let quoted = who.len() > 2 && who.starts_with('"') && who.ends_with('"');
        (quoted || plain(who)) && plain(place) && !place.starts_with('.') && !place.ends_with('.')
    })
}

/// A URI with a scheme, or an absolute path.
fn uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    let scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let rest = match text.split_once(':') {
        Some((start, rest)) if scheme(start) => rest,
        _ => return text.starts_with('/'),
    };
    // Brackets in the host must be closed.
    let host =
        rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    host.contains('[') == host.contains(']')
}

/// Go's duration syntax with some longer unit names.
fn duration(text: &str) -> bool {
    text == "0" || matches(&DURATION, text)
}
