//! Addresses, responses and values, without IO.

use serde::Deserialize;

use crate::ParseError;
use crate::responses::excerpt;
use crate::tree;
use crate::web::{escaped, path_escaped, path_unescaped};

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Messages.
    #[default]
    QueueLength,
    /// Messages that are published per second.
    MessageRate,
    /// Messages that are delivered per second.
    DeliverGetRate,
    /// Messages that are published for each that is delivered.
    PublishedToDeliveredRatio,
    /// Seconds until the queue is empty.
    ExpectedQueueConsumptionTime,
}

/// How several queues are aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Operation {
    /// The sum.
    #[default]
    Sum,
    /// The average.
    Average,
    /// The largest.
    Max,
}

/// Measurements of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Queue {
    /// Messages in it.
    pub(super) messages: f64,
    /// Messages published per second.
    pub(super) published: f64,
    /// Messages delivered per second.
    pub(super) delivered: f64,
}

impl Mode {
    /// Parses a name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "QueueLength" => Self::QueueLength,
            "MessageRate" => Self::MessageRate,
            "DeliverGetRate" => Self::DeliverGetRate,
            "PublishedToDeliveredRatio" => Self::PublishedToDeliveredRatio,
            "ExpectedQueueConsumptionTime" => Self::ExpectedQueueConsumptionTime,
            _ => return None,
        })
    }

    /// The value of a queue, and whether it is active.
    pub(super) fn measure(self, queue: &Queue, activation: f64) -> (f64, bool) {
        let Queue { messages, published, delivered } = *queue;
        match self {
            Self::QueueLength => (messages, messages > activation),
            Self::MessageRate => (published, published > activation || messages > activation),
            Self::DeliverGetRate => (delivered, delivered > activation),
            Self::PublishedToDeliveredRatio => {
                let stuck = published > 0.0 && delivered == 0.0;
                let ratio = if stuck {
                    activation
                } else if delivered == 0.0 {
                    0.0
                } else {
                    published / delivered
                };
                (ratio, stuck || ratio > activation)
            }
            Self::ExpectedQueueConsumptionTime => {
                if delivered == 0.0 {
                    return (activation, true);
                }
                let time = (published - delivered) / delivered + messages / delivered;
                (time, time > activation)
            }
        }
    }
}

impl Operation {
    /// Parses a name.
    pub(super) fn parse(name: &str) -> Result<Self, ParseError> {
        match name {
            "sum" => Ok(Self::Sum),
            "avg" => Ok(Self::Average),
            "max" => Ok(Self::Max),
            other => Err(format!("operation mode {other} must be one of sum, avg or max").into()),
        }
    }

    fn of(self, numbers: impl Iterator<Item = f64>) -> f64 {
        let (sum, max, count) = numbers.fold((0.0, 0.0, 0.0), |(sum, max, count), number| {
            (sum + number, f64::max(max, number), count + 1.0)
        });
        match self {
            Self::Max => max,
            Self::Average if count > 0.0 => sum / count,
            Self::Sum | Self::Average => sum,
        }
    }

    /// Aggregates queues; no queues count as an empty one.
    pub(super) fn merge(self, queues: &[Queue]) -> Queue {
        Queue {
            messages: self.of(queues.iter().map(|queue| queue.messages)),
            published: self.of(queues.iter().map(|queue| queue.published)),
            delivered: self.of(queues.iter().map(|queue| queue.delivered)),
        }
    }
}

/// A parsed address. It has no Debug, because it may contain a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct RabbitmqAddress {
    /// In lower case.
    pub(super) scheme: String,
    /// User and password, without escapes.
    pub(super) user: Option<(String, String)>,
    /// Host, and port if there is one; an IPv6 address is in brackets.
    pub(super) host: String,
    /// All that follows, up to the query.
    pub(super) path: String,
}

/// Parses an address. Errors do not quote it, because it may contain a password.
pub(super) fn address(text: &str) -> Result<RabbitmqAddress, ParseError> {
    let scheme = scheme(text)?;
    let rest = text.get(scheme.len()..).unwrap_or_default().strip_prefix("://");
    let rest = rest.ok_or("it must begin with amqp://, amqps://, http:// or https://")?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let slash = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            (Some((unescaped(user), unescaped(password))), host)
        }
        None => (None, authority),
    };
    if host.is_empty() {
        return Err("there is no host in it".into());
    }
    Ok(RabbitmqAddress {
        scheme: scheme.to_ascii_lowercase(),
        user,
        host: host.to_owned(),
        path: path.to_owned(),
    })
}

impl RabbitmqAddress {
    /// Host without brackets, and port.
    pub(super) fn host_and_port(&self) -> Result<(String, u16), ParseError> {
        let (host, port) = match self.host.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or("a bracket is not closed")?,
            None => self.host.find(':').map_or((&*self.host, ""), |colon| self.host.split_at(colon)),
        };
        let port = match port.trim_start_matches(':') {
            "" if self.scheme == "amqps" => 5671,
            "" => 5672,
            port => port.parse().map_err(|_| format!("{port:?} is no port"))?,
        };
        Ok((host.to_owned(), port))
    }

    /// The virtual host of an AMQP address: its whole path.
    pub(super) fn virtual_host(&self) -> String {
        match self.path.strip_prefix('/').unwrap_or_default() {
            "" => "/".to_owned(),
            path => unescaped(path),
        }
    }
}

/// The scheme of an address as Go's `url.Parse` finds it; empty if there is none, an error if Go refuses the address.
pub(super) fn scheme(text: &str) -> Result<&str, ParseError> {
    let bad = |reason: &str| Err(reason.into());
    if text.chars().any(char::is_control) {
        return bad("it has control characters in it");
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    let (first, after) = text.split_at(end);
    let is_scheme = after.starts_with(':') && first.starts_with(|c: char| c.is_ascii_alphabetic());
    if after.starts_with(':') && first.is_empty() {
        return bad("it has no scheme");
    }
    let (scheme, rest) = if is_scheme { (first, after.get(1..).unwrap_or_default()) } else { ("", text) };
    let rest = rest.split('#').next().unwrap_or_default();
    let path = rest.split('?').next().unwrap_or_default();
    if scheme.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
        return bad("its first part has a colon in it");
    }
    if !is_scheme || path.starts_with('/') {
        let broken = path.match_indices('%').any(|(at, _)| {
            !path.get(at + 1..at + 3).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        });
        if broken {
            return bad("it has a % that is followed by no code");
        }
    }
    if let Some(authority) = path.strip_prefix("//").filter(|_| is_scheme) {
        let authority = authority.split('/').next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let port = match host.rfind(']') {
            Some(end) => host.get(end + 1..).unwrap_or_default(),
            None => host.rfind(':').and_then(|colon| host.get(colon..)).unwrap_or_default(),
        };
        if !port.chars().skip(1).all(|c| c.is_ascii_digit()) {
            return bad("its port is no number");
        }
        if host.contains(|c: char| c.is_whitespace() || "<>\"\\^`{|}".contains(c)) {
            return bad("its host has characters that no host has");
        }
    }
    Ok(scheme)
}

/// The management URL of a queue, or of all queues that match a regular expression.
pub(super) fn url(
    address: &RabbitmqAddress,
    virtual_host: &str,
    queue: &str,
    pattern: Option<i64>,
) -> String {
    let (base, last) = address.path.rsplit_once('/').unwrap_or(("", ""));
    let virtual_host = match (virtual_host, last) {
        ("" | "/", "") | ("/", _) => "%2F".to_owned(),
        ("", last) => last.to_owned(),
        (given, _) => path_escaped(given),
    };
    let RabbitmqAddress { scheme, host, .. } = address;
    let base_url = format!("{scheme}://{host}{base}/api/queues/{virtual_host}");
    match pattern {
        None => format!("{base_url}/{}", path_escaped(queue)),
        Some(size) => {
            let name = escaped(queue);
            format!("{base_url}?page=1&use_regex=true&pagination=false&name={name}&page_size={size}")
        }
    }
}

/// A queue in a response of the management API.
#[derive(Debug, Deserialize)]
struct QueueJson {
    messages: Option<f64>,
    messages_ready: Option<f64>,
    message_stats: Option<Stats>,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    publish_details: Rate,
    deliver_get_details: Rate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rate {
    rate: f64,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Option<Vec<QueueJson>>,
    #[serde(default)]
    page_count: i64,
}

/// Decodes a response of the management API.
pub(super) fn queues(
    body: &[u8],
    pattern: bool,
    only_ready: bool,
    strict: bool,
) -> Result<Vec<Queue>, ParseError> {
    let no_json = || ParseError::from("the body is not a response of the management API");
    tree::check_values(body).map_err(|error| error.to_string())?;
    let reported = if pattern {
        let page: Page = serde_json::from_slice(body).map_err(|_| no_json())?;
        if page.page_count > 1 {
            return Err("regex matches more queues than can be recovered at once".into());
        }
        match page.items {
            Some(items) => items,
            // KEDA treats any JSON as a page without queues, and so as an empty queue.
            None if strict => Vec::new(),
            None => return Err(no_json()),
        }
    } else {
        vec![serde_json::from_slice(body).map_err(|_| no_json())?]
    };
    reported.into_iter().map(|reported| queue(&reported, only_ready, strict)).collect()
}

fn queue(reported: &QueueJson, only_ready: bool, strict: bool) -> Result<Queue, ParseError> {
    let messages = match if only_ready { reported.messages_ready } else { reported.messages } {
        Some(messages) => messages,
        // The field is missing for some seconds after the queue was created. KEDA treats it as 0.
        None if strict => 0.0,
        None => {
            let name = excerpt(&reported.name);
            return Err(format!("the server does not know yet how long queue {name} is").into());
        }
    };
    let stats = reported.message_stats.as_ref();
    Ok(Queue {
        messages,
        published: stats.map_or(0.0, |stats| stats.publish_details.rate),
        delivered: stats.map_or(0.0, |stats| stats.deliver_get_details.rate),
    })
}

/// Decodes `%XX`; invalid escapes are kept.
fn unescaped(text: &str) -> String {
    path_unescaped(text).unwrap_or_else(|| text.to_owned())
}
