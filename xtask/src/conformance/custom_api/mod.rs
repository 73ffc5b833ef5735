//! The custom and external metrics APIs over HTTP (`custom_api.jsonl`).

pub(crate) mod exchange;
mod provider;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::provide::Compat;
use serde_json::Value;
use serve::metrics::Settings;
use serve::{App, Group, Local};

use super::Outcome;
use exchange::Improvement;
use provider::{Fixture, Listed};

/// Where we answer otherwise unless told to imitate (docs/compatibility.md).
const IMPROVED: &[Improvement] = &[
    Improvement {
        reason: "a malformed metricLabelSelector is the client's fault (400, not 500)",
        ids: &[
            "h-274", "h-275", "h-276", "h-277", "h-279", "h-280", "h-281", "h-282", "h-289", "h-290",
            "h-291", "h-292", "h-705", "h-712", "h-750", "h-764", "h-784", "h-798",
        ],
    },
    Improvement {
        reason: "aggregated discovery names the custom and external groups too",
        ids: &["h-690", "h-692"],
    },
    Improvement {
        reason: "a list of no metrics holds a placeholder, so that clients do not complain",
        ids: &["h-650", "h-651", "h-652", "h-653", "h-654"],
    },
];

/// Replays the whole file: its first record is what the server knows.
pub(crate) fn replay(records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let [fixture, records @ ..] = records else { anyhow::bail!("the file is empty") };
    let fixture = Arc::new(Fixture::read(fixture)?);
    exchange::replay(records, IMPROVED, |compat| {
        let servers = ["both", "customOnly", "externalOnly", "empty", "placeholder"];
        servers.map(|name| (name.to_owned(), server(&fixture, name, compat))).into()
    })
}

fn server(fixture: &Arc<Fixture>, name: &str, compat: Compat) -> Local {
    let listed = match name {
        "empty" => Listed::Nothing,
        "placeholder" => Listed::Placeholder,
        _ => Listed::All,
    };
    let (provider, settings) = (Arc::new(fixture.provider(listed)), Settings::from(compat));
    let mut groups: Vec<Group> = Vec::new();
    if name != "externalOnly" {
        groups.extend(serve::metrics::custom(provider.clone(), &settings));
    }
    if name != "customOnly" {
        groups.extend(serve::metrics::external(provider, &settings));
    }
    Local::new(App { groups, address: "localhost:443".to_owned(), ..App::default() })
}

/// Servers by the name records give them.
pub(crate) type Servers = BTreeMap<String, Local>;
