//! `plimsoll completion`: scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::CommandResult;
use crate::output;

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  source <(plimsoll completion bash)
  plimsoll completion zsh > ~/.zfunc/_plimsoll
  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish

Where the shell completes kubectl, `kubectl plimsoll` is completed if PATH has a link named
kubectl_complete-plimsoll to this program, which `make install` makes.")]
pub(crate) struct CompletionArgs {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "plimsoll", &mut script);
    output::exact_out(&String::from_utf8_lossy(&script))
}
