//! Finds and reads vector files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

/// All vector files among `paths`, folders searched, in a fixed order.
pub(crate) fn vector_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut inside = Vec::new();
            collect(path, &mut inside)?;
            if inside.is_empty() {
                bail!("{} holds no .jsonl or .jsonl.zst file", path.display());
            }
            inside.sort();
            found.append(&mut inside);
        } else if path.is_file() {
            found.push(path.clone());
        } else {
            bail!("{} is neither a file nor a folder", path.display());
        }
    }
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if is_vectors(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// `.jsonl`, plain or compressed; a folder's README.md and manifest.json are not vectors.
fn is_vectors(path: &Path) -> bool {
    let ends = |path: &Path, extension: &str| path.extension().is_some_and(|e| e == extension);
    ends(path, "jsonl")
        || (ends(path, "zst") && path.file_stem().is_some_and(|stem| ends(Path::new(stem), "jsonl")))
}

/// The records of a file, one a line.
pub(crate) fn records(file: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Value>>> {
    let open = File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let reader: Box<dyn Read> = if file.extension().is_some_and(|e| e == "zst") {
        Box::new(zstd::Decoder::new(open)?)
    } else {
        Box::new(open)
    };
    let name = file.display().to_string();
    let lines = BufReader::new(reader).lines().enumerate();
    Ok(lines.filter_map(move |(number, line)| {
        let parse = |line: String| {
            serde_json::from_str(&line).with_context(|| format!("{name}:{}: not a JSON record", number + 1))
        };
        match line {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(parse(line)),
            Err(error) => Some(Err(error.into())),
        }
    }))
}
