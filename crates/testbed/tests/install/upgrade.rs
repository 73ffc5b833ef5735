//! The commands of docs/upgrades.md with the chart of the baseline: `helm upgrade` to the chart of this revision, and `helm rollback`. The image
//! is that of this revision throughout, because nodes have no other; `make test-upgrade` replaces programs of two versions.

use std::process::Command;

use testbed::program::TempFolder;

use crate::changes::NODE_METRICS;
use crate::cluster::{Cluster, ROLES, SYSTEM_NAMESPACE, VALUES, repository};
use crate::{removal, roles};

const CHART: &str = "charts/plimsoll";
/// The tag of the image that nodes have; the baseline's chart has another one.
const IMAGE_TAG: &str = concat!("--set=image.tag=", env!("CARGO_PKG_VERSION"));

pub(crate) fn from_the_baseline_and_back(cluster: &Cluster) {
    let Some(baseline) = baseline_chart() else { return };
    let baseline = baseline.path(CHART).display().to_string();
    removal::uninstall(cluster);
    let annotations = pod_annotations("baseline");
    let mut arguments = vec!["install", "plimsoll", baseline.as_str(), IMAGE_TAG, annotations.as_str()];
    arguments.extend(VALUES);
    cluster.helm(&arguments);
    let before = installed_chart(cluster);
    let annotations = pod_annotations("this");
    let upgrade = ["upgrade", "plimsoll", CHART, "--reset-then-reuse-values", annotations.as_str()];
    let after = replaced(cluster, &upgrade);
    assert_ne!(after, before, "the charts have the same version");
    assert_eq!(replaced(cluster, &["rollback", "plimsoll"]), before);
    assert_eq!(replaced(cluster, &upgrade), after);
    // The baseline's chart left Secrets and Leases behind; this one deletes them also after an upgrade.
    removal::leaves_definitions(cluster);
}

/// An annotation of the pods of all roles, whose change replaces the pods, as a new image does.
fn pod_annotations(chart: &str) -> String {
    let values =
        ["controller", "metrics", "operator"].map(|role| format!("{role}.podAnnotations.chart={chart}"));
    format!("--set={}", values.join(","))
}

/// Runs a command of Helm that replaces all pods, during which metrics can be read, and returns the chart that is installed then.
fn replaced(cluster: &Cluster, command: &[&str]) -> String {
    let mut chart = String::new();
    let errors = cluster.while_asking(NODE_METRICS, || {
        cluster.helm(command);
        chart = installed_chart(cluster);
    });
    assert!(errors.is_empty(), "{command:?}: {errors:#?}");
    chart
}

/// Waits until the pods of the installed chart serve all APIs, and returns the name and version of that chart.
fn installed_chart(cluster: &Cluster) -> String {
    for role in ROLES {
        cluster.rolled_out(role);
    }
    roles::check_apis(cluster);
    cluster.until("metrics of nodes", || cluster.try_kubectl(&format!("get --raw {NODE_METRICS}")).ok());
    let deployment = cluster.get(&format!("deployment plimsoll-metrics --namespace {SYSTEM_NAMESPACE}"));
    deployment["metadata"]["labels"]["helm.sh/chart"].as_str().unwrap().to_owned()
}

/// A folder with the chart of the baseline; none if this clone does not have that revision, as one without history.
fn baseline_chart() -> Option<TempFolder> {
    let revision = include_str!("../../../../tests/stored/v0.1.0/revision").trim();
    let folder = TempFolder::new().unwrap();
    let archive = folder.path("chart.tar");
    let mut git = Command::new("git");
    // The chart has a link to the definitions.
    let paths = [CHART, "deploy/crds"];
    git.current_dir(repository()).arg("archive").arg("--output").arg(&archive).arg(revision).args(paths);
    let output = git.output().unwrap();
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        eprintln!("install: skipped, because git has no chart of {revision}: {}", reason.trim());
        return None;
    }
    let mut tar = Command::new("tar");
    let status =
        tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(folder.root()).status();
    assert!(status.unwrap().success(), "failed to unpack {}", archive.display());
    Some(folder)
}
