//! Pod status as a kubelet writes it.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sim::random::Seed;
use sim::time::to_the_second;

use super::lifecycle::{PodLifecycle, PodStage};
use super::template::{ContainerTemplate, PodTemplate};

/// The address of nodes and of pods in the host network.
pub(crate) const HOST_IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The input of a pod's status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusInput<'a> {
    pub(crate) template: &'a PodTemplate,
    pub(crate) lifecycle: &'a PodLifecycle,
    pub(crate) ip: Ipv4Addr,
    /// Seed of generated ids.
    pub(crate) seed: Seed,
    /// Whether the pod was created with a node name, so that no binding set `PodScheduled`.
    pub(crate) unannounced: bool,
}

/// The patch of the whole status.
pub(crate) fn patch(uid: &str, subject: &StatusInput<'_>) -> Value {
    let StatusInput { template, lifecycle, ip, .. } = *subject;
    let mut status = Map::new();
    status.insert("phase".into(), phase(lifecycle.stage).into());
    status.insert("conditions".into(), conditions(subject));
    status.insert("hostIP".into(), HOST_IP.to_string().into());
    status.insert("hostIPs".into(), json!([{"ip": HOST_IP.to_string()}]));
    status.insert("startTime".into(), time(lifecycle.times.taken));
    if lifecycle.times.running.is_some() {
        let ip = if template.host_network { HOST_IP } else { ip };
        status.insert("podIP".into(), ip.to_string().into());
        status.insert("podIPs".into(), json!([{"ip": ip.to_string()}]));
    }
    let list = |parts: &[ContainerTemplate], init: bool| -> Value {
        let each = |(index, part): (usize, &ContainerTemplate)| container(subject, part, init, index as u64);
        parts.iter().enumerate().map(each).collect()
    };
    if !template.init_containers.is_empty() {
        status.insert("initContainerStatuses".into(), list(&template.init_containers, true));
    }
    status.insert("containerStatuses".into(), list(&template.containers, false));
    // With the uid, the server refuses the patch if another pod has the name now.
    json!({"metadata": {"uid": uid}, "status": status})
}

/// The patch for an unschedulable pod.
pub(crate) fn unschedulable(uid: &str, message: &str, now: Timestamp) -> Value {
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": time(now),
    });
    json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
}

fn phase(stage: PodStage) -> &'static str {
    match stage {
        PodStage::Pending => "Pending",
        PodStage::Starting | PodStage::Ready | PodStage::Stopping => "Running",
        PodStage::Ended(Some(0)) => "Succeeded",
        PodStage::Ended(_) => "Failed",
    }
}

fn conditions(subject: &StatusInput<'_>) -> Value {
    let StatusInput { template, lifecycle, unannounced, .. } = *subject;
    let times = &lifecycle.times;
    let ended = match lifecycle.stage {
        PodStage::Ended(Some(0)) => Some("PodCompleted"),
        PodStage::Ended(_) => Some("PodFailed"),
        _ => None,
    };
    let ready_at = times.ready.filter(|_| ended.is_none());
    let unready_since = times.ended.filter(|_| times.ready.is_some()).unwrap_or(times.taken);
    let ready = |kind: &str| match (ready_at, ended) {
        (Some(since), _) => condition(kind, true, since, None, None),
        (None, Some(reason)) => condition(kind, false, unready_since, Some(reason), None),
        (None, None) => {
            let message = format!("containers with unready status: {}", names(&template.containers));
            condition(kind, false, unready_since, Some("ContainersNotReady"), Some(&message))
        }
    };
    let initial = template.init_containers.iter().filter(|part| !part.sidecar);
    let initialized = match times.running {
        None if initial.clone().next().is_some() => {
            let message = format!("containers with incomplete status: {}", names(initial));
            condition("Initialized", false, times.taken, Some("ContainersNotInitialized"), Some(&message))
        }
        since => condition(
            "Initialized",
            true,
            since.unwrap_or(times.taken),
            ended.filter(|r| *r == "PodCompleted"),
            None,
        ),
    };
    let sandbox = match (times.ended, times.sandbox) {
        (Some(ended), _) => condition("PodReadyToStartContainers", false, ended, None, None),
        (None, Some(since)) => condition("PodReadyToStartContainers", true, since, None, None),
        (None, None) => condition("PodReadyToStartContainers", false, times.taken, None, None),
    };
    let mut all = vec![sandbox, initialized, ready("Ready"), ready("ContainersReady")];
    if unannounced {
        all.push(condition("PodScheduled", true, times.taken, None, None));
    }
    all.into()
}

fn condition(
    kind: &str,
    status: bool,
    since: Timestamp,
    reason: Option<&str>,
    message: Option<&str>,
) -> Value {
    // Null removes the value of an earlier patch.
    json!({
        "type": kind,
        "status": if status { "True" } else { "False" },
        "lastTransitionTime": time(since),
        "reason": reason,
        "message": message,
    })
}

fn names<'a>(parts: impl IntoIterator<Item = &'a ContainerTemplate>) -> String {
    let names: Vec<&str> = parts.into_iter().map(|part| part.name.as_str()).collect();
    format!("[{}]", names.join(" "))
}

fn container(subject: &StatusInput<'_>, part: &ContainerTemplate, init: bool, index: u64) -> Value {
    let StatusInput { lifecycle, seed, .. } = *subject;
    let restarts = lifecycle.restarts;
    let id = identifier(seed.part(index).part(u64::from(init)).part(u64::from(restarts)));
    let id = format!("containerd://{id}");
    let once = init && !part.sidecar;
    let has_run = lifecycle.times.running.is_some();
    let ready = match (once, part.sidecar) {
        (true, _) => has_run,
        (false, true) => has_run && !lifecycle.is_over(),
        (false, false) => lifecycle.times.ready.is_some() && !lifecycle.is_over(),
    };
    let mut status = json!({
        "name": part.name,
        "image": part.image,
        "imageID": "",
        "ready": ready,
        "restartCount": if once { 0 } else { restarts },
        "started": false,
    });
    let Some(fields) = status.as_object_mut() else { return status };
    let state = match (lifecycle.stage, lifecycle.times.running) {
        (PodStage::Ended(code), running) => terminated(code, running, lifecycle.times.ended, &id),
        (_, None) => waiting(!subject.template.init_containers.is_empty()),
        (_, Some(running)) if once => terminated(Some(0), Some(running), Some(running), &id),
        (_, Some(running)) => {
            fields.insert("started".into(), true.into());
            json!({"running": {"startedAt": time(running)}})
        }
    };
    fields.insert("state".into(), state);
    if has_run {
        fields.insert("containerID".into(), id.into());
        fields.insert("imageID".into(), image_id(&part.image).into());
    }
    status
}

fn waiting(initializing: bool) -> Value {
    json!({"waiting": {"reason": if initializing { "PodInitializing" } else { "ContainerCreating" }}})
}

fn terminated(code: Option<i32>, started: Option<Timestamp>, ended: Option<Timestamp>, id: &str) -> Value {
    let Some(code) = code else {
        return json!({"terminated": {
            "exitCode": 137,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
            "startedAt": null,
            "finishedAt": null,
        }});
    };
    json!({"terminated": {
        "exitCode": code,
        "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": started.map(time),
        "finishedAt": ended.map(time),
        "containerID": id,
    }})
}

/// Times in objects are whole seconds.
fn time(at: Timestamp) -> Value {
    to_the_second(at).to_string().into()
}

/// Equal images have equal ids, as from a registry.
fn image_id(image: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    format!("{name}@sha256:{}", identifier(seed_of(image)))
}

/// 64 hexadecimal digits.
pub(crate) fn identifier(seed: Seed) -> String {
    let [a, b, c, d] = [0, 1, 2, 3].map(|part| seed.part(part).bits());
    format!("{a:016x}{b:016x}{c:016x}{d:016x}")
}

/// A seed from a text, the same on every machine.
pub(crate) fn seed_of(text: &str) -> Seed {
    text.bytes().fold(Seed::new(text.len() as u64), |seed, byte| seed.part(u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use sim::Millis;

    use super::super::lifecycle::tests::{TIMELINE, at};
    use super::super::template::tests::template;
    use super::*;

    fn status(template: &PodTemplate, lifecycle: &PodLifecycle) -> Value {
        let subject = StatusInput {
            template,
            lifecycle,
            ip: Ipv4Addr::new(10, 128, 0, 1),
            seed: Seed::new(1),
            unannounced: false,
        };
        patch("u", &subject)["status"].take()
    }

    fn condition(status: &Value, kind: &str) -> (String, String, String) {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|c| c["type"] == kind).unwrap();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("lastTransitionTime"))
    }

    #[test]
    fn pod_status_matches_the_kubelet_in_each_stage() {
        let template = template(json!({"containers": [{"name": "web", "image": "shop/web:1"}]}));
        let mut lifecycle = PodLifecycle::new(at(0), &TIMELINE);
        let pending = status(&template, &lifecycle);
        assert_eq!(pending["phase"], "Pending");
        assert_eq!(pending["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
        assert_eq!(pending["startTime"], "1970-01-01T00:00:00Z");
        assert!(pending.get("podIP").is_none());
        assert_eq!(condition(&pending, "PodReadyToStartContainers").0, "False");
        let unready = ("False".into(), "ContainersNotReady".into(), "1970-01-01T00:00:00Z".into());
        assert_eq!(condition(&pending, "Ready"), unready);
        let message = pending["conditions"][2]["message"].as_str();
        assert_eq!(message, Some("containers with unready status: [web]"));

        lifecycle.step(at(3_500), &TIMELINE);
        let running = status(&template, &lifecycle);
        assert_eq!((&running["phase"], &running["podIP"]), (&json!("Running"), &json!("10.128.0.1")));
        assert_eq!(running["containerStatuses"][0]["state"]["running"]["startedAt"], "1970-01-01T00:00:03Z");
        assert_eq!(running["containerStatuses"][0]["ready"], false);
        assert_eq!(condition(&running, "Ready"), unready);

        lifecycle.step(at(11_000), &TIMELINE);
        let ready = status(&template, &lifecycle);
        assert_eq!(condition(&ready, "Ready"), ("True".into(), String::new(), "1970-01-01T00:00:11Z".into()));
        assert_eq!(ready["containerStatuses"][0]["ready"], true);
        assert!(ready["containerStatuses"][0]["imageID"].as_str().unwrap().starts_with("shop/web:1@sha256:"));

        lifecycle.delete(at(20_000), Millis(30_000), &TIMELINE);
        lifecycle.step(at(25_000), &TIMELINE);
        let ended = status(&template, &lifecycle);
        assert_eq!(ended["phase"], "Succeeded");
        assert_eq!(
            condition(&ended, "Ready"),
            ("False".into(), "PodCompleted".into(), "1970-01-01T00:00:25Z".into())
        );
        assert_eq!(ended["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
        assert_eq!(
            ended["containerStatuses"][0]["containerID"],
            ready["containerStatuses"][0]["containerID"]
        );
    }

    #[test]
    fn init_containers_end_and_sidecars_stay() {
        let init = json!([{"name": "prepare"}, {"name": "proxy", "restartPolicy": "Always"}]);
        let template = template(json!({"containers": [{"name": "web"}], "initContainers": init}));
        let mut lifecycle = PodLifecycle::new(at(0), &TIMELINE);
        let pending = status(&template, &lifecycle);
        assert_eq!(condition(&pending, "Initialized").1, "ContainersNotInitialized");
        assert_eq!(pending["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
        lifecycle.step(at(3_000), &TIMELINE);
        let running = status(&template, &lifecycle);
        assert_eq!(condition(&running, "Initialized").0, "True");
        assert_eq!(running["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
        assert!(running["initContainerStatuses"][1]["state"]["running"].is_object());
    }

    #[test]
    fn pod_that_never_ran_has_failed() {
        let template = template(json!({"containers": [{"name": "web"}]}));
        let mut lifecycle = PodLifecycle::new(at(0), &TIMELINE);
        lifecycle.delete(at(1), Millis(0), &TIMELINE);
        let ended = status(&template, &lifecycle);
        assert_eq!(ended["phase"], "Failed");
        assert_eq!(ended["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
    }
}
