//! `plimsoll convert`: autoscalers from one API version to another.

use std::path::PathBuf;

use api::autoscaling::{FeatureGates, Version, Versioned, v2};
use api::manifest::{self, Manifest};
use api::plimsoll::{self, Autoscaler};
use api::yaml::{self, Document, nearest};
use serde_json::Value;

use super::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output;

/// Convert autoscalers to another API version
///
/// Everything goes through autoscaling/v2 with its defaults, as in the API server. What an older version has no field
/// for is kept in the annotations that Kubernetes uses. Documents that are not autoscalers pass unchanged.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll convert old-hpa.yaml --to autoscaling/v2
  plimsoll convert hpa.yaml --to plimsoll.dev/v1alpha1 > autoscaler.yaml
  kubectl get hpa web -o yaml | plimsoll convert - --to autoscaling/v1 -o json")]
pub(crate) struct ConvertArgs {
    /// Files with manifests; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// autoscaling/v1, v2, v2beta1 or v2beta2, or plimsoll.dev/v1alpha1.
    #[arg(long, value_name = "VERSION")]
    to: String,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = ConvertForm::Yaml)]
    output: ConvertForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ConvertForm {
    Yaml,
    Json,
}

/// Where to.
#[derive(Clone, Copy)]
enum ConversionTarget {
    Hpa(Version),
    Autoscaler,
}

/// An autoscaler of either kind, with defaults.
enum DefaultedAutoscaler {
    Hpa(v2::HorizontalPodAutoscaler),
    Autoscaler(Autoscaler),
}

pub(crate) fn run(args: &ConvertArgs) -> CommandResult {
    let target = target(&args.to)?;
    // Whether scaling to zero is allowed is for the cluster to say, not for a conversion.
    let gates = FeatureGates { scale_to_zero: true, ..FeatureGates::of(args.kubernetes.version()) };
    let mut converted = Vec::new();
    for source in files::read_all(&args.files)? {
        for document in yaml::parse(&source)?.into_iter().flat_map(Document::into_items) {
            converted.push(convert(&document, target, gates)?);
        }
    }
    let text = match (args.output, converted.as_slice()) {
        (ConvertForm::Json, [only]) => format!("{only:#}\n"),
        (ConvertForm::Json, all) => {
            format!("{:#}\n", serde_json::json!({"apiVersion": "v1", "kind": "List", "items": all}))
        }
        (ConvertForm::Yaml, all) => all.iter().map(yaml::to_yaml).collect::<Vec<_>>().join("---\n"),
    };
    output::exact_out(&text)
}

fn target(to: &str) -> Result<ConversionTarget, Failure> {
    const KNOWN: [&str; 5] = [
        v2::API_VERSION,
        "autoscaling/v1",
        "autoscaling/v2beta1",
        "autoscaling/v2beta2",
        plimsoll::API_VERSION,
    ];
    // `v2` is short for `autoscaling/v2`.
    let long = if to.contains('/') { to.to_owned() } else { format!("autoscaling/{to}") };
    if long == plimsoll::API_VERSION {
        return Ok(ConversionTarget::Autoscaler);
    }
    Version::from_api_version(&long).map(ConversionTarget::Hpa).ok_or_else(|| {
        let near = nearest(&long, KNOWN).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        Failure::input(format!("--to {to}: unknown version; known: {}{near}", KNOWN.join(", ")))
    })
}

fn convert(document: &Document, target: ConversionTarget, gates: FeatureGates) -> Result<Value, Failure> {
    let autoscaler = match Manifest::read(document)? {
        Manifest::Hpa(hpa) => DefaultedAutoscaler::Hpa(manifest::admit_hpa(document, *hpa, gates)?),
        Manifest::Autoscaler(autoscaler) => {
            DefaultedAutoscaler::Autoscaler(manifest::admit_autoscaler(document, *autoscaler)?)
        }
        Manifest::Proposal(proposed) => {
            DefaultedAutoscaler::Autoscaler(manifest::admit_proposal(document, *proposed)?)
        }
        Manifest::Other { .. } => return Ok(document.root.to_json()),
    };
    let mut value = match (target, autoscaler) {
        (ConversionTarget::Hpa(version), DefaultedAutoscaler::Hpa(hpa)) => {
            json(&Versioned::from_v2(hpa, version))
        }
        (ConversionTarget::Hpa(version), DefaultedAutoscaler::Autoscaler(autoscaler)) => {
            let hpa = plimsoll::to_v2(autoscaler).map_err(|e| document.problem("spec", e.to_string()))?;
            json(&Versioned::from_v2(hpa, version))
        }
        (ConversionTarget::Autoscaler, DefaultedAutoscaler::Hpa(hpa)) => json(&plimsoll::from_v2(hpa)),
        (ConversionTarget::Autoscaler, DefaultedAutoscaler::Autoscaler(autoscaler)) => json(&autoscaler),
    }?;
    tidy(&mut value, document);
    Ok(value)
}

fn json(value: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::Outside(format!("failed to write the output: {e}")))
}

/// Removes what the file did not have and the API would only fill in: an empty status, the default namespace.
fn tidy(value: &mut Value, document: &Document) {
    let Some(object) = value.as_object_mut() else { return };
    if document.root.get("status").is_none() {
        object.shift_remove("status");
    }
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata.filter(|_| document.root.get("metadata.namespace").is_none()) {
        metadata.shift_remove("namespace");
    }
    // `apiVersion`, `kind` and `metadata` come first.
    let head: Vec<(String, Value)> =
        ["apiVersion", "kind"].iter().filter_map(|key| object.shift_remove_entry(*key)).collect();
    let rest = std::mem::take(object);
    object.extend(head.into_iter().chain(rest));
}
