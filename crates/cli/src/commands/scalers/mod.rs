//! `plimsoll scalers`: trigger types, their parameters, and the values of their sources.

mod check;
mod combined_auth;
mod describe;
mod new;
mod object;
mod query;

use scalers::table::SCALER_TYPES;
use serde_json::json;

use crate::failure::CommandResult;
use crate::output::{self, Format};

/// List trigger types, describe their parameters, query their sources, and add types
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll scalers list
  plimsoll scalers describe rabbitmq
  plimsoll scalers check my-scaledobject.yaml            # with its Secrets in the same file, or ...
  plimsoll scalers check my-scaledobject.yaml --cluster  # ... in the cluster")]
pub(crate) struct ScalersArgs {
    #[command(subcommand)]
    command: ScalersCommand,
}

#[derive(clap::Subcommand)]
enum ScalersCommand {
    /// List all types of triggers
    List(ListArgs),
    Describe(describe::DescribeScalerArgs),
    Check(check::CheckScalersArgs),
    New(new::NewScalerArgs),
}

#[derive(clap::Args)]
struct ListArgs {
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) fn run(args: &ScalersArgs) -> CommandResult {
    match &args.command {
        ScalersCommand::List(args) => list(args.output),
        ScalersCommand::Describe(args) => describe::run(args),
        ScalersCommand::Check(args) => check::run(args),
        ScalersCommand::New(args) => new::run(args),
    }
}

fn list(format: Format) -> CommandResult {
    match format {
        Format::Json | Format::Yaml => {
            let all: Vec<_> = SCALER_TYPES
                .iter()
                .map(|one| json!({"type": one.name, "about": one.about, "push": one.push, "since": one.since.name()}))
                .collect();
            output::value(format, &all)
        }
        Format::Table | Format::Wide => {
            let lines = SCALER_TYPES.iter().map(|one| format!("{}\t{}\n", one.name, one.about));
            let table = format!("TYPE\tMEASURES\n{}", lines.collect::<String>());
            output::text_out(&api::table::align(&table, 0, 3))
        }
    }
}
