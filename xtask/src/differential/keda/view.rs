//! The visible state of an operator's objects, field by field, without values that necessarily differ between operators.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::env::ComparedOperator;
use super::scenario::KedaScenario;
use super::scenario::trigger::{AUTH, CLUSTER};
use crate::differential::compare::{Field, flatten};

/// All objects in the namespace of one operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) objects: Vec<Value>,
    pub(crate) scaled_jobs: Vec<Value>,
    pub(crate) authentications: Vec<Value>,
    /// The cluster-scoped objects of all operators.
    pub(crate) cluster_authentications: Vec<Value>,
    pub(crate) hpas: Vec<Value>,
    /// The objects by kind.
    pub(crate) targets: BTreeMap<&'static str, Vec<Value>>,
    pub(crate) jobs: Vec<Value>,
    pub(crate) events: Vec<Value>,
}

/// The visible state of one scenario with one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KedaView {
    /// The compared text of every field. Each event is a field.
    pub(crate) fields: BTreeMap<String, String>,
    /// Events that were recorded more than once; KEDA keeps only the first text.
    pub(crate) repeated: BTreeSet<String>,
    /// The largest number of events about one object, by event type.
    pub(crate) reported: BTreeMap<String, u64>,
}

/// Values that are not compared, with the reason.
pub(crate) const MASKED: &[(&str, &str)] = &[
    ("uids, resource versions, managed fields, creation times", "no two objects have the same"),
    ("the namespace in any text", "it is the subject"),
    ("status.lastActiveTime", "whether there is one is compared, not when it was"),
    (
        "status.health.*.numberOfFailures",
        "whether it is zero is compared: it counts questions, and those are not simultaneous",
    ),
    ("counts and times of events", "they depend on the number of reconciles"),
    (
        "scaledjob.keda.sh/generation of Jobs",
        "how many versions ago it was is compared: KEDA makes one version more",
    ),
    (
        "the order of triggers in KEDAScaleTargetActivated",
        "KEDA names them in the order in which they answered",
    ),
    (
        "the number of Jobs in an event",
        "it is that of the moment of the reconcile; the number of Jobs is compared",
    ),
    ("names of Jobs", "the API server makes them up; how many there are of each kind is compared"),
    ("status of HPAs", "only the test writes it"),
];

impl KedaView {
    /// The view of one scenario with one operator.
    pub(crate) fn new(lists: &Lists, scenario: &KedaScenario, operator: ComparedOperator) -> Self {
        let name = &scenario.name;
        let namespace = operator.namespace();
        let mut view = Self::default();
        let fields = &mut view.fields;
        let find = |list: &[Value], wanted: &str| {
            list.iter().find(|item| text(item, "/metadata/name") == wanted).cloned()
        };
        let list = if scenario.is_job() { &lists.scaled_jobs } else { &lists.objects };
        let object = find(list, name);
        let generation = object.as_ref().and_then(|object| object.pointer("/metadata/generation")?.as_i64());
        let object = object.map(|object| seen_object(&object));
        add(fields, "object", object, namespace);
        let seen = |object: Value| json!({"finalizers": object.pointer("/metadata/finalizers"), "status": object.get("status")});
        let authentication = find(&lists.authentications, &format!("{name}-{AUTH}")).map(seen);
        add(fields, "authentication", authentication, namespace);
        let authentication =
            find(&lists.cluster_authentications, &format!("{namespace}-{name}-{CLUSTER}")).map(seen);
        add(fields, "clusterAuthentication", authentication, namespace);
        if !scenario.is_job() {
            let target = lists.targets.get(scenario.target().kind()).and_then(|list| find(list, name));
            let replicas = target.map(|target| target.pointer("/spec/replicas").cloned().unwrap_or_default());
            add(fields, "target.replicas", replicas, namespace);
        }
        for hpa in lists.hpas.iter().filter(|hpa| belongs(&text(hpa, "/metadata/name"), name)) {
            add(fields, &format!("hpa/{}", text(hpa, "/metadata/name")), Some(seen_hpa(hpa)), namespace);
        }
        let mut jobs: BTreeMap<String, usize> = BTreeMap::new();
        for job in lists.jobs.iter().filter(|job| belongs(&text(job, "/metadata/name"), name)) {
            *jobs.entry(masked(&seen_job(job, generation), namespace)).or_default() += 1;
        }
        fields.extend(jobs.into_iter().map(|(job, count)| (format!("jobs {job}"), count.to_string())));
        let mut reported: BTreeMap<(String, String), u64> = BTreeMap::new();
        for event in lists.events.iter().filter(|event| belongs(&text(event, "/involvedObject/name"), name)) {
            let (line, count) = (masked(&seen_event(event), namespace), count(event));
            if count > 1 {
                view.repeated.insert(line.clone());
            }
            *reported.entry((text(event, "/type"), text(event, "/involvedObject/uid"))).or_default() += count;
            view.fields.insert(line, "recorded".to_owned());
        }
        for ((kind, _), count) in reported {
            let most = view.reported.entry(kind).or_default();
            *most = count.max(*most);
        }
        view
    }

    /// The fields that differ.
    pub(crate) fn differences(theirs: &Self, ours: &Self) -> Vec<Field> {
        let names: BTreeSet<&String> = theirs.fields.keys().chain(ours.fields.keys()).collect();
        let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
        names
            .into_iter()
            .filter(|name| theirs.fields.get(*name) != ours.fields.get(*name))
            .map(|name| Field {
                name: name.clone(),
                theirs: shown(theirs.fields.get(name)),
                ours: shown(ours.fields.get(name)),
            })
            .collect()
    }

    /// Conditions and events, without their texts.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for (name, value) in &self.fields {
            if let Some(event) = name.strip_prefix("event ") {
                kinds.insert(format!("event {}", event.split(':').next().unwrap_or_default()));
            } else if let Some(kind) = name.strip_prefix("object.status.conditions.")
                && let Some(kind) = kind.strip_suffix(".reason")
            {
                let status = self.fields.get(&format!("object.status.conditions.{kind}.status"));
                let status = status.map_or("", String::as_str);
                kinds.insert(format!("condition {kind}={status} {value}"));
            }
        }
        kinds
    }

    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

fn add(fields: &mut BTreeMap<String, String>, name: &str, value: Option<Value>, namespace: &str) {
    match value {
        None => {
            fields.insert(name.to_owned(), "(none)".to_owned());
        }
        Some(value) => {
            let mut some = BTreeMap::new();
            flatten(name, &value, &mut some);
            fields.extend(
                some.into_iter().map(|(name, value)| (masked(&name, namespace), masked(&value, namespace))),
            );
        }
    }
}

fn seen_object(object: &Value) -> Value {
    let mut status = object.get("status").cloned().unwrap_or_default();
    if let Some(time) = status.get_mut("lastActiveTime").filter(|time| time.is_string()) {
        *time = "(a time)".into();
    }
    if let Some(health) = status.get_mut("health").and_then(Value::as_object_mut) {
        for health in health.values_mut() {
            if let Some(count) = health.get_mut("numberOfFailures").filter(|count| **count != json!(0)) {
                *count = "(some)".into();
            }
        }
    }
    if let Some(conditions) = status.get_mut("conditions") {
        let list = conditions.as_array().cloned().unwrap_or_default();
        let types: Vec<String> = list.iter().map(|condition| text(condition, "/type")).collect();
        let mut by_type: Map<String, Value> =
            list.iter().map(|condition| (text(condition, "/type"), condition.clone())).collect();
        by_type.insert("order".to_owned(), types.join(" ").into());
        *conditions = Value::Object(by_type);
    }
    json!({
        "labels": object.pointer("/metadata/labels"),
        "annotations": object.pointer("/metadata/annotations"),
        "finalizers": object.pointer("/metadata/finalizers"),
        "leaving": object.pointer("/metadata/deletionTimestamp").is_some(),
        "status": status,
    })
}

fn owners(object: &Value) -> Value {
    let mut owners = object.pointer("/metadata/ownerReferences").cloned().unwrap_or_default();
    for owner in owners.as_array_mut().into_iter().flatten() {
        if let Some(owner) = owner.as_object_mut() {
            owner.remove("uid");
        }
    }
    owners
}

fn seen_hpa(hpa: &Value) -> Value {
    json!({
        "labels": hpa.pointer("/metadata/labels"),
        "annotations": hpa.pointer("/metadata/annotations"),
        "owners": owners(hpa),
        "spec": hpa.get("spec"),
    })
}

fn seen_job(job: &Value, generation: Option<i64>) -> String {
    let mut annotations = job.pointer("/metadata/annotations").cloned().unwrap_or_default();
    if let Some(made_for) = annotations.get_mut("scaledjob.keda.sh/generation") {
        let version = made_for.as_str().and_then(|version| version.parse::<i64>().ok());
        let age = generation.zip(version).map(|(now, then)| now - then);
        *made_for = format!("{age:?} versions ago").into();
    }
    let mut spec = job.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("selector");
    }
    if let Some(labels) = spec.pointer_mut("/template/metadata/labels").and_then(Value::as_object_mut) {
        labels.retain(|key, _| !key.contains("controller-uid") && !key.contains("job-name"));
    }
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let conditions: Vec<String> = conditions.iter().map(|condition| text(condition, "/type")).collect();
    let seen = json!({
        "generateName": job.pointer("/metadata/generateName"),
        "labels": job.pointer("/metadata/labels"),
        "annotations": annotations,
        "finalizers": job.pointer("/metadata/finalizers"),
        "owners": owners(job),
        "spec": spec,
        "conditions": conditions,
    });
    seen.to_string()
}

/// The count of an event.
fn count(event: &Value) -> u64 {
    let counts = ["/count", "/series/count"].map(|path| event.pointer(path).and_then(Value::as_u64));
    // An event series counts the occurrences after the first one.
    let series = u64::from(event.pointer("/series").is_some_and(|series| !series.is_null()));
    counts.into_iter().flatten().max().unwrap_or_default().max(1 + series)
}

fn seen_event(event: &Value) -> String {
    let component = match text(event, "/source/component") {
        none if none.is_empty() => text(event, "/reportingComponent"),
        some => some,
    };
    format!(
        "event {} {}: {} (about {} {} {}, from {component}, action {})",
        text(event, "/type"),
        text(event, "/reason"),
        plain(&text(event, "/message")),
        text(event, "/involvedObject/apiVersion"),
        text(event, "/involvedObject/kind"),
        text(event, "/involvedObject/name"),
        plain(&text(event, "/action")),
    )
}

/// A text without random parts: the number of Jobs created at once, and the order of triggers at its end.
fn plain(text: &str) -> String {
    let counted = ["Created ", "Deleting ", "Deleted "].iter().find_map(|start| {
        let (count, rest) = text.strip_prefix(start)?.split_once(" jobs")?;
        count.parse::<u32>().is_ok().then(|| format!("{start}N jobs{rest}"))
    });
    if let Some(counted) = counted {
        return counted;
    }
    let Some((head, triggers)) = text.split_once(", triggered by ") else { return text.to_owned() };
    let mut triggers: Vec<&str> = triggers.split(';').collect();
    triggers.sort_unstable();
    format!("{head}, triggered by {}", triggers.join(";"))
}

pub(crate) fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether an object of this name belongs to the scenario.
fn belongs(name: &str, scenario: &str) -> bool {
    let name = name.strip_prefix("keda-hpa-").unwrap_or(name);
    name == scenario || name.strip_prefix(scenario).is_some_and(|rest| rest.starts_with('-'))
}

fn masked(text: &str, namespace: &str) -> String {
    text.replace(namespace, "{ns}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::differential::keda::scenario::trigger::Places;

    fn scenario(number: u64) -> KedaScenario {
        KedaScenario::new(1, number, Places { scaler: "127.0.0.1:1".into(), http: "127.0.0.1:2".into() })
    }

    fn lists(operator: ComparedOperator, failures: u64, time: &str, reason: &str) -> Lists {
        let namespace = operator.namespace();
        let condition = json!({"type": "Ready", "status": "True", "reason": reason, "message": format!("in {namespace}")});
        let health = json!({"s0-jobs": {"numberOfFailures": failures, "status": "Failing"}});
        let status = json!({"lastActiveTime": time, "health": health, "conditions": [condition]});
        let involved = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "s0"});
        let event = json!({
            "type": "Normal", "reason": "A", "message": "from 0 to 1, triggered by s1-b;s0-a", "count": failures,
            "involvedObject": involved, "reportingComponent": "keda-operator",
        });
        Lists {
            objects: vec![json!({"metadata": {"name": "s0", "uid": time}, "status": status})],
            events: vec![event],
            ..Lists::default()
        }
    }

    #[test]
    fn only_what_is_masked_is_left_out() {
        let scenario = scenario(0);
        let theirs = KedaView::new(
            &lists(ComparedOperator::Keda, 3, "2026-01-01T00:00:00Z", "X"),
            &scenario,
            ComparedOperator::Keda,
        );
        let ours = KedaView::new(
            &lists(ComparedOperator::Strict, 9, "2026-01-01T00:00:09Z", "X"),
            &scenario,
            ComparedOperator::Strict,
        );
        assert_eq!(KedaView::differences(&theirs, &ours), []);
        let reported = "event Normal A: from 0 to 1, triggered by s0-a;s1-b (about";
        assert!(theirs.fields.keys().any(|name| name.starts_with(reported)), "{theirs:?}");
        let ours = KedaView::new(
            &lists(ComparedOperator::Strict, 0, "2026-01-01T00:00:09Z", "Y"),
            &scenario,
            ComparedOperator::Strict,
        );
        let names: Vec<String> =
            KedaView::differences(&theirs, &ours).into_iter().map(|field| field.name).collect();
        let wanted =
            ["object.status.conditions.Ready.reason", "object.status.health.s0-jobs.numberOfFailures"];
        assert_eq!(names, wanted);
    }

    #[test]
    fn objects_belong_to_the_scenario_of_their_name() {
        assert!(belongs("s1", "s1") && belongs("keda-hpa-s1", "s1") && belongs("s1-auth", "s1"));
        assert!(!belongs("s12", "s1") && !belongs("keda-hpa-s12", "s1") && !belongs("xs1", "s1"));
    }

    #[test]
    fn jobs_are_counted_by_state() {
        let job = |name: &str, version: &str| {
            let annotations = json!({"scaledjob.keda.sh/generation": version});
            json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"selector": name}})
        };
        let made = |generation: i64, versions: [&str; 2]| Lists {
            scaled_jobs: vec![json!({"metadata": {"name": "s4", "generation": generation}})],
            jobs: versions
                .iter()
                .enumerate()
                .map(|(place, version)| job(&format!("s4-{place}"), version))
                .collect(),
            ..Lists::default()
        };
        let view = |lists: &Lists| KedaView::new(lists, &scenario(4), ComparedOperator::Keda);
        assert_eq!(view(&made(2, ["2", "2"])), view(&made(1, ["1", "1"])), "one version more");
        assert_ne!(view(&made(2, ["2", "2"])), view(&made(2, ["2", "1"])));
    }
}
