//! KEDA's objects and prometheus-adapter's rules: what would not work here.

use api::keda::KedaProfile;
use api::yaml::{self, SourceFile};
use keda::admission::AdmissionKind;
use scalers::parameters;
use scalers::table;
use serde::Deserialize as _;
use serde_json::Value;
use sources::prometheus::lint::{Severity, lint};

use super::Peer;
use super::installed::text;
use super::problem::{MigrationProblem, SwitchImpact};
use super::read::AdapterRules;
use crate::commands::validate::{ValidationRules, keda_objects};

/// Hosts of this machine, which triggers may not connect to.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// How link-local addresses begin, which they may not connect to either.
const LINK_LOCAL: &str = "169.254.";
/// Parts of connection strings that name files of the operator's pod.
const FILE_PARAMETERS: [&str; 3] = ["sslrootcert=", "sslcert=", "sslkey="];
/// Parts of an authentication that may use the identity of the operator at a cloud.
const CLOUD_IDENTITIES: [&str; 4] = [
    "podIdentity",
    "awsSecretManager/podIdentity",
    "azureKeyVault/podIdentity",
    "gcpSecretManager/podIdentity",
];
const OTHER_IDENTITY: &str =
    "the cloud knows KEDA's operator by its service account, and ours has another one";
const TRUST_IDENTITY: &str = "let the cloud trust the service account plimsoll-operator in Plimsoll's namespace, too (docs/identities.md)";

/// Checks one of KEDA's objects. `variables` are those that KEDA's operator has, and `profile` is its release.
pub(super) fn check(object: &Value, variables: &[String], profile: KedaProfile) -> Vec<MigrationProblem> {
    let shown = shown(object);
    let problem = |impact, field: &str, message: String, remedy: &str| MigrationProblem {
        impact,
        from: Peer::Keda,
        object: shown.clone(),
        field: field.to_owned(),
        message,
        remedy: remedy.to_owned(),
    };
    let mut found = Vec::new();
    let mut object = object.clone();
    for (field, message) in without_unknown_parameters(&mut object, profile) {
        found.push(problem(SwitchImpact::Differs, &field, message, "KEDA ignores it, too; remove it"));
    }
    for (field, message) in invalid(object.clone(), profile) {
        found.push(problem(SwitchImpact::Breaks, &field, message, "correct the object before the switch"));
    }
    for (index, trigger) in triggers(&object).iter().enumerate() {
        let metadata = trigger.get("metadata").and_then(Value::as_object);
        for (name, value) in metadata.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if let Some((message, remedy)) = refused(value) {
                let field = format!("spec.triggers[{index}].metadata[{name}]");
                found.push(problem(SwitchImpact::Breaks, &field, message.to_owned(), remedy));
            }
            if (name.as_str(), value) == ("identityOwner", "operator") {
                let field = format!("spec.triggers[{index}].metadata[{name}]");
                found.push(problem(SwitchImpact::Breaks, &field, OTHER_IDENTITY.to_owned(), TRUST_IDENTITY));
            }
        }
    }
    for part in CLOUD_IDENTITIES {
        if !matches!(text(&object, &format!("/spec/{part}/provider")), "" | "none") {
            let field = format!("spec.{}", part.replace('/', "."));
            found.push(problem(SwitchImpact::Breaks, &field, OTHER_IDENTITY.to_owned(), TRUST_IDENTITY));
        }
    }
    if let Some((group, resource)) = custom_target(&object).filter(|_| may_read_target(&object)) {
        let message = format!("triggers may need variables or the identity of pods of {resource}.{group}");
        let remedy = "list the resource in operator.readTargets, as `plimsoll migrate plan` does";
        found.push(problem(SwitchImpact::Differs, "spec.scaleTargetRef", message, remedy));
    }
    let has = |variable: &str| variables.iter().any(|name| name == variable);
    if text(&object, "/spec/hashiCorpVault/authentication") == "kubernetes" && !has("KEDA_OUTBOUND_FILTER") {
        let message = "the operator's token is sent to Vault only if its origin is allowed".to_owned();
        let remedy = "list the origin in the variable KEDA_OUTBOUND_FILTER (operator.env; docs/security.md)";
        found.push(problem(SwitchImpact::Breaks, "spec.hashiCorpVault", message, remedy));
    }
    let bound = object.pointer("/spec/boundServiceAccountToken").and_then(Value::as_array);
    if bound.is_some_and(|all| !all.is_empty()) && !has("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES") {
        let message = "tokens of service accounts need an audience that is allowed".to_owned();
        let remedy = "list the audience in the variable KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES, and allow create of \
                      serviceaccounts/token (docs/security.md)";
        found.push(problem(SwitchImpact::Breaks, "spec.boundServiceAccountToken", message, remedy));
    }
    found
}

/// Group and resource of a target that the operator may not read with the chart's defaults: a custom resource, whose group has a dot.
/// KEDA writes them into the status, where others may have written anything.
pub(super) fn custom_target(object: &Value) -> Option<(&str, &str)> {
    let [group, resource] =
        ["group", "resource"].map(|field| text(object, &format!("/status/scaleTargetGVKR/{field}")));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let is_custom = group.contains('.') && !resource.is_empty() && is_name(group) && is_name(resource);
    is_custom.then_some((group, resource))
}

/// Whether triggers may need the target itself: for variables of its containers, or for the service account of its pods.
fn may_read_target(object: &Value) -> bool {
    let names_variables = |trigger: &Value| {
        let metadata = trigger.get("metadata").and_then(Value::as_object);
        metadata.is_some_and(|metadata| metadata.keys().any(|key| key.ends_with("FromEnv")))
    };
    !text(object, "/spec/scaleTargetRef/envSourceContainerName").is_empty()
        || triggers(object)
            .iter()
            .any(|trigger| names_variables(trigger) || trigger.get("authenticationRef").is_some())
}

/// Checks the rules of a prometheus-adapter.
pub(super) fn check_rules(adapter: &str, rules: &AdapterRules) -> Vec<MigrationProblem> {
    let AdapterRules { config_map, key, text } = rules;
    let of_severity = |severity| match severity {
        Severity::Error => Some(SwitchImpact::Breaks),
        Severity::Warning => Some(SwitchImpact::Differs),
        Severity::Note => None,
    };
    let found = lint(text, None).into_iter().filter_map(|finding| {
        Some(MigrationProblem {
            impact: of_severity(finding.severity)?,
            from: Peer::PrometheusAdapter,
            object: adapter.to_owned(),
            field: format!("{config_map}/{key}:{} {}", finding.location.line, finding.location.key),
            message: finding.message,
            remedy: finding.remedy,
        })
    });
    found.collect()
}

/// `ScaledObject shop/orders`.
fn shown(object: &Value) -> String {
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

fn triggers(object: &Value) -> &[Value] {
    object.pointer("/spec/triggers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Removes parameters that a trigger type does not have in a release of KEDA, and returns them: they break nothing.
fn without_unknown_parameters(object: &mut Value, profile: KedaProfile) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let triggers = object.pointer_mut("/spec/triggers").and_then(Value::as_array_mut);
    for (index, raw) in triggers.into_iter().flatten().enumerate() {
        let Ok(trigger) = api::keda::Trigger::deserialize(&*raw) else { continue };
        // External scalers have parameters of their own.
        let Some(known) = table::find(&trigger.type_).filter(|known| !known.name.starts_with("external"))
        else {
            continue;
        };
        let given = scalers::Trigger {
            type_: trigger.type_.clone(),
            metadata: trigger.metadata.into_iter().collect(),
            ..scalers::Trigger::default()
        };
        let metadata = raw.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { continue };
        for unknown in parameters::unknown(known.parameters, &given) {
            let key = unknown.key;
            metadata.shift_remove(&key);
            let near = unknown.nearest.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            let field = format!("spec.triggers[{index}].metadata[{key}]");
            found.push((field, format!("{} has no such parameter{near}", trigger.type_)));
        }
        let is_later = |key: &String| {
            let all = known.parameters.iter().filter(|parameter| parameter.keys.contains(&key.as_str()));
            all.map(|parameter| parameter.since).min().is_some_and(|since| since > profile)
        };
        let later: Vec<String> = metadata.keys().filter(|key| is_later(key)).cloned().collect();
        for key in later {
            metadata.shift_remove(&key);
            let field = format!("spec.triggers[{index}].metadata[{key}]");
            found.push((field, format!("{} has no such parameter in KEDA {profile}", trigger.type_)));
        }
    }
    found
}

/// What the operator would refuse, as `plimsoll validate` finds it.
fn invalid(mut object: Value, profile: KedaProfile) -> Vec<(String, String)> {
    let Some(kind) = AdmissionKind::parse(text(&object, "/kind")) else { return Vec::new() };
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    let source = SourceFile::new(shown(&object), yaml::to_yaml(&object));
    let documents = match yaml::parse(&source) {
        Ok(documents) => documents,
        Err(problem) => return vec![(problem.path, problem.message)],
    };
    let rules = ValidationRules::of_keda(profile);
    let problems = documents.iter().flat_map(|document| keda_objects::problems(document, kind, rules));
    let found = problems.map(|problem| {
        let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        (problem.path, format!("{}{hint}", problem.message))
    });
    found.collect()
}

/// Why a value of a trigger is refused here although KEDA uses it, and what to do.
fn refused(value: &str) -> Option<(&'static str, &'static str)> {
    if value.starts_with("unix:") {
        return Some(("unix: addresses of external scalers are refused", "write host:port"));
    }
    if has_local_host(value) {
        return Some((
            "triggers may not connect to loopback and link-local addresses",
            "allow the address with --allow-source-cidr (operator.extraArgs; docs/security.md)",
        ));
    }
    if FILE_PARAMETERS.iter().any(|parameter| value.contains(parameter)) {
        return Some((
            "certificate files of connection strings are read only from --tenant-files-dir",
            "mount them there (operator.extraArgs, operator.extraVolumes)",
        ));
    }
    None
}

/// Whether an address, a list of them or a connection string has a host of this machine or a link-local one. In quotes it is a
/// label or a text of a query.
fn has_local_host(value: &str) -> bool {
    let before = |at: usize| value.get(..at).and_then(|text| text.chars().next_back());
    let after = |at: usize| value.get(at..).and_then(|text| text.chars().next());
    let starts = |at: usize| before(at).is_none_or(|c| " /@,;(=".contains(c));
    let ends = |at: usize| after(at).is_none_or(|c| " :/?#&,;)".contains(c));
    let has = |host: &str| value.match_indices(host).any(|(at, _)| starts(at) && ends(at + host.len()));
    LOCAL_HOSTS.iter().any(|host| has(host)) || value.match_indices(LINK_LOCAL).any(|(at, _)| starts(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_distinguished_from_texts_of_queries() {
        for local in [
            "localhost",
            "http://localhost:8080/q",
            "http://u:p@127.0.0.1/q",
            "kafka:9092,localhost:9092",
            "host=localhost port=5432",
            "u:p@tcp(localhost:3306)/db",
            "Server=localhost;Database=a",
            "http://[::1]:80",
            "http://169.254.169.254/latest",
        ] {
            assert!(has_local_host(local), "{local}");
        }
        for other in [
            "",
            "up{instance!=\"localhost:9090\"}",
            "up{instance=~\"(localhost|b):9090\"}",
            "select count(*) from a where host <> 'localhost'",
            "localhost-queue:5672",
            "http://not-localhost:80",
            "http://10.127.0.0.1.example.com",
        ] {
            assert!(!has_local_host(other), "{other}");
        }
    }
}
