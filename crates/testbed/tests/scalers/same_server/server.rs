//! The server of a script.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::pki::Authority;
use testbed::program::{Program, TempFolder};
use testbed::servers::server;
use testbed::{Cache, Progress, ports};

use super::keda::KedaProcess;
use super::script::{ScriptTexts, ServerScript, ServerSetup};

/// Another address of this machine, for servers whose ports are fixed.
const OTHER_ADDRESS: &str = "127.0.90.1";

/// The names in the certificate of servers: those of this machine, and those that proxies of scripts stand in for.
const SERVER_NAMES: [&str; 5] =
    ["127.0.0.1", "localhost", OTHER_ADDRESS, "oauth2.googleapis.com", "storage.googleapis.com"];

/// The server of a script; it ends when this is dropped.
pub(super) struct ScriptServer {
    running: Option<Program>,
    idle: Option<TempFolder>,
    run: String,
    beside: Vec<String>,
    helpers: Vec<Program>,
    ready: Option<Value>,
    /// Environment variables of the programs that run the scalers.
    pub(super) environment: BTreeMap<String, String>,
    /// All ports of the server; the first is `port`, which clients use.
    pub(super) ports: Vec<u16>,
    /// The texts that replace `{name}` in the script.
    pub(super) texts: ScriptTexts,
}

impl ScriptServer {
    /// Prepares a server without starting it.
    pub(super) fn new(script: &ServerScript) -> Self {
        let ServerSetup {
            part, stand_in, ports: names, environment, files, before, beside, run, ready, ..
        } = &script.server;
        let temp_folder = TempFolder::new().unwrap();
        let mut texts = ScriptTexts::default();
        texts.0.insert("folder".to_owned(), temp_folder.root().display().to_string());
        texts.0.insert("other_address".to_owned(), OTHER_ADDRESS.to_owned());
        if let Some(part) = part {
            let found = server(part).unwrap_or_else(|| panic!("there is no server {part}"));
            let programs = Cache::of_user().unwrap().ensure(found, &mut Progress::stderr()).unwrap();
            texts.0.insert("part".to_owned(), programs.display().to_string());
        }
        let mut given = Vec::new();
        for name in names {
            let port = ports::free().unwrap();
            given.push(port);
            texts.0.insert(name.clone(), port.to_string());
        }
        for (name, text) in certificates() {
            temp_folder.write(&format!("{name}.pem"), &text).unwrap();
            texts.0.insert(name.to_owned(), text);
        }
        let more: Vec<_> =
            script.texts.iter().map(|(name, text)| (name.clone(), texts.apply(text))).collect();
        texts.0.extend(more);
        if *stand_in {
            temp_folder.write("stand-in.py", include_str!("stand-in.py")).unwrap();
        }
        for (name, text) in files {
            temp_folder.write(name, &texts.apply(text)).unwrap();
        }
        for command in before {
            assert_eq!(failure_of(&texts.apply(command), temp_folder.root()), None);
        }
        Self {
            running: None,
            idle: Some(temp_folder),
            run: texts.apply(run),
            beside: beside.iter().map(|command| texts.apply(command)).collect(),
            helpers: Vec::new(),
            ready: ready.clone(),
            environment: environment.iter().map(|(name, value)| (name.clone(), texts.apply(value))).collect(),
            ports: given,
            texts,
        }
    }

    /// Fills the server with data, by a command or by the program with the clients, and returns the error if there is one.
    pub(super) fn fill(&self, filling: &Value, keda: &mut KedaProcess) -> Option<String> {
        let filling = self.texts.apply_all(filling);
        match filling["command"].as_str() {
            Some(command) => failure_of(command, Path::new(&self.texts.0["folder"])),
            None => keda.fill(&filling),
        }
    }

    pub(super) fn stop(&mut self) {
        if let Some(program) = self.running.take() {
            self.idle = Some(program.end());
        }
        self.helpers.clear();
    }

    /// Starts the server, and returns when it is ready. If it ends by itself it is started again, because children of a killed server may
    /// hold its port or files for some time.
    pub(super) async fn resume(&mut self, keda: &mut KedaProcess) {
        let begun = Instant::now();
        loop {
            if let Some(temp_folder) = self.idle.take() {
                self.helpers = self
                    .beside
                    .iter()
                    .map(|command| shell("helper", command, TempFolder::new().unwrap()))
                    .collect();
                self.running = Some(shell("server", &self.run, temp_folder));
            }
            let error = self.why_not_ready(keda).await;
            let Some(error) = error else { return };
            let program = self.running.as_mut().unwrap();
            let ended = program.ended();
            assert!(begun.elapsed() < super::WAIT_TIMEOUT, "{error}: {}", program.log());
            if ended.is_some() {
                self.stop();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn why_not_ready(&self, keda: &mut KedaProcess) -> Option<String> {
        match &self.ready {
            Some(filling) => self.fill(filling, keda),
            None => {
                let connected = tokio::net::TcpStream::connect(("127.0.0.1", self.ports[0])).await;
                connected.err().map(|error| error.to_string())
            }
        }
    }
}

/// Runs a command, and returns its error output if it fails.
fn failure_of(command: &str, folder: &Path) -> Option<String> {
    let output = Command::new("sh").args(["-c", command]).current_dir(folder).output().unwrap();
    let as_script_text = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{command}: {as_script_text}"))
}

/// PEM texts by their names: of the server, of a client, of their authority, and of another, unknown authority. `server` has
/// the key and the certificate.
fn certificates() -> Vec<(&'static str, String)> {
    let (authority, other) = (Authority::new("testbed").unwrap(), Authority::new("other").unwrap());
    let server = authority.server(&SERVER_NAMES).unwrap();
    let client = authority.client("ada", None).unwrap();
    let stranger = other.client("ada", None).unwrap();
    vec![
        ("authority", authority.certificate().to_owned()),
        ("other_authority", other.certificate().to_owned()),
        ("server", format!("{}{}", server.key, server.certificate)),
        ("server_certificate", server.certificate),
        ("server_key", server.key),
        ("certificate", client.certificate),
        ("key", client.key),
        ("other_certificate", stranger.certificate),
        ("other_key", stranger.key),
    ]
}

/// Runs a shell command as a program.
fn shell(name: &'static str, command: &str, temp_folder: TempFolder) -> Program {
    Program::start(name, Path::new("/bin/sh"), &["-c".to_owned(), command.to_owned()], temp_folder).unwrap()
}
