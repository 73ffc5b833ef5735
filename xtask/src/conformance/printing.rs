//! The table of `kubectl get hpa` (`printing.jsonl`).

use anyhow::Context as _;
use api::autoscaling::print::{self, COLUMNS, Row};
use api::autoscaling::{Defaults as _, Versioned};
use serde_json::{Value, json};

use super::Difference;
use super::validation::compare;

pub(crate) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let mut object = Versioned::decode(&record["object"])?;
    object.set_defaults();
    let object = object.into_v2()?;
    let now = record["now"].as_str().and_then(|now| now.parse().ok()).context("`now` is no time")?;

    let mut differences = Vec::new();
    compare("columns", &record["columns"], &json!(COLUMNS), &mut differences);
    compare("cells", &record["cells"], &json!(Row::new(&object, now).cells()), &mut differences);
    compare("text", &record["text"], &json!(print::table([&object], now).to_string()), &mut differences);
    Ok(differences)
}
