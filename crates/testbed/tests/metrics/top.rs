//! Output of `kubectl top`.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{Kubectl, TestNamespace, milli, on_both};

const MIB: u64 = 1 << 20;

/// Lines of words, such as kubectl prints.
fn lines(text: &[&str]) -> Vec<Vec<String>> {
    text.iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Sorted lines after the heading.
fn unordered(mut lines: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if let Some(rest) = lines.get_mut(1..) {
        rest.sort();
    }
    lines
}

async fn pods(ns: &TestNamespace) {
    ns.pod("quiet", "web", "web-0", &[("app", 250, 64 * MIB), ("log", 10, 32 * MIB)]).await;
    ns.pod("quiet", "web", "web-1", &[("app", 100, 300 * MIB)]).await;
    ns.pod("quiet", "db", "db-0", &[("db", 500, 128 * MIB)]).await;
    let used = |node: &Value| milli(&node["usage"]["cpu"]) == Some(1020);
    let all = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
    ns.until_answer(all, |_, output_text| {
        output_text["items"].as_array().is_some_and(|items| items.len() == 3)
    })
    .await;
    ns.until_answer("/apis/metrics.k8s.io/v1beta1/nodes/quiet", |_, node| used(node)).await;
}

#[test]
fn kubectl_top_prints_usage_of_pods_and_nodes() -> Result<(), Failure> {
    on_both(async |ns| {
        let Some(kubectl) = ns.kubectl() else { return };
        pods(&ns).await;
        tokio::task::block_in_place(|| look(&ns, &kubectl));
    })
}

fn look(ns: &TestNamespace, kubectl: &Kubectl) {
    let node = lines(&["NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%)", "quiet 1020m 12% 1244Mi 3%"]);
    assert_eq!(kubectl.words("top node quiet"), node);
    let nodes = kubectl.words("top nodes");
    assert!(nodes.contains(&node[1]), "{nodes:?}");
    assert!(nodes.len() > 2, "{nodes:?}");
    // Other tests use other nodes, and create some without metrics.
    let millis = |words: &Vec<String>| words[1].trim_end_matches('m').parse::<u64>().ok();
    let by_cpu = kubectl.words("top nodes --no-headers --sort-by=cpu");
    let by_cpu: Vec<u64> = by_cpu.iter().filter_map(millis).collect();
    assert!(by_cpu.is_sorted_by(|a, b| a >= b), "{by_cpu:?}");
    assert_eq!(kubectl.words("top nodes -l kubernetes.io/hostname=quiet"), node);

    let (head, db, web_0, web_1) =
        ("NAME CPU(cores) MEMORY(bytes)", "db-0 500m 128Mi", "web-0 260m 96Mi", "web-1 100m 300Mi");
    assert_eq!(kubectl.words("top pods"), lines(&[head, db, web_0, web_1]));
    assert_eq!(kubectl.words("top pods --sort-by=cpu"), lines(&[head, db, web_0, web_1]));
    assert_eq!(kubectl.words("top pods --sort-by=memory"), lines(&[head, web_1, db, web_0]));
    assert_eq!(kubectl.words("top pods -l app=web"), lines(&[head, web_0, web_1]));
    assert_eq!(kubectl.words("top pods --field-selector metadata.name=db-0"), lines(&[head, db]));
    assert_eq!(kubectl.words("top pod web-1 --no-headers"), lines(&[web_1]));
    assert_eq!(kubectl.words("top pods --use-protocol-buffers=false"), lines(&[head, db, web_0, web_1]));
    let sum = kubectl.words("top pods --sum");
    assert_eq!(sum.last(), lines(&["860m 524Mi"]).first(), "{sum:?}");
    let containers = lines(&[
        "POD NAME CPU(cores) MEMORY(bytes)",
        "db-0 db 500m 128Mi",
        "web-0 app 250m 64Mi",
        "web-0 log 10m 32Mi",
        "web-1 app 100m 300Mi",
    ]);
    assert_eq!(unordered(kubectl.words("top pods --containers")), containers);
    let everywhere = kubectl.words("top pods -A --containers");
    let own = [ns.namespace.as_str(), "db-0", "db", "500m", "128Mi"].map(str::to_owned).to_vec();
    assert!(everywhere.contains(&own), "{everywhere:?}");
    let (good, output_text) = kubectl.run("top pod absent");
    assert!(
        !good && output_text.contains("Error from server (NotFound): pods \"absent\" not found"),
        "{output_text}"
    );

    // Windows differ from run to run.
    let without_window = |line: &str| -> Vec<Vec<String>> {
        let mut all = kubectl.words(line);
        for words in &mut all {
            words.pop();
            let cpu = words.get(1).and_then(|word| milli(&json!(word)));
            words.splice(1..2, [cpu.map_or_else(|| "CPU".to_owned(), |milli| format!("{milli}m"))]);
        }
        all
    };
    let table = lines(&["NAME CPU MEMORY", "db-0 500m 128Mi", "web-0 260m 96Mi", "web-1 100m 300Mi"]);
    assert_eq!(without_window("get podmetrics"), table);
    assert_eq!(
        without_window("get pods.metrics.k8s.io -l app=db"),
        lines(&["NAME CPU MEMORY", "db-0 500m 128Mi"])
    );
    assert_eq!(without_window("get nodemetrics quiet"), lines(&["NAME CPU MEMORY", "quiet 1020m 1244Mi"]));
    let (good, output_text) =
        kubectl.run("get podmetrics web-0 -o jsonpath={.kind}/{.containers[*].usage.memory}");
    assert!(good && output_text.starts_with("PodMetrics/") && output_text.contains("64Mi"), "{output_text}");
}
