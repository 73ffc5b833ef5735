//! `plimsoll support-bundle`: what a bug report needs, without secrets.
//!
//! ```text
//! collect   reads the cluster                           needs a cluster
//! redact    removes secrets from objects and texts       pure
//! archive   writes a tar archive, compressed             pure
//! ```

mod archive;
mod collect;
mod redact;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use jiff::Timestamp;

use self::archive::BundleFile;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::live::{ClusterArgs, ClusterClient};
use crate::output;

/// Write a redacted archive for bug reports: versions, health, decisions, events and objects
///
/// Secrets and ConfigMaps are not read. Variables of containers, passwords, tokens and keys in triggers, credentials in URLs,
/// annotations of others and the last applied configuration are removed. Look into the archive before you publish it: names of objects
/// and addresses of sources are in it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll support-bundle
  plimsoll support-bundle --file bug.tar.gz -n shop
  tar -tzf bug.tar.gz
  plimsoll support-bundle --file - | tar -tz

Exit codes: 0 written, also if a part could not be read, which is in errors.txt; 1 the cluster or the file failed.")]
pub(crate) struct SupportBundleArgs {
    /// The file, or - for standard output; without it, plimsoll-TIME.tar.gz.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Objects, decisions and events of this namespace only; without it, of all.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

pub(crate) fn run(args: &SupportBundleArgs) -> CommandResult {
    let now = Timestamp::now();
    let name = || PathBuf::from(format!("plimsoll-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ")));
    let path = args.file.clone().unwrap_or_else(name);
    let is_piped = path.as_os_str() == "-";
    if is_piped && std::io::stdout().is_terminal() {
        return Err(Failure::input("standard output is a terminal: redirect it, or name a file"));
    }
    if !is_piped {
        files::check_writable(&path)?;
    }
    let mut collected: Vec<BundleFile> = Vec::new();
    crate::live::run(async {
        let place = ClusterArgs {
            namespace: args.namespace.clone(),
            kubeconfig: args.kubeconfig.clone(),
            context: args.context.clone(),
            ..ClusterArgs::default()
        };
        let client = ClusterClient::open(&place).await?;
        collected = collect::all(&client, args.namespace.is_none(), now).await?;
        Ok(())
    })?;
    let bytes = archive::packed(&collected, now)?;
    let (count, size) = (collected.len(), bytes.len().div_ceil(1024));
    let summary = format!("{count} files, {size} KiB; look into it before you publish it");
    if is_piped {
        output::bytes_out(&bytes)?;
        eprintln!("{summary}");
        return Ok(());
    }
    files::write_private(&path, &bytes)?;
    output::text_out(&format!("{}: {summary}\n", path.display()))
}
