//! The commands, one file each.

mod completion;
mod convert;
mod describe;
mod gates;
mod simulate;
mod validate;
mod why;

use clap::Subcommand;

use crate::failure::Outcome;

/// Shown at the end of `plimsoll --help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  plimsoll simulate examples/php-apache.yaml --report report.html
  plimsoll why examples/php-apache.yaml --at 5m
  plimsoll validate my-hpa.yaml
  plimsoll convert my-hpa.yaml --to autoscaling/v2

Exit codes: 0 all is well, 1 something outside failed (a disk, a cluster), 2 the input was wrong.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Simulate(simulate::Args),
    Why(why::Args),
    Validate(validate::Args),
    Convert(convert::Args),
    Describe(describe::Args),
    Completion(completion::Args),
}

/// Runs a command.
pub(crate) fn run(command: Command) -> Outcome {
    match command {
        Command::Simulate(args) => simulate::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Completion(args) => completion::run(&args),
    }
}
