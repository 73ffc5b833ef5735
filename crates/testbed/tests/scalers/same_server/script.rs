//! A script: a server, a trigger that queries it, and the states in which the scalers of both programs query it.

use std::collections::BTreeMap;

use api::yaml::{self, SourceFile};
use serde::Deserialize;
use serde_json::Value;

/// One file of this folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerScript {
    /// The server.
    pub(super) server: ServerSetup,
    /// Texts for `{name}` elsewhere, beside the ports, `{folder}`, `{part}`, `{other_address}`, and certificates such as `{authority}`,
    /// which are also
    /// in files such as `authority.pem`.
    #[serde(default, rename = "let")]
    pub(super) texts: BTreeMap<String, String>,
    /// The trigger of every state, to which the changes of a state are applied.
    pub(super) trigger: ScriptTrigger,
    /// The states, one after another.
    pub(super) steps: Vec<ScriptStep>,
}

/// How a server is started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerSetup {
    /// The name of its part in `testbed::servers`; none if its program is on every machine.
    pub(super) part: Option<String>,
    /// Whether the server is an emulator of the original; `docs/scalers/README.md` names these.
    #[serde(default)]
    pub(super) emulator: bool,
    /// Whether the server is `stand-in.py` with the routes of the script, for a source that cannot be run here.
    #[serde(default)]
    pub(super) stand_in: bool,
    /// The names of the ports that the server needs.
    #[serde(default = "one_port")]
    pub(super) ports: Vec<String>,
    /// Environment variables of both programs that run scalers: `HTTPS_PROXY` and `SSL_CERT_FILE`, for a source whose address is fixed.
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// Files in the folder of the server.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Commands that prepare the folder of the server.
    #[serde(default)]
    pub(super) before: Vec<String>,
    /// Commands that run as long as the server does.
    #[serde(default)]
    pub(super) beside: Vec<String>,
    /// The command that starts the server.
    pub(super) run: String,
    /// Data with which the server can be filled when it is ready. Without it, the server counts as ready when the port `port` is open.
    pub(super) ready: Option<Value>,
}

/// A trigger.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptTrigger {
    /// Its type.
    #[serde(rename = "type")]
    pub(super) type_: String,
    /// Its metadata.
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    /// The parameters of its TriggerAuthentication.
    #[serde(default)]
    pub(super) auth: BTreeMap<String, String>,
}

/// A state of the server, and the trigger with which it is queried.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptStep {
    /// The name of the state.
    pub(super) state: String,
    /// Whether the server is stopped first.
    #[serde(default)]
    pub(super) stop: bool,
    /// Whether the server is started first.
    #[serde(default)]
    pub(super) start: bool,
    /// The data with which the server is filled first.
    #[serde(default)]
    pub(super) fill: Vec<Value>,
    /// Another type of trigger.
    #[serde(rename = "type")]
    type_: Option<String>,
    /// Metadata that is added, or removed with null.
    #[serde(default)]
    metadata: BTreeMap<String, Option<String>>,
    /// Parameters of the TriggerAuthentication that are added, or removed with null.
    #[serde(default)]
    auth: BTreeMap<String, Option<String>>,
    /// All metadata, instead of that of the script.
    only_metadata: Option<BTreeMap<String, String>>,
    /// All parameters of the TriggerAuthentication, instead of those of the script.
    only_auth: Option<BTreeMap<String, String>>,
    /// The expected result of both: `3 active`, `0 idle`, or `error` and its class.
    pub(super) says: String,
    /// The expected result of KEDA, if it differs.
    keda: Option<String>,
    /// The reason of the difference.
    why: Option<String>,
}

/// The texts that replace `{name}`.
#[derive(Default)]
pub(super) struct ScriptTexts(pub(super) BTreeMap<String, String>);

fn one_port() -> Vec<String> {
    vec!["port".to_owned()]
}

impl ServerScript {
    pub(super) fn parse(name: &str, text: &str) -> Self {
        let documents =
            yaml::parse(&SourceFile::new(name, text)).unwrap_or_else(|problem| panic!("{problem:?}"));
        documents[0].decode().unwrap_or_else(|problems| panic!("{problems:?}"))
    }
}

impl ScriptStep {
    pub(super) fn keda_says(&self) -> &str {
        assert_eq!(self.keda.is_some(), self.why.is_some(), "{}: a difference needs a reason", self.state);
        self.keda.as_deref().unwrap_or(&self.says)
    }

    /// The trigger of the script with the changes of this state.
    pub(super) fn trigger(&self, given: &ScriptTrigger, texts: &ScriptTexts) -> ScriptTrigger {
        ScriptTrigger {
            type_: self.type_.clone().unwrap_or_else(|| given.type_.clone()),
            metadata: changed(self.only_metadata.as_ref().unwrap_or(&given.metadata), &self.metadata, texts),
            auth: changed(self.only_auth.as_ref().unwrap_or(&given.auth), &self.auth, texts),
        }
    }
}

fn changed(
    given: &BTreeMap<String, String>,
    changes: &BTreeMap<String, Option<String>>,
    texts: &ScriptTexts,
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, Option<String>> =
        given.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    all.extend(changes.clone());
    all.into_iter().filter_map(|(key, value)| Some((key, texts.apply(&value?)))).collect()
}

impl ScriptTexts {
    /// A text with all names replaced.
    pub(super) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// A value with all names replaced in its texts.
    pub(super) fn apply_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.apply(text)),
            Value::Array(items) => items.iter().map(|item| self.apply_all(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.apply_all(value))).collect()
            }
            other => other.clone(),
        }
    }
}
