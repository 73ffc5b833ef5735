//! Deployments of the replaced programs: their network, and who writes them back.

use serde_json::Value;

use super::installed::{InstalledProgram, Program, text};
use super::problem::{MigrationProblem, SwitchImpact};

/// Labels and annotations of those who write objects back: the field, the key, and a name for sentences.
const OWNERS: [(&str, &str, &str); 7] = [
    ("labels", ADDON_MODE, "the addon manager of the cluster"),
    ("labels", "argocd.argoproj.io/instance", "Argo CD"),
    ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
    ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
    ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("labels", "objectset.rio.cattle.io/hash", "K3s or Rancher"),
    ("labels", "olm.owner", "the Operator Lifecycle Manager"),
];
const ADDON_MODE: &str = "addonmanager.kubernetes.io/mode";
/// The mode of addons that are created once and may be changed.
const UNMANAGED_ADDON: &str = "EnsureExists";

/// Checks the Deployment of a program.
pub(super) fn check(program: &InstalledProgram) -> Vec<MigrationProblem> {
    let Some(from) = program.program.peer().filter(|_| program.program != Program::ControllerManager) else {
        return Vec::new();
    };
    let problem = |field: String, message: String, remedy: &str| MigrationProblem {
        impact: SwitchImpact::Differs,
        from,
        object: program.shown(),
        field,
        message,
        remedy: remedy.to_owned(),
    };
    let mut found = Vec::new();
    if program.raw.pointer("/spec/template/spec/hostNetwork") == Some(&Value::Bool(true)) {
        found.push(problem(
            "spec.template.spec.hostNetwork".to_owned(),
            "its pods use the network of their node, and those of Plimsoll that of the cluster".to_owned(),
            "API servers must reach the network of pods: go on with the plan only if Plimsoll's APIServices become available",
        ));
    }
    let owner = OWNERS.iter().find(|(field, key, _)| {
        let value = program.raw.pointer(&format!("/metadata/{field}")).map(|all| text(all, &pointer(key)));
        !matches!(value, None | Some("")) && (*key != ADDON_MODE || value != Some(UNMANAGED_ADDON))
    });
    if let Some((field, key, owner)) = owner {
        found.push(problem(
            format!("metadata.{field}[{key}]"),
            format!(
                "{owner} may undo what the plan changes: its replicas, and the service of its APIService"
            ),
            "suspend that before, or make the changes there: a program that starts again acts beside ours",
        ));
    }
    if let Some(controller) = program.keda_controller() {
        found.push(problem(
            "metadata.ownerReferences".to_owned(),
            format!(
                "the operator of KedaController {controller} undoes what the plan changes: its replicas, and the service of its APIService"
            ),
            "uninstall that operator before (its Subscription and ClusterServiceVersion), and keep the KedaController: its deletion deletes the \
             APIService, too",
        ));
    }
    found
}

/// The JSON pointer to a key, in which `/` is escaped.
fn pointer(key: &str) -> String {
    format!("/{}", key.replace('/', "~1"))
}
