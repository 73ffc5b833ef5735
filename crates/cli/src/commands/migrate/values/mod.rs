//! `plimsoll migrate values`: the chart values of a replaced program as values of our chart.
//!
//! ```text
//! convert      walks the values by a table                  pure
//! charts       the tables of the three charts               pure
//! flags        flags of command lines as values             pure
//! permissions  the permissions of KEDA's chart as values    pure
//! ```

mod charts;
mod convert;
mod flags;
mod permissions;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use api::yaml;
use serde_json::{Value, json};

use super::Peer;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output::{self, Format};

pub(super) use convert::{ConvertedValues, LostValue};
pub(super) use flags::{keda_arguments, keda_variables, metrics_arguments};

/// Convert the chart values of KEDA, metrics-server or prometheus-adapter to values of Plimsoll's chart
///
/// Prints the values, and as comments at the end what has no equivalent. `helm get values RELEASE -n NAMESPACE -o yaml` prints the values
/// of a release.
///
/// The values leave out the controller, which the chart installs by default: delete `controller.enabled` where the release has it already.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll migrate values --from keda keda-values.yaml > plimsoll-values.yaml
  plimsoll migrate values --from prometheus-adapter values.yaml --rules config.yaml
  helm get values metrics-server -n kube-system -o yaml |
    plimsoll migrate values --from metrics-server -

Exit codes: 0 converted, 3 with --strict: something has no equivalent, 2 the input was wrong.")]
pub(super) struct ValuesArgs {
    /// The values; - is standard input.
    file: PathBuf,
    /// Whose values.
    #[arg(long, value_enum, value_name = "PEER")]
    from: ValuesOrigin,
    /// prometheus-adapter's config.yaml, from its ConfigMap, where the values do not have the rules themselves.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Exit with 3 if something has no equivalent.
    #[arg(long)]
    strict: bool,
    /// How to print: as YAML with comments, or as JSON or YAML with the fields `values` and `lost`.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The command does not know the cluster, so it cannot see whether the release has the controller.
const CONTROLLER_NOTE: &str = "# controller.enabled: false leaves out the HPA controller, which the chart installs by default.\n\
     # Delete it where the release has the controller already, which it would remove.\n";

/// The charts whose values are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ValuesOrigin {
    /// kedacore/keda.
    Keda,
    /// metrics-server/metrics-server.
    MetricsServer,
    /// prometheus-community/prometheus-adapter.
    PrometheusAdapter,
}

impl ValuesOrigin {
    fn peer(self) -> Peer {
        match self {
            Self::Keda => Peer::Keda,
            Self::MetricsServer => Peer::MetricsServer,
            Self::PrometheusAdapter => Peer::PrometheusAdapter,
        }
    }
}

pub(super) fn run(args: &ValuesArgs) -> CommandResult {
    if args.rules.is_some() && args.from != ValuesOrigin::PrometheusAdapter {
        return Err(Failure::input("--rules is for --from prometheus-adapter"));
    }
    let given = document(&args.file)?;
    if !given.is_object() {
        return Err(Failure::input(format!("{} has no values: write a mapping", args.file.display())));
    }
    let mut converted = convert::convert(&given, charts::table(args.from.peer()));
    if args.from == ValuesOrigin::PrometheusAdapter {
        let rules = args.rules.as_deref().map(document).transpose()?;
        charts::complete_adapter(&mut converted, &given, rules);
    }
    // The role that takes over.
    let role = if args.from == ValuesOrigin::Keda { "operator" } else { "metrics" };
    converted.set(&format!("{role}.enabled"), json!(true));
    converted.set("controller.enabled", json!(false));
    match args.output {
        Format::Json | Format::Yaml => {
            output::value(args.output, &json!({"values": converted.values, "lost": converted.lost}))?;
        }
        Format::Table | Format::Wide => output::text_out(&format!("{CONTROLLER_NOTE}{}", text(&converted)))?,
    }
    if args.strict && !converted.lost.is_empty() { Err(Failure::Printed(3)) } else { Ok(()) }
}

/// The only document of a file; an empty one has no values.
fn document(path: &std::path::Path) -> Result<Value, Failure> {
    let documents = yaml::parse(&files::read(path)?)?;
    Ok(documents.first().map_or_else(|| json!({}), |document| document.root.to_json()))
}

/// The values as YAML, and what is lost as comments.
fn text(converted: &ConvertedValues) -> String {
    let mut text = yaml::to_yaml(&converted.values);
    if !converted.lost.is_empty() {
        text.push_str("\n# Without an equivalent:\n");
        for lost in &converted.lost {
            text.push_str(&format!("# - {}: {}\n", lost.path, lost.why));
        }
    }
    text
}
