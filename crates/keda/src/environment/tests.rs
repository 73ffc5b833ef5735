use proptest::prelude::*;
use serde_json::json;

use super::*;

fn container(value: Value) -> Container {
    serde_json::from_value(value).unwrap()
}

fn keys(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn fetched() -> FetchedSources {
    FetchedSources {
        secrets: [("s".to_owned(), Ok(keys(&[("url", "http://u/vhost")])))].into(),
        config_maps: [
            ("c".to_owned(), Ok(keys(&[("url", "http://cm/vh")]))),
            ("nope".to_owned(), Err("configmaps \"nope\" not found".into())),
        ]
        .into(),
    }
}

#[test]
fn variables_are_expanded_from_those_before_them() {
    let of = |text: &str| expand(text, &BTreeMap::from([("X".to_owned(), "plain".to_owned())]));
    assert_eq!(of("http://$(X)/v"), "http://plain/v");
    assert_eq!(of("http://$(NOPE)/v"), "http://$(NOPE)/v");
    assert_eq!(of("http://$$(X)/v"), "http://$(X)/v");
    assert_eq!(of("$X $ $("), "$X $ $(");
}

#[test]
fn objects_come_first_and_single_variables_overwrite() {
    let container = container(json!({
        "name": "app",
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}, {"secretRef": {"name": "s"}}],
        "env": [{"name": "H", "value": "$(url)!"}, {"name": "url", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "url"}}},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }));
    let found = resolve(&container, "ns", true, &fetched()).unwrap();
    let wanted = [("H", "http://u/vhost!"), ("P_url", "http://cm/vh"), ("url", "http://cm/vh")];
    assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let names: Vec<String> = needed(&container, "ns", true).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ConfigMap ns/c", "Secret ns/s"]);
}

#[test]
fn missing_objects_are_errors_unless_optional() {
    let one = container(json!({"envFrom": [{"configMapRef": {"name": "nope"}}]}));
    let error = resolve(&one, "ns", true, &fetched()).unwrap_err().to_string();
    assert_eq!(
        error,
        "error reading config ref &ConfigMapEnvSource{LocalObjectReference:LocalObjectReference{Name:nope,},\
         Optional:nil,} on namespace ns/: configmaps \"nope\" not found"
    );
    let optional = container(json!({"envFrom": [{"configMapRef": {"name": "nope", "optional": true}}]}));
    assert_eq!(resolve(&optional, "ns", true, &fetched()), Ok(BTreeMap::new()));
    let mut fetched = fetched();
    fetched.secrets.insert("gone".to_owned(), Err("secrets \"gone\" not found".into()));
    let error = |value: Value| resolve(&container(value), "ns", true, &fetched).unwrap_err().to_string();
    assert_eq!(
        error(json!({"envFrom": [{"secretRef": {"name": "gone"}}]})),
        "error reading secret ref &SecretEnvSource{LocalObjectReference:LocalObjectReference{Name:gone,},\
         Optional:nil,} on namespace ns: secrets \"gone\" not found"
    );
    let key = json!({"name": "nope", "key": "url", "optional": false});
    assert_eq!(
        error(json!({"env": [{"name": "H", "valueFrom": {"configMapKeyRef": key}}]})),
        "error resolving config &ConfigMapKeySelector{LocalObjectReference:LocalObjectReference{Name:nope,},\
         Key:url,Optional:*false,} for env H in namespace ns"
    );
}

#[test]
fn optional_missing_objects_hide_no_variable() {
    let of = |name: &str, from: &str, key: &str| json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": from, "key": key, "optional": true}}});
    let container = container(json!({
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "env": [of("url", "nope", "url"), of("A", "nope", "url"), of("B", "c", "none"), {"name": "C", "value": "$(A)$(B)!"}],
    }));
    let found = resolve(&container, "ns", true, &fetched()).unwrap();
    assert_eq!(found, keys(&[("B", ""), ("C", "$(A)!"), ("url", "http://cm/vh")]));
}

#[test]
fn secrets_without_permission_are_skipped() {
    let container = container(json!({
        "envFrom": [{"secretRef": {"name": "s"}}],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}}, {"name": "B", "value": "b"}],
    }));
    assert_eq!(needed(&container, "ns", false), []);
    let found = resolve(&container, "ns", false, &FetchedSources::default()).unwrap();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["B"]);
}

#[test]
fn exponential_expansion_is_limited() {
    let twice = |(name, of): (String, String)| json!({"name": name, "value": format!("$({of})$({of})")});
    let mut env = vec![json!({"name": "V0", "value": "a long word"})];
    env.extend((1..64).map(|n| (format!("V{n}"), format!("V{}", n - 1))).map(twice));
    let doubled = container(json!({"name": "app", "env": env}));
    let too_large = EnvironmentError::TooLarge("app".to_owned());
    assert_eq!(resolve(&doubled, "ns", true, &FetchedSources::default()), Err(too_large.clone()));
    // Nor does one that is taken again and again.
    let large = Ok(keys(&[("k", &"x".repeat(1 << 20))]));
    let fetched =
        FetchedSources { config_maps: [("c".to_owned(), large)].into(), ..FetchedSources::default() };
    let from: Vec<Value> =
        (0..100).map(|n| json!({"configMapRef": {"name": "c"}, "prefix": format!("P{n}")})).collect();
    let repeated = container(json!({"name": "app", "envFrom": from}));
    assert_eq!(resolve(&repeated, "ns", true, &fetched), Err(too_large));
}

#[test]
fn objects_are_read_until_they_are_too_large_and_only_with_the_keys_that_are_used() {
    let map = |name: &str| SourceRef {
        kind: SourceKind::ConfigMap,
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    };
    let large = || Ok(keys(&[("k", &"x".repeat(1 << 20)), ("other", "v")]));
    let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let from: Vec<Value> = names.iter().map(|name| json!({"configMapRef": {"name": name}})).collect();
    let whole = container(json!({"name": "app", "envFrom": from}));
    let mut read = SourcesOfContainer::default();
    let added = names.iter().filter(|name| read.add(&whole, &map(name), large()).is_ok()).count();
    assert_eq!(added, 7);
    // One key of each is small.
    let one = |name: &String| json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": name, "key": "other"}}});
    let single = container(json!({"name": "app", "env": names.iter().map(one).collect::<Vec<_>>()}));
    let mut read = SourcesOfContainer::default();
    for name in &names {
        read.add(&single, &map(name), large()).unwrap();
    }
    let found = resolve(&single, "ns", true, &read.fetched).unwrap();
    assert_eq!(found.len(), 20);
    assert!(found.values().all(|value| value == "v"));
}

#[test]
fn container_is_the_named_or_the_first() {
    let template =
        PodTemplate::of_job(&json!({"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}))
            .unwrap();
    assert_eq!(template.container("").unwrap().unwrap().name, "a");
    assert_eq!(template.container("b").unwrap().unwrap().name, "b");
    let error = template.container("ghost").err().unwrap().to_string();
    assert_eq!(error, "couldn't find container with name ghost on Target object");
    assert!(PodTemplate::of_workload(&json!({"spec": {"workloadRef": {}}})).is_none());
}

proptest! {
    #[test]
    fn without_dollars_nothing_is_expanded(text in "[^$]*") {
        prop_assert_eq!(expand(&text, &BTreeMap::new()), text);
    }

    #[test]
    fn any_text_can_be_expanded(text in ".*") {
        let known = BTreeMap::from([("A".to_owned(), "$(A)".to_owned())]);
        expand(&text, &known);
    }
}
