//! The replaced programs, recognized by the images of Deployments, and KEDA's by their commands, too.

use api::keda::KedaProfile;
use serde::Serialize;
use serde_json::Value;

use super::Peer;

/// The label selector of a Service, or the labels of pods.
type Labels<'a> = Option<&'a serde_json::Map<String, Value>>;

/// A program in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Program {
    MetricsServer,
    PrometheusAdapter,
    KedaOperator,
    KedaMetricsAdapter,
    KedaWebhooks,
    ControllerManager,
    Plimsoll,
}

/// A Deployment (or a static pod) of a program.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstalledProgram {
    pub(super) program: Program,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The tag of its image.
    pub(super) version: String,
    /// Replicas that are wanted; none for a static pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i64>,
    /// The Helm release that it belongs to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) release: String,
    /// The command line.
    #[serde(skip)]
    pub(super) arguments: Vec<String>,
    /// The names of variables that are set.
    #[serde(skip)]
    pub(super) variables: Vec<String>,
    /// The object.
    #[serde(skip)]
    pub(super) raw: Value,
}

impl Program {
    /// The program of a container.
    fn of_container(container: &Value) -> Option<Self> {
        Self::of_image(text(container, "/image")).or_else(|| Self::of_command(container))
    }

    /// The program of KEDA that a container starts: a registry may have the images under other names.
    fn of_command(container: &Value) -> Option<Self> {
        let first = |field: &str| container.get(field)?.as_array()?.first()?.as_str();
        match first("command").or_else(|| first("args"))? {
            "/keda" => Some(Self::KedaOperator),
            "/keda-adapter" => Some(Self::KedaMetricsAdapter),
            "/keda-admission-webhooks" => Some(Self::KedaWebhooks),
            _ => None,
        }
    }

    /// The program of an image of Red Hat's Custom Metrics Autoscaler, which is KEDA: the name ends in a release of Red Hat Enterprise Linux.
    /// That of the operator which installs KEDA (`custom-metrics-autoscaler-rhel9-operator`) does not.
    fn of_red_hat_image(name: &str) -> Option<Self> {
        let (part, release) = name.strip_prefix("custom-metrics-autoscaler")?.rsplit_once("-rhel")?;
        let is_number = !release.is_empty() && release.bytes().all(|digit| digit.is_ascii_digit());
        let program = match part {
            "" => Self::KedaOperator,
            "-adapter" => Self::KedaMetricsAdapter,
            "-admission-webhooks" => Self::KedaWebhooks,
            _ => return None,
        };
        is_number.then_some(program)
    }

    /// The program of an image, by the last part of its name.
    fn of_image(image: &str) -> Option<Self> {
        let (name, _) = split_image(image);
        let name = name.rsplit('/').next().unwrap_or_default();
        match name {
            "keda" | "keda-operator" => Some(Self::KedaOperator),
            "keda-metrics-apiserver" | "keda-metrics-adapter" => Some(Self::KedaMetricsAdapter),
            "keda-admission-webhooks" => Some(Self::KedaWebhooks),
            "plimsoll" => Some(Self::Plimsoll),
            _ if name.starts_with("kube-controller-manager") => Some(Self::ControllerManager),
            _ if name.starts_with("metrics-server") => Some(Self::MetricsServer),
            _ if name.starts_with("prometheus-adapter") || name.starts_with("k8s-prometheus-adapter") => {
                Some(Self::PrometheusAdapter)
            }
            _ => Self::of_red_hat_image(name),
        }
    }

    /// Its name in sentences.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::MetricsServer => "metrics-server",
            Self::PrometheusAdapter => "prometheus-adapter",
            Self::KedaOperator => "KEDA's operator",
            Self::KedaMetricsAdapter => "KEDA's metrics adapter",
            Self::KedaWebhooks => "KEDA's webhooks",
            Self::ControllerManager => "kube-controller-manager",
            Self::Plimsoll => "Plimsoll",
        }
    }

    /// What it is a part of; none for Plimsoll.
    pub(super) fn peer(self) -> Option<Peer> {
        match self {
            Self::MetricsServer => Some(Peer::MetricsServer),
            Self::PrometheusAdapter => Some(Peer::PrometheusAdapter),
            Self::KedaOperator | Self::KedaMetricsAdapter | Self::KedaWebhooks => Some(Peer::Keda),
            Self::ControllerManager => Some(Peer::Hpa),
            Self::Plimsoll => None,
        }
    }
}

impl InstalledProgram {
    /// The program of a Deployment; none if its images are not known.
    pub(super) fn of_deployment(object: &Value) -> Option<Self> {
        let containers = object.pointer("/spec/template/spec/containers")?.as_array()?;
        let found = Self::of_containers(object, containers)?;
        let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
        Some(Self { replicas: Some(replicas), ..found })
    }

    /// The program of a pod.
    pub(super) fn of_pod(object: &Value) -> Option<Self> {
        Self::of_containers(object, object.pointer("/spec/containers")?.as_array()?)
    }

    fn of_containers(object: &Value, containers: &[Value]) -> Option<Self> {
        let with_program = |container| Some((container, Program::of_container(container)?));
        let (container, program) = containers.iter().find_map(with_program)?;
        let words = ["/command", "/args"].iter().filter_map(|part| container.pointer(part)?.as_array());
        let variables = container.pointer("/env").and_then(Value::as_array);
        let is_set = |variable: &&Value| {
            variable.pointer("/valueFrom").is_some() || !text(variable, "/value").is_empty()
        };
        Some(Self {
            program,
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            version: split_image(text(container, "/image")).1.to_owned(),
            replicas: None,
            release: release(object).to_owned(),
            arguments: words.flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            variables: variables
                .into_iter()
                .flatten()
                .filter(is_set)
                .map(|variable| text(variable, "/name").to_owned())
                .collect(),
            raw: object.clone(),
        })
    }

    /// The release of KEDA that it is of; none if that is not known here.
    pub(super) fn keda_profile(&self) -> Option<KedaProfile> {
        KedaProfile::of_release(self.version.trim_start_matches('v'))
    }

    /// The variables of its container, without those of sidecars.
    pub(super) fn env(&self) -> Vec<Value> {
        self.container().and_then(|container| container.get("env")?.as_array()).cloned().unwrap_or_default()
    }

    /// The ConfigMaps and Secrets whose keys are variables of its container.
    pub(super) fn env_from(&self) -> Vec<String> {
        let sources = self.container().and_then(|container| container.get("envFrom")?.as_array());
        let shown =
            |source: &Value| match (text(source, "/secretRef/name"), text(source, "/configMapRef/name")) {
                ("", name) => format!("ConfigMap {name}"),
                (name, _) => format!("Secret {name}"),
            };
        sources.into_iter().flatten().map(shown).collect()
    }

    /// Its container, which is not that of a sidecar.
    fn container(&self) -> Option<&Value> {
        let containers = self.raw.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let is_own = |container: &&Value| Program::of_container(container) == Some(self.program);
        containers.into_iter().flatten().find(is_own)
    }

    /// The KedaController, as `namespace/name`, whose operator installed it; none if nobody or somebody else owns it.
    pub(super) fn keda_controller(&self) -> Option<String> {
        let owners = self.raw.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner = owners.iter().find(|owner| text(owner, "/kind") == "KedaController")?;
        Some(format!("{}/{}", self.namespace, plain(text(owner, "/name"))))
    }

    /// `namespace/name`.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether a Service selects its pods.
    pub(super) fn is_behind(&self, service: &Value) -> bool {
        let labels = self.raw.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        text(service, "/metadata/namespace") == self.namespace && selects(selector, labels)
    }

    /// Whether it runs Plimsoll's HPA controller, alone or with other roles in one process.
    pub(super) fn has_controller(&self) -> bool {
        let has_word = |wanted: &str| self.arguments.iter().any(|word| word == wanted);
        let has_role =
            || self.flag("roles").is_none_or(|roles| roles.split(',').any(|role| role == "controller"));
        self.program == Program::Plimsoll && (has_word("controller") || (has_word("run") && has_role()))
    }

    /// Whether that controller scales. In shadow mode it only compares.
    pub(super) fn acts(&self) -> bool {
        self.has_controller() && self.flag("mode").is_none_or(|mode| mode == "active")
    }

    /// Whether it runs the roles of Plimsoll in one process.
    pub(super) fn is_one_process(&self) -> bool {
        self.program == Program::Plimsoll && self.arguments.iter().any(|word| word == "run")
    }

    /// The value of a flag that is given as `--name=value` or `--name value`; the last one counts.
    pub(super) fn flag(&self, name: &str) -> Option<&str> {
        let mut found = None;
        for (index, word) in self.arguments.iter().enumerate() {
            let Some(rest) = word.strip_prefix("--").and_then(|word| word.strip_prefix(name)) else {
                continue;
            };
            match rest.strip_prefix('=') {
                Some(value) => found = Some(value),
                None if rest.is_empty() => {
                    found = self.arguments.get(index + 1).map(String::as_str).or(found);
                }
                None => {}
            }
        }
        found
    }

    /// The ConfigMap and key of a file of its pods; none if the file is not in a ConfigMap.
    pub(super) fn config_map_of(&self, file: &str) -> Option<(&str, String)> {
        let pod = self.raw.pointer("/spec/template/spec")?;
        let mounts = pod.pointer("/containers")?.as_array()?.iter();
        let mounts = mounts.filter_map(|container| container.pointer("/volumeMounts")?.as_array()).flatten();
        let mount = mounts
            .filter(|mount| inside(file, mount).is_some())
            .max_by_key(|mount| text(mount, "/mountPath").len())?;
        let volumes = pod.pointer("/volumes")?.as_array()?;
        let volume = volumes.iter().find(|volume| text(volume, "/name") == text(mount, "/name"))?;
        let map = volume.pointer("/configMap/name")?.as_str()?;
        let path = inside(file, mount)?;
        let items = volume.pointer("/configMap/items").and_then(Value::as_array);
        let item = items.into_iter().flatten().find(|item| text(item, "/path") == path.as_str());
        Some((map, item.map_or(path, |item| text(item, "/key").to_owned())))
    }
}

/// The Helm release of an object; empty if it has none.
fn release(object: &Value) -> &str {
    plain(text(object, "/metadata/annotations/meta.helm.sh~1release-name"))
}

/// A name; empty if it is none. Annotations and owners are any text, and the names in them become parts of commands.
fn plain(name: &str) -> &str {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.chars().all(is_allowed) { name } else { "" }
}

/// The path of a file inside a mounted volume.
fn inside(file: &str, mount: &Value) -> Option<String> {
    let folder = text(mount, "/mountPath").trim_end_matches('/');
    let rest = file.strip_prefix(folder)?;
    match text(mount, "/subPath") {
        "" => rest.strip_prefix('/').map(str::to_owned),
        part if rest.is_empty() => Some(part.to_owned()),
        part => rest.strip_prefix('/').map(|rest| format!("{part}/{rest}")),
    }
}

/// Name and tag of an image.
fn split_image(image: &str) -> (&str, &str) {
    let image = image.split('@').next().unwrap_or_default();
    let name_at = image.rfind('/').map_or(0, |at| at + 1);
    match image.get(name_at..).and_then(|name| name.rfind(':')) {
        Some(colon) => (
            image.get(..name_at + colon).unwrap_or_default(),
            image.get(name_at + colon + 1..).unwrap_or_default(),
        ),
        None => (image, ""),
    }
}

/// An empty selector selects nothing: its endpoints are written by others.
fn selects(selector: Labels<'_>, labels: Labels<'_>) -> bool {
    let (Some(selector), Some(labels)) = (selector, labels) else { return false };
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// A text in an object; empty if it is not there.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
