//! The commands, one file each.

mod completion;
mod console;
mod controller;
mod convert;
mod describe;
mod gates;
mod get;
mod lint;
pub(crate) mod metrics;
mod migrate;
pub(crate) mod operator;
mod profile;
mod run;
mod scalers;
mod shadow;
mod simulate;
mod support_bundle;
mod top;
#[cfg_attr(not(feature = "desk"), path = "up_without_desk.rs")]
mod up;
mod validate;
mod version;
mod why;

use clap::Subcommand;

use crate::failure::CommandResult;

/// The examples of `plimsoll --help`, with those of the feature `desk` first.
macro_rules! examples {
    ($desk:literal) => {
        concat!(
            "Examples:\n",
            $desk,
            "  plimsoll controller --mode shadow
  plimsoll metrics --metric-resolution 15s
  plimsoll metrics doctor
  plimsoll operator --act direct
  plimsoll run --roles controller,metrics,operator
  plimsoll scalers describe prometheus
  plimsoll simulate examples/php-apache.yaml --report report.html
  plimsoll why examples/php-apache.yaml --at 5m
  plimsoll why hpa/php-apache -n shop
  plimsoll get -A
  plimsoll console
  plimsoll validate my-hpa.yaml
  plimsoll lint my-hpa.yaml my-deployment.yaml
  plimsoll convert my-hpa.yaml --to autoscaling/v2
  plimsoll migrate check

Exit codes: 0 all is well, 1 something outside failed (a disk, a cluster), 2 the input was wrong.
`shadow report`: 3 there are differences, 4 nothing was compared. `lint`: 3 something was found.
`migrate check`: 3 something would break. `metrics doctor`: 1 something is wrong, 2 unknown."
        )
    };
}

/// Shown at the end of `plimsoll --help`.
#[cfg(feature = "desk")]
pub(crate) const EXAMPLES: &str = examples!("  plimsoll up\n");
#[cfg(not(feature = "desk"))]
pub(crate) const EXAMPLES: &str = examples!("");

#[derive(Subcommand)]
pub(crate) enum Command {
    Up(up::UpArgs),
    Controller(Box<controller::ControllerArgs>),
    Metrics(Box<metrics::MetricsArgs>),
    Operator(Box<operator::OperatorArgs>),
    Run(Box<run::RunArgs>),
    Scalers(scalers::ScalersArgs),
    Simulate(simulate::SimulateArgs),
    Why(why::WhyArgs),
    Get(get::GetArgs),
    Top(top::TopArgs),
    Console(console::ConsoleArgs),
    Shadow(shadow::ShadowArgs),
    Validate(validate::ValidateArgs),
    Lint(lint::AutoscalerLintArgs),
    Convert(convert::ConvertArgs),
    Describe(describe::DescribeArgs),
    Migrate(migrate::MigrateArgs),
    SupportBundle(support_bundle::SupportBundleArgs),
    Completion(completion::CompletionArgs),
    Version(version::VersionArgs),
}

/// Runs a command.
pub(crate) fn run(command: Command) -> CommandResult {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Operator(args) => operator::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Scalers(args) => scalers::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Console(args) => console::run(&args),
        Command::Shadow(args) => shadow::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::SupportBundle(args) => support_bundle::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Version(args) => version::run(&args),
    }
}
