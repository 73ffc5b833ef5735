//! The query parameters of a list.

use api::gotext::quote;
use api::selector::{FieldSelector, Selector};

use crate::query::Query;
use crate::status::{Status, StatusCause, StatusDetails};

/// The fields by which objects can be selected.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

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
        let known = self.fields.restricted_to(&FIELDS);
        known.map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(self)
    }
}

/// Whether options that exclude each other are set.
pub(super) fn consistent(query: &Query) -> Result<(), Status> {
    let given = |key: &str| query.get(key).unwrap_or_default();
    if query.is_set("watch") {
        return Ok(());
    }
    let mut causes = Vec::new();
    let mut forbid = |field: &str, why: &str| {
        causes.push(StatusCause {
            reason: "FieldValueForbidden".to_owned(),
            message: format!("Forbidden: {why}"),
            field: field.to_owned(),
        });
    };
    let matching = given("resourceVersionMatch");
    if !matching.is_empty() {
        let field = "resourceVersionMatch";
        if given("resourceVersion").is_empty() {
            forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !given("continue").is_empty() {
            forbid(field, "resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let text = quote(matching);
            causes.push(StatusCause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {text}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                ),
                field: field.to_owned(),
            });
        } else if matching == "Exact" && given("resourceVersion") == "0" {
            forbid(field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
    }
    if query.get("sendInitialEvents").is_some() {
        causes.push(StatusCause {
            reason: "FieldValueForbidden".to_owned(),
            message: "Forbidden: sendInitialEvents is forbidden for list".to_owned(),
            field: "sendInitialEvents".to_owned(),
        });
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(StatusDetails::new("meta.k8s.io", "ListOptions", ""), causes))
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
