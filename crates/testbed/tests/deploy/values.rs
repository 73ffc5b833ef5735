//! Every value in the schema of the chart is rendered.

use serde_json::{Value, json};
use testbed::program::TempFolder;

use crate::chart::{combinations, helm};
use crate::shared::manifests::{objects, repository};

/// Values on which other values depend. External metrics have one server, which is the operator.
const BASE: [(&str, &str); 11] = [
    ("controller.enabled", "true"),
    ("controller.mode", "\"active\""),
    ("metrics.enabled", "true"),
    ("metrics.apiServices.external", "false"),
    ("metrics.prometheus.url", "\"http://prometheus\""),
    ("operator.enabled", "true"),
    ("networkPolicies.enabled", "true"),
    ("monitoring.serviceMonitor.enabled", "true"),
    ("monitoring.prometheusRule.enabled", "true"),
    ("monitoring.dashboard.enabled", "true"),
    ("monitoring.opentelemetry.endpoint", "\"http://collector\""),
];

/// A value in the schema: its path, such as `controller.mode`, and its schema.
struct SchemaValue<'a> {
    path: String,
    schema: &'a Value,
}

impl SchemaValue<'_> {
    /// The allowed values; none if they cannot be listed.
    fn choices(&self) -> Vec<Value> {
        match &self.schema["enum"] {
            Value::Array(choices) => choices.clone(),
            _ if self.schema["type"] == "boolean" => vec![json!(true), json!(false)],
            _ => Vec::new(),
        }
    }
}

fn add_values<'a>(schema: &'a Value, path: &str, found: &mut Vec<SchemaValue<'a>>) {
    let Some(properties) = schema["properties"].as_object() else {
        found.push(SchemaValue { path: path.to_owned(), schema });
        return;
    };
    for (name, below) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        add_values(below, &path, found);
    }
}

/// A valid value that contains this number, so that it can be found in the rendered text.
fn sample(schema: &Value, number: usize) -> Value {
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    match schema["type"].as_str().unwrap_or_default() {
        "string" if pattern.starts_with("^-") => json!(format!("--marker{number}")),
        "string" if pattern.starts_with("^([0-9]") => json!(format!("{number}s")),
        "string" if pattern.contains("sha256") => json!(format!("sha256:{}", number.to_string().repeat(16))),
        "string" if pattern.contains("https") => json!(format!("http://marker{number}")),
        "string" if pattern == "/scale$" => json!(format!("marker{number}/scale")),
        "string" => json!(format!("marker{number}")),
        "integer" => json!(number),
        "array" => json!([sample(&schema["items"], number)]),
        _ => match schema["properties"].as_object() {
            Some(properties) => {
                properties.iter().map(|(name, below)| (name.clone(), sample(below, number))).collect()
            }
            None => json!({(format!("marker{number}")): "x"}),
        },
    }
}

fn set(values: &mut Value, path: &str, value: Value) {
    let mut place = values;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value;
}

fn base() -> Value {
    let mut values = json!({});
    for (path, text) in BASE {
        set(&mut values, path, serde_json::from_str(text).unwrap());
    }
    values
}

/// Renders the chart with these values; an error is the output of Helm.
fn render(values: &Value) -> Result<String, String> {
    let temp_folder = TempFolder::new().unwrap();
    let file = temp_folder.write("values.json", &values.to_string()).unwrap().display().to_string();
    helm(&["template", "plimsoll", "charts/plimsoll", "--namespace", "plimsoll-system", "--values", &file])
}

#[test]
fn every_value_of_the_schema_has_an_effect() {
    let schema = std::fs::read_to_string(repository().join("charts/plimsoll/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut values = Vec::new();
    add_values(&schema, "", &mut values);
    assert!(values.len() >= 90, "{}", values.len());
    // Helm adds the values of `global` to every chart.
    values.retain(|value| value.path != "global");

    let (mut all, mut numbers) = (base(), Vec::new());
    for (value, number) in values.iter().zip(7000..).filter(|(value, _)| value.choices().is_empty()) {
        set(&mut all, &value.path, sample(value.schema, number));
        numbers.push((&value.path, number));
    }
    let mut rendered = render(&all).unwrap();
    let mut other = all.clone();
    set(&mut other, "certificates.mode", json!("cert-manager"));
    rendered += &render(&other).unwrap();
    let mut other = all.clone();
    set(&mut other, "singleProcess.enabled", json!(true));
    // A digest takes the place of the tag.
    set(&mut other, "image.digest", json!(""));
    rendered += &render(&other).unwrap();
    for (path, number) in numbers {
        assert!(rendered.contains(&number.to_string()), "{path} has no effect");
    }

    let text = std::fs::read_to_string(repository().join("charts/plimsoll/values.yaml")).unwrap();
    let defaults = objects("values.yaml", &text).remove(0);
    let (usual, combined) = (render(&base()).unwrap(), combinations().concat().concat());
    for value in values.iter().filter(|value| !combined.contains(&format!("{}=", value.path))) {
        let default = defaults.pointer(&format!("/{}", value.path.replace('.', "/"))).unwrap_or(&Value::Null);
        for choice in value.choices().into_iter().filter(|choice| choice != default) {
            let mut changed = base();
            set(&mut changed, &value.path, choice.clone());
            assert_ne!(render(&changed).unwrap(), usual, "{}={choice} has no effect", value.path);
        }
    }
}

/// A value is missing if it is null, or new in this version and the upgrade has `--reuse-values`.
#[test]
fn missing_values_without_which_the_chart_would_be_wrong_are_refused() {
    for path in [
        // An egress rule without ports allows every connection.
        "networkPolicies.apiServerPorts",
        // Without a mode, the controller would have the permissions of active mode.
        "controller.mode",
        // The API server takes Fail for a missing policy.
        "operator.webhook.failurePolicy",
        "crds.keda",
        // Without types of addresses, no kubelet has an address.
        "metrics.kubeletPreferredAddressTypes",
        // Without hooks, `helm uninstall` would leave Secrets and Leases.
        "removal",
        "resourceQuota",
    ] {
        let mut values = base();
        set(&mut values, path, Value::Null);
        let error = render(&values).unwrap_err();
        let name = path.rsplit('.').next().unwrap();
        assert!(error.contains(&format!("missing property '{name}'")), "{path}: {error}");
    }
}

#[test]
fn helm_lint_accepts_every_combination() {
    for values in combinations() {
        let mut arguments = vec!["lint", "--strict", "charts/plimsoll", "--namespace", "plimsoll-system"];
        arguments.extend(values.iter().map(String::as_str));
        helm(&arguments).unwrap_or_else(|error| panic!("{values:?}: {error}"));
    }
}
