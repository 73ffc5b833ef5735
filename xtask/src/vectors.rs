//! Copies recorded vectors into the project, compressed.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

/// Where to take vectors from and where to put them.
#[derive(clap::Args)]
pub(crate) struct VectorsArgs {
    /// `.jsonl` files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder to write `NAME.jsonl.zst` files to.
    #[arg(long)]
    into: PathBuf,
}

pub(crate) fn run(args: &VectorsArgs) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.into)?;
    for file in &args.files {
        let name = file.file_name().and_then(|n| n.to_str()).context("a file name in UTF-8")?;
        let to = args.into.join(format!("{name}.zst"));
        let mut from = File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
        let mut encoder = zstd::Encoder::new(File::create(&to)?, 21)?;
        encoder.window_log(27)?;
        std::io::copy(&mut from, &mut encoder)?;
        let size = encoder.finish()?.metadata()?.len();
        println!("{} {size} bytes", to.display());
    }
    Ok(ExitCode::SUCCESS)
}
