//! `cargo xtask chart`: renders the plain manifests of `deploy/` from the Helm chart, so that both have one source.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use testbed::Helm;

const CHART: &str = "charts/plimsoll";

/// Renders `deploy/` from the Helm chart.
#[derive(clap::Args)]
pub(crate) struct ChartArgs {
    /// Write nothing; fail if a committed file differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// Which of the chart's objects belong to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Rbac,
    ApiService,
    Webhook,
    NetworkPolicy,
    Other,
}

impl Group {
    fn of(kind: &str) -> Self {
        match kind {
            "ServiceAccount" | "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => Self::Rbac,
            "APIService" => Self::ApiService,
            "ValidatingWebhookConfiguration" => Self::Webhook,
            "NetworkPolicy" => Self::NetworkPolicy,
            _ => Self::Other,
        }
    }
}

/// A file below `deploy/`: its path, the comment or objects at its beginning, and what follows.
type Manifest = (&'static str, &'static str, &'static [Group]);

/// One call of `helm template` and the files that it yields.
struct Rendering {
    namespace: &'static str,
    values: &'static [&'static str],
    /// Objects of this earlier rendering are left out.
    without: Option<usize>,
    manifests: &'static [Manifest],
}

const SYSTEM: &str = "plimsoll-system";
const METRICS: &[&str] = &["--set=controller.enabled=false", "--set=metrics.enabled=true"];

const RENDERINGS: &[Rendering] = &[
    Rendering {
        namespace: SYSTEM,
        values: &["--set=controller.mode=active"],
        without: None,
        manifests: &[
            (
                "2-rbac.yaml",
                "# What the controller may do. cargo test --test deploy runs it under these roles.\n",
                &[Group::Rbac],
            ),
            (
                "3-controller.yaml",
                "# The controller writes caBundle of its APIService (--enable-cert-rotation). With another certificate for\n\
                 # plimsoll-controller.plimsoll-system.svc, mount its Secret, pass --tls-cert-file and --tls-private-key-file\n\
                 # instead, and write its CA here; the chart does that for cert-manager.\n",
                &[Group::Other, Group::ApiService],
            ),
        ],
    },
    Rendering {
        namespace: SYSTEM,
        values: METRICS,
        without: None,
        manifests: &[
            ("metrics/1-rbac.yaml", "# What the metrics server may do.\n", &[Group::Rbac]),
            ("metrics/2-metrics.yaml", "", &[Group::Other]),
            (
                "metrics/3-apiservices.yaml",
                "# These take metrics.k8s.io over from its present server, which can be removed once `plimsoll metrics doctor`\n\
                 # reports no problem. The metrics server writes caBundle (--enable-cert-rotation).\n",
                &[Group::ApiService],
            ),
        ],
    },
    Rendering {
        namespace: SYSTEM,
        values: &["--values=charts/plimsoll/ci/prometheus-values.yaml"],
        without: Some(1),
        manifests: &[
            (
                "metrics/prometheus/1-rules.yaml",
                "# Rules in the language of prometheus-adapter, whose configuration can be put here unchanged.\n\
                 # Check them first: plimsoll metrics lint rules.yaml\n",
                &[Group::Other, Group::Rbac],
            ),
            (
                "metrics/prometheus/2-apiservices.yaml",
                "# These take custom and external metrics over from their present server. Name it in --upstreams if it is still\n\
                 # needed. The metrics server writes caBundle.\n",
                &[Group::ApiService],
            ),
        ],
    },
    Rendering {
        namespace: SYSTEM,
        values: &["--set=controller.enabled=false", "--set=operator.enabled=true"],
        without: None,
        manifests: &[
            ("operator/1-rbac.yaml", "# What the operator may do.\n", &[Group::Rbac]),
            ("operator/2-operator.yaml", "", &[Group::Other]),
            (
                "operator/3-apiservice.yaml",
                "# Takes external.metrics.k8s.io over from its present server. The operator writes caBundle.\n",
                &[Group::ApiService],
            ),
            (
                "operator/4-webhook.yaml",
                "# Refuses invalid objects when they are written. The operator writes caBundle; until then, and while no replica\n\
                 # runs, writes are not checked (failurePolicy: Ignore).\n",
                &[Group::Webhook],
            ),
        ],
    },
    Rendering {
        namespace: SYSTEM,
        values: &[
            "--set=controller.mode=active",
            "--set=metrics.enabled=true",
            "--set=operator.enabled=true",
            "--set=networkPolicies.enabled=true",
        ],
        without: None,
        manifests: &[(
            "networkpolicies/networkpolicies.yaml",
            "# Who may reach our pods and whom they may reach, for clusters whose network enforces policies:\n\
             #   kubectl apply -f deploy/networkpolicies\n\
             # API servers usually run outside of the pod network, at addresses that no selector names; so the ports that they\n\
             # call are open to all addresses, and the servers there authenticate their clients. Add\n\
             # `from: [{ipBlock: {cidr: …}}]` with the addresses of your control plane to close them.\n\
             # The controller may reach API servers at the ports 443 and 6443: add that of yours if it is another one, with\n\
             # networks such as Cilium to all policies.\n\
             # The network always allows probes of the kubelet. Where pods get the credentials of a cloud from a metadata\n\
             # service, allow its address to the operator: {ipBlock: {cidr: 169.254.169.254/32}}.\n",
            &[Group::NetworkPolicy],
        )],
    },
    Rendering {
        namespace: "plimsoll-shadow",
        values: &["--set=controller.mode=shadow", "--set=podDisruptionBudgets.enabled=false"],
        without: None,
        manifests: &[(
            "shadow/shadow.yaml",
            "# The controller in shadow mode beside the one that acts: it decides, compares, reports, and writes only events.\n\
             #   kubectl apply -f deploy/shadow && plimsoll shadow report\n\
             # A cluster has one API of decisions: applying deploy/ later hands it over to the controller that then acts.\n\
             apiVersion: v1\nkind: Namespace\nmetadata:\n  name: plimsoll-shadow\n  labels:\n    \
             app.kubernetes.io/part-of: plimsoll\n    pod-security.kubernetes.io/enforce: restricted\n---\n",
            &[Group::Rbac, Group::Other, Group::ApiService],
        )],
    },
];

pub(crate) fn run(args: &ChartArgs) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = 0;
    for (name, wanted) in files(&root, &Helm::ensure()?.helm)? {
        let path = root.join("deploy").join(&name);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if args.check {
            eprintln!(
                "error: deploy/{name} differs from the chart\n  remedy: cargo xtask chart, then commit it"
            );
            stale += 1;
            continue;
        }
        std::fs::write(&path, wanted).with_context(|| format!("writing {}", path.display()))?;
        println!("deploy/{name}");
    }
    Ok(if stale == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Path below `deploy/` and content of every rendered file.
fn files(root: &Path, helm: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut rendered: Vec<Vec<Document>> = Vec::new();
    for rendering in RENDERINGS {
        let output = Command::new(helm)
            .current_dir(root)
            .args(["template", "plimsoll", CHART, "--namespace", rendering.namespace])
            // kubectl runs no hooks; it would create their objects.
            .args(["--no-hooks", "--set=crds.install=false", "--set=image.tag=VERSION"])
            .args(rendering.values)
            .output()
            .context("running helm")?;
        if !output.status.success() {
            bail!("helm template: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let documents = documents(&String::from_utf8(output.stdout)?);
        for (name, head, groups) in rendering.manifests {
            let known = rendering.without.and_then(|index| rendered.get(index));
            let mut texts = Vec::new();
            for group in *groups {
                let of_group = documents.iter().filter(|document| Group::of(&document.kind) == *group);
                let new = of_group
                    .filter(|document| !known.is_some_and(|known| known.iter().any(|k| k.is(document))));
                texts.extend(new.map(|document| document.text.as_str()));
            }
            files.insert((*name).to_owned(), format!("{head}{}", texts.join("---\n")));
        }
        rendered.push(documents);
    }
    Ok(files)
}

/// One rendered object.
struct Document {
    kind: String,
    name: String,
    text: String,
}

impl Document {
    fn is(&self, other: &Self) -> bool {
        (&self.kind, &self.name) == (&other.kind, &other.name)
    }
}

/// The objects of a rendering, without what only Helm needs: its comments and its labels.
fn documents(rendered: &str) -> Vec<Document> {
    let of_helm = |line: &str| {
        let line = line.trim_start();
        [
            "# Source: ",
            "helm.sh/chart:",
            "app.kubernetes.io/instance:",
            "app.kubernetes.io/managed-by:",
            "app.kubernetes.io/version:",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    };
    let mut documents = Vec::new();
    for part in rendered.split("\n---").map(|part| part.trim_start_matches("---")) {
        let lines = part.lines().filter(|line| !line.trim().is_empty() && !of_helm(line));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let field = |prefix: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(prefix));
            value.map(|value| value.trim().to_owned()).unwrap_or_default()
        };
        let (kind, name) = (field("kind: "), field("  name: "));
        if !kind.is_empty() {
            documents.push(Document { kind, name, text });
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn documents_keep_comments_of_ours_and_lose_what_helm_needs() {
        let rendered = "---\n# Source: plimsoll/templates/a.yaml\n# Why.\nkind: Role\nmetadata:\n  name: a\n  labels:\n    \
            app.kubernetes.io/part-of: plimsoll\n    helm.sh/chart: plimsoll-0.1.0\n---\n# Source: b\n\n---\nkind: Service\nmetadata:\n  name: b\n";
        let found = documents(rendered);
        let names: Vec<_> = found.iter().map(|one| (one.kind.as_str(), one.name.as_str())).collect();
        assert_eq!(names, [("Role", "a"), ("Service", "b")]);
        let wanted =
            "# Why.\nkind: Role\nmetadata:\n  name: a\n  labels:\n    app.kubernetes.io/part-of: plimsoll\n";
        assert_eq!(found[0].text, wanted);
    }
}
