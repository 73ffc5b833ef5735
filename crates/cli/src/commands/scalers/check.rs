//! `plimsoll scalers check`: asks the real sources of a ScaledObject or ScaledJob, and says what would be served.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::keda::{ScaledJob, ScaledObject, Trigger};
use api::provide::Compat;
use api::text;
use cluster::connect::{Target, connect};
use controllers::operator::Settings;
use controllers::operator::auth::{Asked, Auth, Manifests, Objects, Rules, Server, VaultRules};
use keda::environment::PodTemplate;
use scalers::backends::Backends;
use scalers::{Owner, table};
use serde::Serialize;
use serde_json::Value;

use super::both::Both;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::output::{self, Format};

/// Ask the real sources of a ScaledObject or ScaledJob, and say what would be served
///
/// Everything that its triggers need (TriggerAuthentications, Secrets, ConfigMaps, the target) is taken from the same files or,
/// with --cluster, from the cluster. Nothing is written anywhere.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll scalers check my-scaledobject.yaml
  plimsoll scalers check my-scaledobject.yaml secrets.yaml
  plimsoll scalers check my-scaledobject.yaml --cluster -n shop -o json

Exit codes: 0 every source answered, 1 one did not, 2 the input was wrong.")]
pub(crate) struct Args {
    /// Files with manifests; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Take what is not in the files from the cluster.
    #[arg(long)]
    cluster: bool,
    /// Namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// How long a source may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// What a trigger's source said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    object: String,
    trigger: usize,
    #[serde(rename = "type")]
    type_: String,
    metric: String,
    target: String,
    value: Option<String>,
    active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What is asked about.
struct Object {
    owner: Owner,
    triggers: Vec<Trigger>,
    container: String,
    /// Where its pods are described.
    template: Option<PodTemplate>,
    feeds_formula: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let manifests = read(args)?;
    let objects = objects(&manifests)?;
    if objects.is_empty() {
        return Err(Failure::input("there is no ScaledObject and no ScaledJob in these files"));
    }
    crate::live::run(async move {
        let source: Arc<dyn Objects> = if args.cluster {
            let target = Target { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
            let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
            Arc::new(Both { files: Manifests::new(manifests), cluster: Server::new(connection.client) })
        } else {
            Arc::new(Manifests::new(manifests))
        };
        let settings = Settings::default();
        let vault = VaultRules::from_variables(|name| std::env::var(name).ok());
        let auth = Auth::new(source, Rules { vault, ..Rules::from(&settings) });
        let web = scalers::web::Settings::from_environment(|name| std::env::var(name).ok());
        let backends = Backends::without_cluster(web, Compat::Better);
        let mut findings = Vec::new();
        for object in &objects {
            for (index, trigger) in object.triggers.iter().enumerate() {
                findings.extend(
                    ask(object, index, trigger, &auth, &backends, Duration::from_secs(args.timeout)).await,
                );
            }
        }
        print(args.output, &findings)?;
        if findings.iter().any(|finding| finding.error.is_some()) { Err(Failure::Told(1)) } else { Ok(()) }
    })
}

/// All documents, each in a namespace.
fn read(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for source in files::read_all(&args.files)? {
        for document in text::parse(&source).map_err(|problem| Failure::Problems(vec![problem]))? {
            for item in document.into_items() {
                let mut object: Value = item.decode_lenient().map_err(Failure::Problems)?;
                if let Some(meta) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                    meta.entry("namespace").or_insert_with(|| Value::from(args.namespace.clone()));
                }
                all.push(object);
            }
        }
    }
    Ok(all)
}

fn objects(manifests: &[Value]) -> Result<Vec<Object>, Failure> {
    let mut found = Vec::new();
    for manifest in manifests {
        let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
        let wrong = |error: serde_json::Error| Failure::input(format!("{kind}: {error}"));
        match kind {
            "ScaledObject" => {
                let object: ScaledObject = serde_json::from_value(manifest.clone()).map_err(wrong)?;
                let (kind, name) = (object.target_kind(), object.spec.scale_target_ref.name.as_str());
                let target = manifests.iter().find(|other| {
                    let text = |at: &str| other.pointer(at).and_then(Value::as_str).unwrap_or_default();
                    (text("/kind"), text("/metadata/name"), text("/metadata/namespace"))
                        == (kind, name, &object.metadata.namespace)
                });
                found.push(Object {
                    owner: owner("ScaledObject", &object.metadata.namespace, &object.metadata.name),
                    feeds_formula: object.modifiers().is_some(),
                    container: object.spec.scale_target_ref.env_source_container_name.clone(),
                    template: target.and_then(|target| template(target.pointer("/spec/template/spec")?)),
                    triggers: object.spec.triggers,
                });
            }
            "ScaledJob" => {
                let job: ScaledJob = serde_json::from_value(manifest.clone()).map_err(wrong)?;
                let pods = job.spec.job_target_ref.as_ref().and_then(|spec| spec.pointer("/template/spec"));
                found.push(Object {
                    owner: owner("ScaledJob", &job.metadata.namespace, &job.metadata.name),
                    feeds_formula: false,
                    container: job.spec.env_source_container_name.clone(),
                    template: pods.and_then(template),
                    triggers: job.spec.triggers,
                });
            }
            _ => {}
        }
    }
    Ok(found)
}

fn owner(kind: &str, namespace: &str, name: &str) -> Owner {
    Owner { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn template(pods: &Value) -> Option<PodTemplate> {
    serde_json::from_value(pods.clone()).ok()
}

async fn ask(
    object: &Object,
    index: usize,
    trigger: &Trigger,
    auth: &Auth,
    backends: &Backends,
    within: Duration,
) -> Vec<Finding> {
    let finding = |metric: &str, target: String| Finding {
        object: format!("{}/{}/{}", object.owner.kind, object.owner.namespace, object.owner.name),
        trigger: index,
        type_: trigger.type_.clone(),
        metric: metric.to_owned(),
        target,
        value: None,
        active: None,
        error: None,
    };
    let failed = |error: String| vec![Finding { error: Some(error), ..finding("", String::new()) }];
    let given = match given(object, index, trigger, auth, backends).await {
        Ok(given) => given,
        Err(error) => return failed(error),
    };
    let scaler = match table::build(&given, backends) {
        Ok(scaler) => scaler,
        Err(error) => return failed(error.to_string()),
    };
    let late = || format!("no answer within {} s", within.as_secs());
    let specs = match tokio::time::timeout(within, scaler.specs()).await {
        Ok(Ok(specs)) => specs,
        Ok(Err(error)) => return failed(error.to_string()),
        Err(_) => return failed(late()),
    };
    let mut findings = Vec::new();
    for spec in &specs {
        let (name, target, external) = shown(spec);
        let mut found = finding(&name, target);
        if external {
            match tokio::time::timeout(within, scaler.read(&name)).await {
                Ok(Ok(reading)) => {
                    let values: Vec<String> =
                        reading.values.iter().map(|one| one.value.to_string()).collect();
                    found.value = Some(values.join(" + "));
                    found.active = Some(reading.active);
                }
                Ok(Err(error)) => found.error = Some(error.to_string()),
                Err(_) => found.error = Some(late()),
            }
        }
        findings.push(found);
    }
    findings
}

/// A trigger with all that it is given.
async fn given(
    object: &Object,
    index: usize,
    trigger: &Trigger,
    auth: &Auth,
    backends: &Backends,
) -> Result<scalers::Trigger, String> {
    let namespace = object.owner.namespace.as_str();
    let asked = Asked {
        namespace,
        authentication: trigger.authentication_ref.as_ref(),
        template: object.template.as_ref(),
        container: &object.container,
    };
    let resolved = auth.resolve(asked).await.map_err(|error| error.to_string())?;
    let environment = auth.environment(namespace, object.template.as_ref(), &object.container).await;
    let environment: BTreeMap<String, String> = environment.map_err(|error| error.to_string())?.variables;
    Ok(scalers::Trigger {
        owner: object.owner.clone(),
        index,
        type_: trigger.type_.clone(),
        name: trigger.name.clone(),
        metric_type: trigger.metric_type.clone(),
        metadata: trigger.metadata.clone(),
        auth: resolved.parameters,
        environment,
        identity: resolved.identity,
        feeds_formula: object.feeds_formula,
        http_timeout: backends.web.settings().timeout,
    })
}

/// Name and target of a metric, and whether its source is asked by us.
fn shown(spec: &MetricSpec) -> (String, String, bool) {
    let target = |target: &api::autoscaling::v2::MetricTarget| {
        let quantity = target.average_value.as_ref().or(target.value.as_ref()).map(ToString::to_string);
        let percent = target.average_utilization.map(|percent| format!("{percent}%"));
        format!("{} {}", quantity.or(percent).unwrap_or_default(), target.type_)
    };
    match (&spec.external, &spec.resource, &spec.container_resource) {
        (Some(source), _, _) => (source.metric.name.clone(), target(&source.target), true),
        (_, Some(source), _) => (source.name.clone(), target(&source.target), false),
        (_, _, Some(source)) => {
            (format!("{} of {}", source.name, source.container), target(&source.target), false)
        }
        _ => (String::new(), String::new(), false),
    }
}

fn print(format: Format, findings: &[Finding]) -> Outcome {
    if matches!(format, Format::Json | Format::Yaml) {
        return output::value(format, &findings);
    }
    let mut text = "OBJECT\tTRIGGER\tMETRIC\tVALUE\tTARGET\tACTIVE\n".to_owned();
    for one in findings {
        let value = match (&one.error, &one.value) {
            (Some(_), _) => "✗",
            (None, Some(value)) => value,
            (None, None) => "(metrics-server)",
        };
        let active = one.active.map_or("-", |active| if active { "yes" } else { "no" });
        text.push_str(&format!(
            "{}\t{} {}\t{}\t{value}\t{}\t{active}\n",
            one.object, one.trigger, one.type_, one.metric, one.target
        ));
    }
    let mut page = api::table::align(&text, 0, 3);
    for one in findings {
        if let Some(error) = &one.error {
            page.push_str(&format!(
                "\n✗ trigger {} ({}) of {}:\n  {}\n",
                one.trigger,
                one.type_,
                one.object,
                error.replace('\n', "\n  ")
            ));
        }
    }
    output::text_out(&page)
}
