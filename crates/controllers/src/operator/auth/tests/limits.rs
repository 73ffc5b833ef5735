//! How much one TriggerAuthentication may cost.

use std::sync::Mutex;

use tokio::time::{Instant, sleep};

use super::*;

/// Objects from manifests, each of which takes time.
struct CountedObjects {
    objects: ManifestObjects,
    delay: Duration,
    reads: Mutex<Vec<String>>,
}

impl CountedObjects {
    async fn count(&self, resource: &str, name: &str) {
        self.reads.lock().unwrap().push(format!("{resource} {name}"));
        sleep(self.delay).await;
    }
}

impl AuthObjects for CountedObjects {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        Box::pin(async move {
            self.count("secrets", name).await;
            self.objects.secret(namespace, name).await
        })
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        Box::pin(async move {
            self.count("configmaps", name).await;
            self.objects.config_map(namespace, name).await
        })
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        self.objects.service_account(namespace, name)
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, api::keda::TriggerAuthentication> {
        self.objects.authentication(namespace, name)
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        lasting: Duration,
    ) -> Fetch<'a, String> {
        self.objects.token(namespace, account, audience, lasting)
    }
}

fn counted(objects: &[Value], delay: Duration) -> (Arc<CountedObjects>, AuthResolver) {
    let objects = ManifestObjects::new(objects.to_vec());
    let counted = Arc::new(CountedObjects { objects, delay, reads: Mutex::default() });
    let auth = AuthResolver::new(counted.clone(), rules(Compat::Better));
    (counted, auth)
}

/// Entries of `secretTargetRef` for the Secret `s`.
fn references(count: usize) -> Vec<Value> {
    let one = |number: usize| json!({"parameter": format!("p{number}"), "name": "s", "key": "url"});
    (0..count).map(one).collect()
}

#[tokio::test]
async fn each_object_is_read_once() {
    let map = json!({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"k": "v"}});
    let spec = json!({
        "env": [{"parameter": "a", "name": "url"}, {"parameter": "b", "name": "k"}, {"parameter": "c", "name": "url", "containerName": "app"}],
        "configMapTargetRef": [{"parameter": "d", "name": "c", "key": "k"}, {"parameter": "e", "name": "c", "key": "k"}],
        "secretTargetRef": references(100),
    });
    let sources = json!([{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "c"}}]);
    let containers = json!([{"name": "app", "envFrom": sources}]);
    let workload = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let template = PodTemplate::of_workload(&workload).unwrap();
    let (objects, auth) = counted(&[authentication(&spec), map, secret("ns", "u")], Duration::ZERO);
    let resolved = resolve_with(&auth, "", Some(&template)).await.unwrap();
    for (parameter, value) in [("a", "u"), ("b", "v"), ("c", "u"), ("d", "v"), ("e", "v"), ("p99", "u")] {
        assert_eq!(resolved.parameters[parameter], value, "{parameter}");
    }
    assert_eq!(*objects.reads.lock().unwrap(), ["secrets s", "configmaps c"]);
}

#[tokio::test]
async fn lists_are_bounded() {
    let (_, auth) = counted(
        &[authentication(&json!({"secretTargetRef": references(1000)})), secret("ns", "u")],
        Duration::ZERO,
    );
    assert_eq!(resolve_as(&auth, "").await.unwrap().parameters.len(), 1000);
    let entries = vec![json!({"parameter": "p"}); 1001];
    for (list, spec) in [
        ("env", json!({"env": entries})),
        ("configMapTargetRef", json!({"configMapTargetRef": entries})),
        ("secretTargetRef", json!({"secretTargetRef": entries})),
        ("hashiCorpVault.secrets", json!({"hashiCorpVault": {"secrets": entries}})),
        ("azureKeyVault.secrets", json!({"azureKeyVault": {"secrets": entries}})),
        ("gcpSecretManager.secrets", json!({"gcpSecretManager": {"secrets": entries}})),
        ("awsSecretManager.secrets", json!({"awsSecretManager": {"secrets": entries}})),
        ("boundServiceAccountToken", json!({"boundServiceAccountToken": entries})),
    ] {
        for compat in [Compat::Better, Compat::Strict] {
            let error = resolve_as(&auth_of(&spec, compat), "").await.unwrap_err().to_string();
            let words = format!("TriggerAuthentication ns/ta: {list} has 1001 entries, more than 1000: ");
            assert!(error.starts_with(&words), "{error}");
        }
    }
}

#[tokio::test]
async fn objects_of_variables_are_bounded() {
    let from: Vec<Value> = (0..1001).map(|n| json!({"secretRef": {"name": format!("s{n}")}})).collect();
    let template = json!({"template": {"spec": {"containers": [{"name": "app", "envFrom": from}]}}});
    let template = PodTemplate::of_job(&template).unwrap();
    let error = super::auth(&[], Compat::Better).environment("ns", Some(&template), "").await.unwrap_err();
    let words = "the variables of container \"app\" come from more than 1000 Secrets and ConfigMaps";
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.seen.is_empty(), "nothing is read");
}

fn auth_of(spec: &Value, compat: Compat) -> AuthResolver {
    super::auth(&[authentication(spec)], compat)
}

#[tokio::test]
async fn values_are_bounded_together() {
    let large = "x".repeat(1 << 20);
    for compat in [Compat::Better, Compat::Strict] {
        let resolve = async |count: usize| {
            let spec = json!({"secretTargetRef": references(count)});
            let auth = super::auth(&[authentication(&spec), secret("ns", &large)], compat);
            resolve_as(&auth, "").await
        };
        assert_eq!(resolve(8).await.unwrap().parameters.len(), 8);
        let error = resolve(9).await.unwrap_err().to_string();
        assert!(error.starts_with("TriggerAuthentication ns/ta: its values are larger than"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn resolution_ends_in_time() {
    let names: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    let reference = |name: &String| json!({"parameter": name, "name": name, "key": "url"});
    let spec = json!({"secretTargetRef": names.iter().map(reference).collect::<Vec<_>>()});
    let data = json!({"url": "u"});
    let mut objects = vec![authentication(&spec)];
    objects.extend(names.iter().map(
        |name| json!({"kind": "Secret", "metadata": {"name": name, "namespace": "ns"}, "stringData": data}),
    ));
    let (_, auth) = counted(&objects, Duration::from_secs(10));
    let began = Instant::now();
    let error = resolve_as(&auth, "").await.unwrap_err();
    let elapsed = began.elapsed();
    let in_time = RESOLVE_TIMEOUT..RESOLVE_TIMEOUT + Duration::from_secs(1);
    assert!(in_time.contains(&elapsed), "{elapsed:?}");
    assert!(
        error.to_string().starts_with("TriggerAuthentication ns/ta: its values were not read within 25s: "),
        "{error}"
    );
    let read = ["TriggerAuthentication ns/ta", "Secret ns/s0", "Secret ns/s1", "Secret ns/s2"];
    assert_eq!(seen(&error.seen), read);
}
