//! The custom and external metrics APIs over HTTP (`custom_api.jsonl`).

pub(crate) mod exchange;
mod provider;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::provider::Compat;
use serde_json::Value;
use serve::metrics::MetricsApiSettings;
use serve::{ApiGroupVersion, App, InProcessServer};

use super::Outcome;
use provider::{CustomApiFixture, Listed};

/// Replays the whole file: its first record is what the server knows.
pub(crate) fn replay(records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let [fixture, records @ ..] = records else { anyhow::bail!("the file is empty") };
    let fixture = Arc::new(CustomApiFixture::read(fixture)?);
    exchange::replay(records, |compat| {
        let servers = ["both", "customOnly", "externalOnly", "empty", "placeholder"];
        servers.map(|name| (name.to_owned(), server(&fixture, name, compat))).into()
    })
}

fn server(fixture: &Arc<CustomApiFixture>, name: &str, compat: Compat) -> InProcessServer {
    let listed = match name {
        "empty" => Listed::Nothing,
        "placeholder" => Listed::Placeholder,
        _ => Listed::All,
    };
    let (provider, settings) = (Arc::new(fixture.provider(listed)), MetricsApiSettings::from(compat));
    let mut groups: Vec<ApiGroupVersion> = Vec::new();
    if name != "externalOnly" {
        groups.extend(serve::metrics::custom(provider.clone(), &settings));
    }
    if name != "customOnly" {
        groups.extend(serve::metrics::external(provider, &settings));
    }
    InProcessServer::new(App { groups, address: "localhost:443".to_owned(), ..App::default() })
}

/// Servers by the name records give them.
pub(crate) type ServersByName = BTreeMap<String, InProcessServer>;
