//! Conversion between versions and back (`conversion.jsonl`).

use anyhow::Context as _;
use api::autoscaling::{Defaults as _, Version, Versioned};
use serde_json::{Value, json};

use super::Difference;
use super::validation::compare;

pub(crate) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let version = |name: &str| {
        record[name]
            .as_str()
            .and_then(Version::from_api_version)
            .with_context(|| format!("`{name}` is no known version"))
    };
    let (from, to) = (version("from")?, version("to")?);
    let mut differences = Vec::new();

    let mut object = Versioned::decode_as(&record["object"], from)?;
    object.set_defaults();
    compare("defaulted", &record["defaulted"], &json!(object), &mut differences);
    let stored = object.into_v2()?;

    let same = json!(Versioned::from_v2(stored.clone(), from));
    compare("sameVersion", &record["sameVersion"], &same, &mut differences);
    let converted = json!(Versioned::from_v2(stored, to));
    compare("converted", &record["converted"], &converted, &mut differences);

    match back(&converted, to, from) {
        Ok(back) => compare("back", &record["back"], &back, &mut differences),
        Err(error) => compare("backError", &record["backError"], &json!(error.to_string()), &mut differences),
    }
    Ok(differences)
}

/// Reads the converted object as a client would have sent it, and serves it in its first version again.
fn back(converted: &Value, to: Version, from: Version) -> anyhow::Result<Value> {
    let mut object = Versioned::decode_as(converted, to)?;
    object.set_defaults();
    let stored = object.into_v2()?;
    Ok(json!(Versioned::from_v2(stored, from)))
}
