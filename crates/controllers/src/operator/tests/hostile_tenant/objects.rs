//! Every text field of every namespaced object, on a real operator.

use scalers::parameters::ParameterSource;
use serde_json::{Value, json};

use super::super::env::definitions;
use super::canaries::{FILE_MARK, RecordedLog, VAULT_TOKEN, shown_canary};
use super::cases::{self, HostileValue, PathStep, set, text_fields};
use super::env::HostileEnv;
use super::triggers;

/// Hostile triggers of one ScaledObject.
const TRIGGERS_PER_OBJECT: usize = 16;

const KEDA: &str = "/apis/keda.sh/v1alpha1";
const EVENTING: &str = "/apis/eventing.keda.sh/v1alpha1";

/// Writes objects of the tenant.
struct HostileTenant<'a> {
    env: &'a HostileEnv,
    values: Vec<HostileValue>,
    written: usize,
    refused: usize,
    /// Fields that were set so far.
    fields: usize,
}

/// Whether every field gets every value, which takes minutes (`make hostile-tenant`).
fn is_long() -> bool {
    std::env::var_os("PLIMSOLL_SOAK").is_some_and(|value| value != "0")
}

/// The schema of `spec` of a kind.
fn schema(kind: &str) -> Value {
    let definition = definitions().into_iter().find(|found| found["spec"]["names"]["kind"] == kind).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// Whether a path begins with these properties.
fn begins(path: &[PathStep], with: &[&str]) -> bool {
    let names = path.iter().map(|step| match step {
        PathStep::Property(name) => name.as_str(),
        PathStep::First => "0",
    });
    path.len() >= with.len() && names.zip(with).all(|(name, with)| name == *with)
}

impl HostileTenant<'_> {
    /// A trigger that works, with a secret of the tenant's own.
    fn control(&self, name: &str) -> Value {
        let url = format!("{}/control/{name}", self.env.server.url());
        json!({
            "type": "metrics-api", "authenticationRef": {"name": "own"},
            "metadata": {"url": url, "valueLocation": "value", "targetValue": "1000", "authMode": "bearer"},
        })
    }

    async fn write(&mut self, group: &str, resource: &str, kind: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": group.trim_start_matches("/apis/"), "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.written += 1;
        self.refused += usize::from(!self.env.create(group, resource, &object).await);
    }

    /// The values of the next field: two in turn, or all in the long form.
    fn next_values(&mut self) -> Vec<HostileValue> {
        let first = 2 * self.fields;
        self.fields += 1;
        if is_long() {
            return self.values.clone();
        }
        (first..first + 2).map(|number| self.values[number % self.values.len()].clone()).collect()
    }

    fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.written)
    }

    /// A ScaledObject of a deployment of its own; the control trigger comes last.
    async fn scaled_object(&mut self, triggers: Vec<Value>) {
        let name = self.name("so");
        let mut spec = self.scaled_object_spec(&name);
        let all: Vec<Value> = triggers.into_iter().chain([self.control(&name)]).collect();
        spec["triggers"] = json!(all);
        self.env.deployment(&name).await;
        self.write(KEDA, "scaledobjects", "ScaledObject", &name, &spec).await;
    }

    fn scaled_object_spec(&self, name: &str) -> Value {
        let control = self.control(name);
        json!({"scaleTargetRef": {"name": name}, "pollingInterval": 600, "triggers": [control, control]})
    }

    async fn scaled_objects(&mut self) {
        let schema = schema("ScaledObject");
        for path in text_fields(&schema) {
            for value in self.next_values() {
                let name = self.name("so");
                let mut spec = self.scaled_object_spec(&name);
                set(&mut spec, &schema, &path, &value.text);
                self.env.deployment(&name).await;
                self.write(KEDA, "scaledobjects", "ScaledObject", &name, &spec).await;
            }
        }
    }

    /// Each field of a ScaledJob. Of the pod template, fields that the operator only copies into Jobs are set together.
    async fn scaled_jobs(&mut self) {
        let schema = schema("ScaledJob");
        let pod = ["jobTargetRef", "template", "spec"];
        let is_copied = |path: &[PathStep]| {
            let below = |fields: &[&str]| begins(path, &[&pod[..], fields].concat());
            let is_read = ["env", "envFrom", "name"].iter().any(|field| below(&["containers", "0", field]));
            below(&[]) && !is_read && !below(&["serviceAccountName"])
        };
        let (copied, single): (Vec<_>, Vec<_>) =
            text_fields(&schema).into_iter().partition(|path| is_copied(path));
        let groups = copied.chunk_by(|one, other| one.get(3) == other.get(3)).map(<[_]>::to_vec);
        let all: Vec<Vec<Vec<PathStep>>> = groups.chain(single.into_iter().map(|path| vec![path])).collect();
        for paths in all {
            for value in self.next_values() {
                let name = self.name("sj");
                let mut from_env = self.control(&name);
                from_env["metadata"]["tokenFromEnv"] = json!("x");
                let container = json!({"name": "c", "image": "i"});
                let mut spec = json!({
                    "pollingInterval": 600, "maxReplicaCount": 1, "triggers": [from_env, self.control(&name)],
                    "jobTargetRef": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
                });
                for path in &paths {
                    set(&mut spec, &schema, path, &value.text);
                }
                self.write(KEDA, "scaledjobs", "ScaledJob", &name, &spec).await;
            }
        }
    }

    /// A TriggerAuthentication and a trigger that sends its token to the tenant's server.
    async fn authentication(&mut self, spec: &Value) -> Value {
        let name = self.name("ta");
        self.write(KEDA, "triggerauthentications", "TriggerAuthentication", &name, spec).await;
        let url = format!("{}/{name}", self.env.server.url());
        json!({
            "type": "metrics-api", "authenticationRef": {"name": name},
            "metadata": {"url": url, "valueLocation": "value", "targetValue": "1000", "authMode": "bearer"},
        })
    }

    fn vault(address: &str, authentication: &str) -> Value {
        let secrets = json!([{"parameter": "token", "path": "kv/a", "key": "k"}]);
        json!({"hashiCorpVault": {
            "address": address, "authentication": authentication, "mount": "k8s", "role": "r", "secrets": secrets,
        }})
    }

    async fn trigger_authentications(&mut self) {
        let schema = schema("TriggerAuthentication");
        let mut specs = vec![];
        for authentication in ["token", "kubernetes"] {
            specs.push(Self::vault(&self.env.server.url(), authentication));
            // The address of the tenant in the form of one that is listed.
            let listed = self.env.listed.address.clone();
            specs.push(Self::vault(&format!("http://{listed}@{}", self.env.server.address), authentication));
        }
        let fields = text_fields(&schema).into_iter();
        let cases: Vec<_> = fields
            .flat_map(|path| self.next_values().into_iter().map(move |value| (path.clone(), value)))
            .collect();
        for (path, value) in &cases {
            let bases = if begins(path, &["hashiCorpVault"]) {
                ["token", "kubernetes"].map(|how| Self::vault(&self.env.server.url(), how)).to_vec()
            } else {
                vec![json!({})]
            };
            for mut spec in bases {
                set(&mut spec, &schema, path, &value.text);
                specs.push(spec);
            }
        }
        let mut triggers = Vec::new();
        for spec in specs {
            triggers.push(self.authentication(&spec).await);
        }
        for some in triggers.chunks(TRIGGERS_PER_OBJECT) {
            self.scaled_object(some.to_vec()).await;
        }
    }

    /// Every parameter of every trigger that is in the metadata of a trigger.
    async fn trigger_parameters(&mut self) {
        for (type_, sample) in triggers::samples() {
            let valid = triggers::valid(type_, sample, &self.env.server);
            let mut reference = Value::Null;
            if !valid.auth.is_empty() {
                let name = self.name("auth");
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": valid.auth});
                assert!(self.env.create("/api/v1", "secrets", &secret).await);
                let keys = valid.auth.keys().map(|key| json!({"parameter": key, "name": name, "key": key}));
                let spec = json!({"secretTargetRef": keys.collect::<Vec<_>>()});
                self.write(KEDA, "triggerauthentications", "TriggerAuthentication", &name, &spec).await;
                reference = json!({"name": name});
            }
            let wanted = |value: &&HostileValue| matches!(value.kind, "path" | "URL" | "variable" | "name");
            let mut hostile = Vec::new();
            let values: Vec<_> = self.values.iter().filter(wanted).collect();
            for (number, parameter) in type_.parameters.iter().enumerate() {
                let taken = |(index, _): &(usize, _)| is_long() || *index == number % values.len();
                let values = values.iter().enumerate().filter(taken).map(|(_, value)| *value);
                let all = values.flat_map(|value| triggers::hostile(&valid, parameter, value));
                for (_, trigger) in all.filter(|(source, _)| *source == ParameterSource::Metadata) {
                    let mut written = json!({"type": trigger.type_, "metadata": trigger.metadata});
                    if !trigger.metric_type.is_empty() {
                        written["metricType"] = json!(trigger.metric_type);
                    }
                    if !reference.is_null() {
                        written["authenticationRef"] = reference.clone();
                    }
                    hostile.push(written);
                }
            }
            for some in hostile.chunks(TRIGGERS_PER_OBJECT) {
                self.scaled_object(some.to_vec()).await;
            }
        }
    }

    async fn cloud_event_sources(&mut self) {
        let schema = schema("CloudEventSource");
        for path in text_fields(&schema) {
            for value in self.next_values() {
                let mut spec =
                    json!({"destination": {"http": {"uri": format!("{}/events", self.env.server.url())}}});
                if begins(&path, &["destination", "azureEventGridTopic"]) {
                    spec = json!({});
                }
                set(&mut spec, &schema, &path, &value.text);
                let name = self.name("ces");
                self.write(EVENTING, "cloudeventsources", "CloudEventSource", &name, &spec).await;
            }
        }
    }
}

/// Nothing that the operator shows or sends to the tenant is a canary.
async fn assert_nothing_leaked(env: &HostileEnv, log: &RecordedLog) {
    assert_eq!(shown_canary(&env.server.received()), None, "what the tenant's server received");
    let shown = env.shown().await;
    if let Some(canary) = shown_canary(shown.as_bytes()) {
        let at = shown.find(&canary).unwrap();
        let (from, to) =
            (shown.floor_char_boundary(at.saturating_sub(1000)), shown.ceil_char_boundary(at + 200));
        panic!("shown: {}", &shown[from..to]);
    }
    if let Some(canary) = shown_canary(&log.text()) {
        let text = String::from_utf8_lossy(&log.text()).into_owned();
        panic!("logged: {:?}", text.lines().find(|line| line.contains(&canary)));
    }
}

#[tokio::test]
async fn no_field_of_any_namespaced_object_reaches_files_variables_or_another_namespace() {
    let (log, _guard) = RecordedLog::start();
    let env = HostileEnv::start().await;
    let values = cases::values(&env.files, &env.server);
    let mut tenant = HostileTenant { env: &env, values, written: 0, refused: 0, fields: 0 };
    let own = json!({"secretTargetRef": [{"parameter": "token", "name": "canary", "key": "token"}]});
    tenant.write(KEDA, "triggerauthentications", "TriggerAuthentication", "own", &own).await;
    tenant.trigger_authentications().await;
    tenant.scaled_objects().await;
    tenant.scaled_jobs().await;
    tenant.trigger_parameters().await;
    env.until_all_are_processed().await;
    // Events are sent to all destinations: these come last, so that they are few.
    tenant.cloud_event_sources().await;
    tenant.scaled_object(Vec::new()).await;
    env.until_all_are_processed().await;
    env.until("an event", async || env.server.has_received("ce-type").then_some(()).ok_or(())).await;
    let (written, refused) = (tenant.written, tenant.refused);
    assert!(written > 300 && refused * 2 < written, "{refused} of {written} objects were refused");
    assert_eq!(env.files.opened(), Vec::<String>::new());
    assert_nothing_leaked(&env, &log).await;

    // What belongs to the tenant arrives, and what an administrator listed gets the credentials of the operator.
    assert!(env.server.has_received("Bearer 7"), "the tenant's own secret");
    let mut listed = Vec::new();
    for authentication in ["token", "kubernetes"] {
        let spec = HostileTenant::vault(&env.listed.url(), authentication);
        listed.push(tenant.authentication(&spec).await);
    }
    tenant.scaled_object(listed).await;
    env.until("logins at the listed Vault", async || {
        let (token, file) = (env.listed.has_received(VAULT_TOKEN), env.listed.has_received(FILE_MARK));
        if token && file { Ok(()) } else { Err((token, file)) }
    })
    .await;
    assert!(env.files.opened().contains(&"vault-token".to_owned()));
    env.stop().await;
    assert_nothing_leaked(&env, &log).await;
}
