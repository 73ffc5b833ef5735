//! Validating webhooks.

mod validate;

use serde_json::{Value, json};

use super::json::{each, fill, part, part_of, tidy};
use super::{NONE, Rules};

/// The rules of validating webhook configurations.
pub const RULES: Rules =
    Rules { default, validate: validate::check, validate_update: |new, _| validate::check(new), ..NONE };

fn default(configuration: &mut Value, _version: &str) {
    tidy(configuration);
    for webhook in each(configuration, "webhooks") {
        fill(webhook, "failurePolicy", "Fail");
        fill(webhook, "matchPolicy", "Equivalent");
        fill(webhook, "namespaceSelector", json!({}));
        fill(webhook, "objectSelector", json!({}));
        fill(webhook, "timeoutSeconds", 10);
        if let Some(service) = part_of(part(webhook, "clientConfig"), "service") {
            fill(service, "port", 443);
        }
        for rule in each(webhook, "rules") {
            fill(rule, "scope", "*");
        }
    }
}
