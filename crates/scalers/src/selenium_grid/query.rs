//! The GraphQL request to the grid, and the number of nodes that its sessions need.

use serde_json::{Map, Value, json};

use crate::responses::{excerpt, hidden, json as read, kind};
use crate::{ScalerError, tree};

/// Capabilities of a trigger's nodes. A request matches if its capabilities are equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) browser: String,
    /// Name of the browser in running sessions, if it differs.
    pub(super) session_browser: String,
    pub(super) version: String,
    pub(super) platform: String,
    /// Whether managed downloads are enabled.
    pub(super) downloads: bool,
    /// Whether nodes with running sessions count.
    pub(super) ongoing: bool,
    /// Further capabilities, such as `myApp:version`.
    pub(super) capabilities: Map<String, Value>,
    /// Maximum number of sessions per node.
    pub(super) sessions: u64,
}

/// Prefixes of standard capabilities, which do not distinguish nodes of the same browser.
const STANDARD_CAPABILITY_PREFIXES: [&str; 6] = ["goog:", "moz:", "ms:", "safari:", "se:", "webdriver"];

/// The request body.
pub(super) fn request_body() -> String {
    let query = "{ nodesInfo { nodes { id, status, sessionCount, maxSession, slotCount, stereotypes, \
                 sessions { id, capabilities, slot { id, stereotype } } } }, sessionsInfo { sessionQueueRequests } }";
    json!({ "query": query }).to_string()
}

/// The number of nodes needed: those with running sessions, and those for the rest of the queue.
pub(super) fn nodes(status: u16, body: &[u8], node: &Node) -> Result<u64, ScalerError> {
    if status != 200 {
        bail!("selenium grid returned {status}: {}", hidden(body));
    }
    let answer = read(body)?;
    if let Some(first) = answer.pointer("/errors/0") {
        let message = first.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        bail!("selenium grid answered with an error: {}", excerpt(message));
    }
    let queue = list(&answer, "/data/sessionsInfo/sessionQueueRequests")?;
    let queued = queue.iter().filter_map(inner).filter(|request| node.takes(request)).count() as u64;
    let (mut busy, mut free) = (0_u64, 0_u64);
    for other in list(&answer, "/data/nodesInfo/nodes")? {
        let sessions = other.get("sessions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if sessions.iter().any(|session| node.runs(session)) {
            busy = busy.saturating_add(1);
            let most = other.get("maxSession").and_then(Value::as_u64).unwrap_or(node.sessions);
            // A draining node takes no new sessions.
            if other.get("status").and_then(Value::as_str) == Some("UP") {
                free = free.saturating_add(most.saturating_sub(sessions.len() as u64));
            }
        }
    }
    let busy = if node.ongoing { busy } else { 0 };
    Ok(busy.saturating_add(queued.saturating_sub(free).div_ceil(node.sessions.max(1))))
}

impl Node {
    /// Whether a queued request matches these nodes.
    fn takes(&self, request: &Map<String, Value>) -> bool {
        let version = text(request, "browserVersion");
        let version_fits = match (version, &*self.version) {
            ("" | "stable", "") => true,
            ("", _) | (_, "") => false,
            (requested, have) => have.starts_with(requested),
        };
        let downloads =
            request.get("se:downloadsEnabled").is_some_and(|requested| requested == &Value::Bool(true));
        self.named(text(request, "browserName"))
            && version_fits
            && same_platform(text(request, "platformName"), &self.platform)
            && (self.downloads || !downloads)
            && self.capabilities.iter().all(|(name, value)| request.get(name) == Some(value))
            && request
                .iter()
                .filter(|(name, _)| own(name))
                .all(|(name, _)| self.capabilities.contains_key(name))
    }

    /// Whether a session runs on such a node. Capabilities missing in the trigger match anything, because a session
    /// that is not counted would lose its node.
    fn runs(&self, session: &Value) -> bool {
        let stereotype = session.pointer("/slot/stereotype").and_then(inner);
        let Some(have) = stereotype.or_else(|| session.get("capabilities").and_then(inner)) else {
            return false;
        };
        let version = text(&have, "browserVersion");
        (self.browser.is_empty() || self.named(text(&have, "browserName")))
            && (self.version.is_empty() || version.is_empty() || version.starts_with(&self.version))
            && (any(&self.platform) || same_platform(text(&have, "platformName"), &self.platform))
            && self.capabilities.iter().all(|(name, value)| have.get(name).is_none_or(|other| other == value))
    }

    fn named(&self, browser: &str) -> bool {
        browser.eq_ignore_ascii_case(&self.browser)
            || (!self.session_browser.is_empty() && browser.eq_ignore_ascii_case(&self.session_browser))
    }
}

/// Whether a capability is a custom one.
fn own(name: &str) -> bool {
    name.contains(':') && !STANDARD_CAPABILITY_PREFIXES.iter().any(|vendor| name.starts_with(vendor))
}

fn any(platform: &str) -> bool {
    platform.is_empty() || platform.eq_ignore_ascii_case("any")
}

fn same_platform(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (any(one) && any(other))
}

fn text<'a>(of: &'a Map<String, Value>, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Decodes capabilities, which are JSON in a string.
fn inner(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::String(text) => match tree::from_slice(text.as_bytes()) {
            Ok(Value::Object(map)) => Some(map),
            _ => None,
        },
        Value::Object(map) => Some(map.clone()),
        _ => None,
    }
}

fn list<'a>(answer: &'a Value, pointer: &str) -> Result<&'a [Value], ScalerError> {
    let found = answer.pointer(pointer);
    let list = found.and_then(Value::as_array).map(Vec::as_slice);
    let path = pointer.trim_start_matches('/').replace('/', ".");
    list.ok_or_else(|| scaler_error!("the answer has {} at {path} instead of a list", kind(found)))
}
