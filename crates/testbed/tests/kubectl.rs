//! The real kubectl runs the commands of the php-apache walk-through on each cluster, and prints the same on both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "shared/kubectl.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod kubectl;

use std::path::Path;

use kubectl::Kubectl;
use localkube::nodes::{Nodes, Plan};
use testbed::harness::{self, Cluster, Failure, LOCAL, REAL, Workloads};

/// One command, or several lines of a watch while another command runs.
enum Step {
    Run(&'static str),
    /// A watch, the command that runs meanwhile, and the number of lines that the watch prints.
    Watch(&'static str, &'static str, usize),
}

use Step::{Run, Watch};

/// The commands of the walk-through. `FILE` is the manifest below.
const SCRIPT: &[Step] = &[
    Run("version"),
    Run("api-resources --api-group=autoscaling"),
    Run("apply -f FILE --dry-run=server"),
    Run("apply -f FILE"),
    Run("rollout status deployment/php-apache"),
    Run("wait --for=condition=Available deployment/php-apache --timeout=60s"),
    Run("wait --for=condition=Ready pod -l run=php-apache --timeout=60s"),
    Run("get deployments,replicasets,pods,services"),
    Run("get deployments,replicasets,pods -o wide"),
    Run("get pods --show-labels"),
    Run("describe deployment php-apache"),
    Run("describe pods -l run=php-apache"),
    Run("autoscale deployment php-apache --cpu=50% --min=1 --max=10"),
    Run("get hpa"),
    Run("get hpa php-apache -o wide"),
    Run("describe hpa php-apache"),
    Watch(
        "get hpa php-apache --watch",
        "patch hpa php-apache --type=merge -p {\"spec\":{\"maxReplicas\":8}}",
        3,
    ),
    Run("scale deployment php-apache --replicas=3"),
    Run("rollout status deployment/php-apache"),
    Run("wait --for=condition=Ready pod -l run=php-apache --timeout=60s"),
    Run("get deployment php-apache"),
    Run("get pods"),
    Run("scale deployment php-apache --current-replicas=7 --replicas=1"),
    Run("patch deployment php-apache -p {\"metadata\":{\"labels\":{\"tier\":\"web\"}}}"),
    Run(
        "patch deployment php-apache --type=json -p [{\"op\":\"remove\",\"path\":\"/metadata/labels/tier\"}]",
    ),
    Run("apply -f FILE"),
    Run("diff -f FILE"),
    Run("apply --server-side -f FILE"),
    Run("apply --server-side --force-conflicts -f FILE"),
    Run("rollout status deployment/php-apache"),
    Run("scale deployment php-apache --replicas=1"),
    Run("wait --for=jsonpath={.status.replicas}=1 deployment/php-apache --timeout=60s"),
    Run("get deployment php-apache -o jsonpath={.spec.replicas}/{.status.readyReplicas}"),
    Run("get hpa,deployment -o name"),
    Run("get hpa php-apache -o custom-columns=NAME:.metadata.name,MAX:.spec.maxReplicas"),
    Run("label deployment php-apache tier=web"),
    Run("annotate hpa php-apache note=seen"),
    Run("get deployment absent"),
    Run("get dreams"),
    Run("apply -f FILE --namespace=absent"),
    Run("delete hpa php-apache"),
    Run("delete -f FILE"),
    Run("wait --for=delete pod -l run=php-apache --timeout=60s"),
    Run("get hpa,deployments,replicasets,pods,services"),
];

const MANIFEST: &str = include_str!("shared/php-apache.yaml");

#[test]
fn walkthrough_prints_the_same_on_both_clusters() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let Some(real) = Cluster::real(Workloads::On).await? else { return Ok(()) };
        let access = testbed::shared().unwrap();
        let kubeconfig = std::fs::read_to_string(&access.kubeconfig).unwrap();
        let local = localkube::Cluster::start(localkube::Options::default()).await.unwrap();
        let server = local.serve().await.unwrap();
        let reached = Cluster::reached(LOCAL, &server.kubeconfig).await?;
        let (first, second) = tokio::join!(
            walk(&real, &kubeconfig, &access.parts.kubectl),
            walk(&reached, &server.kubeconfig, &access.parts.kubectl)
        );
        compare(&first?, &second?);
        Ok(())
    })
}

/// The whole output of kubectl on one cluster.
async fn walk(
    cluster: &Cluster,
    kubeconfig: &str,
    kubectl: &Path,
) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let session = cluster.session("walk").await?;
    let namespace = session.namespace().to_owned();
    let plan =
        Plan { count: 1, prefix: namespace.clone(), namespace: Some(namespace.clone()), ..Plan::default() };
    let nodes = Nodes::start(cluster.client.clone(), plan).await.unwrap();
    let kubectl = Kubectl::of(kubectl.to_owned(), kubeconfig, &namespace);
    kubectl.write("php-apache.yaml", MANIFEST);
    let printed =
        tokio::task::spawn_blocking(move || SCRIPT.iter().map(|step| take(&kubectl, step)).collect());
    let printed = printed.await.unwrap();
    for name in nodes.names() {
        session.request(http::Method::DELETE, &format!("/api/v1/nodes/{name}")).send_unrecorded().await;
    }
    drop(nodes);
    cluster.delete_namespace(&session).await;
    Ok(printed)
}

fn take(kubectl: &Kubectl, step: &Step) -> (String, Vec<String>) {
    let (line, text) = match step {
        Run(line) => (*line, run(kubectl, line)),
        Watch(line, meanwhile, count) => (*line, watch(kubectl, line, meanwhile, *count)),
    };
    let folder = kubectl.folder();
    let text = text.replace(folder.to_str().unwrap(), "{folder}").replace(&kubectl.namespace, "{ns}");
    (line.to_owned(), normal(&text))
}

fn run(kubectl: &Kubectl, line: &str) -> String {
    let output = kubectl.output(&line.replace("FILE", "php-apache.yaml"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}exit {}\n", output.status.code().unwrap_or(-1))
}

fn watch(kubectl: &Kubectl, line: &str, meanwhile: &str, count: usize) -> String {
    let watch = kubectl.watch(line);
    let mut text = String::new();
    for at in 0..count {
        // The last line is printed by the command that runs meanwhile.
        if at + 1 == count {
            text += &run(kubectl, meanwhile);
        }
        text += &format!("{}\n", watch.next().unwrap_or_else(|| "<nothing>".into()));
    }
    text
}

fn compare(real: &[(String, Vec<String>)], local: &[(String, Vec<String>)]) {
    let mut text = String::new();
    for ((line, first), (_, second)) in real.iter().zip(local) {
        if first == second {
            continue;
        }
        text += &format!("\n$ kubectl {line}\n");
        for at in 0..first.len().max(second.len()) {
            let (one, other) = (first.get(at), second.get(at));
            if one != other {
                text += &format!("  {REAL}: {}\n", one.map_or("(no line)", String::as_str));
                text += &format!("  {LOCAL}: {}\n", other.map_or("(no line)", String::as_str));
            }
        }
    }
    if std::env::var_os("PLIMSOLL_SHOW").is_some() {
        for (line, printed) in real {
            eprintln!("$ kubectl {line}\n{}", printed.join("\n"));
        }
    }
    assert!(text.is_empty(), "kubectl prints other things on localkube:\n{text}");
}

/// Replaces values that differ from run to run: ages, hashes, generated names, addresses, times.
fn normal(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut events = None;
    // The progress of a rollout at this time differs from run to run.
    for line in text.lines().filter(|line| !line.starts_with("Waiting for deployment")) {
        let words: Vec<String> =
            line.trim_end().split("  ").filter(|cell| !cell.is_empty()).map(cell).collect();
        let indent = line.len() - line.trim_start().len();
        if line.starts_with("Events:") {
            events = Some(lines.len() + 1);
        }
        lines.push(format!("{}{}", " ".repeat(indent), words.join("  ")));
    }
    // The order of events of the same second is undefined.
    if let Some(begin) = events.filter(|begin| *begin < lines.len()) {
        lines[begin..].sort_unstable();
    }
    lines
}

/// Replaces volatile values in one cell of a table, or in a text between wide gaps.
fn cell(text: &str) -> String {
    let words: Vec<String> = text.trim().split(' ').map(word).collect();
    let joined = words.join(" ");
    // `Mon, 02 Jan 2006 15:04:05 +0000`
    let is_time = joined.split(", ").nth(1).is_some_and(|rest| rest.ends_with("+0000"));
    if is_time { "<time>".into() } else { joined }
}

fn word(text: &str) -> String {
    const SAFE: &str = "bcdfghjklmnpqrstvwxz2456789";
    let safe = |part: &str| part.chars().all(|c| SAFE.contains(c));
    // `php-apache-5d9b8c7f6-x2x4z`, wherever it stands.
    let mut parts: Vec<String> = Vec::new();
    for part in text.split_inclusive(['-', '/', '"', '=', ',', ':', '(', ')']) {
        let (name, end) =
            part.split_at(part.trim_end_matches(['-', '/', '"', '=', ',', ':', '(', ')']).len());
        let hash = (8..=10).contains(&name.len()) && safe(name);
        let suffix = name.len() == 5 && safe(name);
        let named = if hash {
            "<hash>"
        } else if suffix {
            "<name>"
        } else {
            name
        };
        parts.push(format!("{named}{end}"));
    }
    let text = parts.concat();
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if is_age(&text) {
        "<age>".into()
    } else if text.split('.').count() == 4 && text.split('.').all(digits) {
        "<ip>".into()
    } else if let Some((kind, id)) = text.split_once("://").filter(|(_, id)| id.len() == 64) {
        format!("{kind}://<{} digits>", id.len())
    } else {
        text
    }
}

/// Whether a text is an age, such as `5s` and `2m10s`, but not `200m`, which is a quantity.
fn is_age(text: &str) -> bool {
    let units = text.chars().filter(|c| "sm".contains(*c)).count();
    text.starts_with(|c: char| c.is_ascii_digit())
        && (text.ends_with('s') || (text.ends_with('m') && text.len() < 4))
        && units + text.chars().filter(char::is_ascii_digit).count() == text.len()
}

#[test]
fn volatile_values_are_replaced() {
    let table = "NAME                          READY   AGE\npod/php-apache-5d9b8c7f6-x2x4z   1/1     2m10s\n";
    assert_eq!(normal(table), ["NAME  READY  AGE", "pod/php-apache-<hash>-<name>  1/1  <age>"]);
    assert_eq!(normal("Start Time:  Sun, 15 Nov 2026 05:24:57 +0000"), ["Start Time:  <time>"]);
    assert_eq!(normal("service/php-apache   ClusterIP   10.0.12.3"), ["service/php-apache  ClusterIP  <ip>"]);
    assert_eq!(normal("maxReplicas: 8"), ["maxReplicas: 8"]);
    assert_eq!(normal("cpu:  200m"), ["cpu:  200m"]);
}

#[test]
fn test_runs_on_each_cluster() -> Result<(), Failure> {
    let seen = std::sync::Mutex::new(Vec::new());
    harness::on_both(|ns| {
        seen.lock().unwrap().push(ns.cluster);
        async move {
            let path = format!("/api/v1/namespaces/{}", ns.namespace);
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let text = ns.client.request_text(request).await.unwrap();
            assert!(text.contains("Active"), "on {}: {text}", ns.cluster);
        }
    })?;
    let seen = seen.into_inner().unwrap();
    assert!(seen == [LOCAL, REAL] || seen == [LOCAL], "{seen:?}");
    Ok(())
}
