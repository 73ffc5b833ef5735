//! KEDA's scalers and ours query the same servers in the same states; value, activity and class of error must be the same. The
//! servers take minutes to fetch, so this runs in `make test-scalers`.

mod class;
mod keda;
mod ours;
mod script;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use class::class;
use keda::{KedaProcess, ScalerAnswer};
use ours::OurScalers;
use script::ServerScript;
use server::ScriptServer;

use super::WAIT_TIMEOUT;

/// The scripts of this folder, by their names. `cargo xtask generate` reads them too.
fn scripts() -> BTreeMap<String, ServerScript> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scalers/same_server");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let script = ServerScript::parse(&name, &std::fs::read_to_string(&path).unwrap());
            (name, script)
        })
        .collect()
}

/// The environment variable that selects the scripts whose name contains its value.
const SCRIPT_VARIABLE: &str = "PLIMSOLL_SCRIPT";

/// How long a server may take until queries return data that it was filled with.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn scripts_name_servers_and_reasons() {
    for (name, script) in scripts() {
        let part = script.server.part.as_deref();
        assert!(part.is_none_or(|part| testbed::servers::server(part).is_some()), "{name}");
        for step in &script.steps {
            assert!(!step.keda_says().is_empty() && !step.says.is_empty(), "{name}: {}", step.state);
        }
    }
}

#[tokio::test]
#[ignore = "fetches servers and takes minutes: make test-scalers"]
async fn keda_and_we_find_the_same() {
    let chosen = std::env::var(SCRIPT_VARIABLE).unwrap_or_default();
    let mut differences = Vec::new();
    let mut scripts = scripts();
    scripts.retain(|name, _| name.contains(&chosen));
    assert!(!scripts.is_empty(), "no script has {chosen} in its name");
    for (name, script) in &scripts {
        let begun = Instant::now();
        let found = differences_in(name, script).await;
        let took = begun.elapsed().as_secs();
        let kind = match (script.server.emulator, script.server.stand_in) {
            (true, _) => " (an emulator)",
            (_, true) => " (a stand-in)",
            _ => "",
        };
        eprintln!("{name}{kind}: {} states, {} differences, {took} s", script.steps.len(), found.len());
        differences.extend(found);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

async fn differences_in(name: &str, script: &ServerScript) -> Vec<String> {
    let mut server = ScriptServer::new(script);
    let mut keda = KedaProcess::start(&server.environment);
    server.resume(&mut keda).await;
    let mut ours = OurScalers::new(&server.environment);
    let mut differences = Vec::new();
    for step in &script.steps {
        if step.stop {
            server.stop();
        }
        if step.start {
            server.resume(&mut keda).await;
        }
        for filling in &step.fill {
            let error = server.fill(filling, &mut keda);
            assert!(error.is_none(), "{name}: {}: {error:?}", step.state);
        }
        let trigger = step.trigger(&script.trigger, &server.texts);
        let begun = Instant::now();
        let (theirs, own) = loop {
            let (theirs, own) = (keda.read(&trigger), ours.read(&trigger).await);
            let expected = as_script_text(&theirs, &server.ports) == step.keda_says()
                && as_script_text(&own, &server.ports) == step.says;
            // Only data with which the server was filled just before may be returned late.
            if expected || step.says.starts_with("error") || begun.elapsed() > SETTLE_TIMEOUT {
                break (theirs, own);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        let found = [as_script_text(&theirs, &server.ports), as_script_text(&own, &server.ports)];
        let named_alike = theirs.metric == own.metric || !theirs.error.is_empty() || !own.error.is_empty();
        if found != [step.keda_says().to_owned(), step.says.clone()] || !named_alike {
            differences.push(format!(
                "{name}: {}: KEDA says {} ({} {}), we say {} ({} {}); expected {} and {}",
                step.state,
                found[0],
                theirs.metric,
                theirs.error,
                found[1],
                own.metric,
                own.error,
                step.keda_says(),
                step.says
            ));
        }
    }
    differences
}

/// The result of a scaler in the notation of scripts.
fn as_script_text(response: &ScalerAnswer, ports: &[u16]) -> String {
    if !response.error.is_empty() {
        return format!("error {}", class(&response.error, ports));
    }
    format!("{} {}", response.values.join(" "), if response.active { "active" } else { "idle" })
}
