//! The query parameters of a list.

use api::gotext::{self, quote};
use api::selector::{FieldSelector, Selector};

use crate::query::Query;
use crate::status::{Status, StatusCause, StatusDetails};

/// The fields by which objects can be selected.
const SELECTABLE_FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// The options of a list that matter here.
#[derive(Debug)]
pub(super) struct ListOptions {
    pub(super) labels: Selector,
    pub(super) fields: FieldSelector,
    pub(super) watch: bool,
}

impl ListOptions {
    /// Numbers are read first, then selectors.
    pub(super) fn read(query: &Query) -> Result<Self, Status> {
        for name in ["timeoutSeconds", "limit"] {
            query.get(name).map_or(Ok(()), integer).map_err(Status::bad_request)?;
        }
        let labels = query.labels().cloned();
        let labels = labels.map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default());
        let fields = fields.map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(Self { labels, fields, watch: query.is_set("watch") })
    }

    /// Whether only fields are named that everything has.
    pub(super) fn with_known_fields(self) -> Result<Self, Status> {
        let known = self.fields.restricted_to(&SELECTABLE_FIELDS);
        known.map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(self)
    }

    /// Whether a field selector selects just the object that the path names, if both are given.
    pub(super) fn agreeing_with(self, name: &str) -> Result<Self, Status> {
        let is_other = !name.is_empty() && !self.fields.terms().is_empty();
        if is_other && self.fields.exact("metadata.name") != Some(name) {
            return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        Ok(self)
    }
}

/// The option that most rules are about.
const RESOURCE_VERSION_MATCH: &str = "resourceVersionMatch";

/// Whether options that exclude each other are set.
pub(super) fn consistent(query: &Query) -> Result<(), Status> {
    let causes = if query.is_set("watch") { watch_faults(query) } else { list_faults(query) };
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(StatusDetails::new("meta.k8s.io", "ListOptions", ""), causes))
}

fn list_faults(query: &Query) -> Vec<StatusCause> {
    let given = |key: &str| query.get(key).unwrap_or_default();
    let mut causes = Vec::new();
    let matching = given(RESOURCE_VERSION_MATCH);
    if !matching.is_empty() {
        if given("resourceVersion").is_empty() {
            causes.push(forbidden(
                RESOURCE_VERSION_MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !given("continue").is_empty() {
            causes.push(forbidden(
                RESOURCE_VERSION_MATCH,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            causes.push(unsupported(matching, "\"Exact\", \"NotOlderThan\", \"\""));
        } else if matching == "Exact" && given("resourceVersion") == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(forbidden(RESOURCE_VERSION_MATCH, why));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        causes.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    causes
}

/// The API has no watches, but their options are checked before the watch is refused.
fn watch_faults(query: &Query) -> Vec<StatusCause> {
    let given = |key: &str| query.get(key).unwrap_or_default();
    let (matching, begins_with_list) =
        (given(RESOURCE_VERSION_MATCH), query.get("sendInitialEvents").is_some());
    let mut causes = Vec::new();
    if begins_with_list && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(forbidden(RESOURCE_VERSION_MATCH, why));
    }
    if matching.is_empty() {
        return causes;
    }
    if !begins_with_list {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(forbidden(RESOURCE_VERSION_MATCH, why));
    }
    if matching != "NotOlderThan" {
        causes.push(unsupported(matching, "\"NotOlderThan\""));
    }
    if !given("continue").is_empty() {
        causes.push(forbidden(
            RESOURCE_VERSION_MATCH,
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    causes
}

fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!("Forbidden: {why}"),
        field: field.to_owned(),
    }
}

/// A value of `resourceVersionMatch` that is not one of these.
fn unsupported(matching: &str, supported: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueNotSupported".to_owned(),
        // Kubernetes writes values of named string types as JSON.
        message: format!(
            "Unsupported value: {}: supported values: {supported}",
            gotext::json(matching).unwrap_or_default()
        ),
        field: RESOURCE_VERSION_MATCH.to_owned(),
    }
}

/// Whether a text is a whole number, in the words of Go.
fn integer(text: &str) -> Result<(), String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let wrong = |why| format!("strconv.ParseInt: parsing {}: {why}", quote(text));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    text.parse::<i64>().map(|_| ()).map_err(|_| wrong("value out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_selector_agrees_with_the_name_of_the_path() {
        let read = |text: &str| ListOptions::read(&Query::parse(text)).unwrap();
        assert!(read("fieldSelector=metadata.name%3Dshop").agreeing_with("shop").is_ok());
        assert!(read("fieldSelector=metadata.name%3Dshop").agreeing_with("").is_ok());
        assert!(read("").agreeing_with("shop").is_ok());
        assert!(read("fieldSelector=metadata.name!%3Dshop").agreeing_with("shop").is_err());
        assert!(read("fieldSelector=metadata.namespace%3Dshop").agreeing_with("shop").is_err());
    }

    #[test]
    fn options_of_watches_are_checked_too() {
        let faults = |text: &str| {
            let query = Query::parse(text);
            let causes = if query.is_set("watch") { watch_faults(&query) } else { list_faults(&query) };
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        assert!(faults("watch=true").is_empty() && faults("watch=1&resourceVersion=0").is_empty());
        assert!(faults("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").is_empty());
        assert_eq!(
            faults("watch=true&resourceVersionMatch=Exact&continue=x"),
            [
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                "Unsupported value: \"Exact\": supported values: \"NotOlderThan\"",
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ]
        );
        assert_eq!(
            faults("watch=true&sendInitialEvents=true"),
            ["Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"]
        );
        assert_eq!(
            faults("resourceVersionMatch=%3C1&resourceVersion=1"),
            ["Unsupported value: \"\\u003c1\": supported values: \"Exact\", \"NotOlderThan\", \"\""]
        );
        assert_eq!(
            faults("resourceVersionMatch=Exact&resourceVersion=0"),
            ["Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""]
        );
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        assert!(["5", "-1", "+7", "9223372036854775807"].iter().all(|text| integer(text).is_ok()));
        assert_eq!(integer("").unwrap_err(), "strconv.ParseInt: parsing \"\": invalid syntax");
        assert_eq!(
            integer("9223372036854775808").unwrap_err(),
            "strconv.ParseInt: parsing \"9223372036854775808\": value out of range"
        );
        assert!(["+-1", "1_0", "0x1", " 1"].iter().all(|text| integer(text).is_err()));
    }
}
