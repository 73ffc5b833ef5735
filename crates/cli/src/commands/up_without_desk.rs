//! Stands in for `plimsoll up` in binaries that are built without the feature `desk`.

use crate::failure::{CommandResult, Failure};

/// Not in this binary: run a local cluster
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct UpArgs {
    /// Ignored.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

pub(crate) fn run(_: &UpArgs) -> CommandResult {
    Err(Failure::input(
        "this binary is built without `plimsoll up`; build one with `cargo build -p plimsoll --features desk`, or run \
         `make up` in the repository",
    ))
}
