//! `plimsoll scalers new`: the folder of a new trigger type, in a checkout of the repository.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use scalers::table;

use crate::failure::{CommandResult, Failure};
use crate::output;

/// The files of `example-queue`, which crates/scalers compiles and tests: what is written is known to work.
const FILES: [(&str, &str); 3] = [
    ("mod.rs", include_str!("../../../../scalers/src/example_queue/mod.rs")),
    ("query.rs", include_str!("../../../../scalers/src/example_queue/query.rs")),
    ("tests.rs", include_str!("../../../../scalers/src/example_queue/tests.rs")),
];
/// The folder of all scalers, in a checkout.
const SCALERS: &str = "crates/scalers/src";
/// Lines that name a longer type would be formatted differently.
const MAX_NAME_BYTES: usize = 40;
/// Words that cannot be the name of a module.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Write the folder of a new trigger type, in a checkout of the repository
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll scalers new acme-queue   # writes crates/scalers/src/acme_queue, with tests")]
pub(crate) struct NewScalerArgs {
    /// The type, as in the field `type`: lower-case letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    name: String,
}

/// A type in the forms in which code names it.
struct TypeName {
    /// `acme-queue`
    name: String,
    /// `acme_queue`
    folder: String,
    /// `acmeQueue`
    camel_case: String,
}

pub(crate) fn run(args: &NewScalerArgs) -> CommandResult {
    let here = std::env::current_dir()
        .map_err(|error| Failure::Outside(format!("failed to find the current folder: {error}")))?;
    let root = checkout(&here)?;
    let folder = write(root, &TypeName::parse(&args.name)?)?;
    output::text_out(&format!(
        "Wrote {} and added it to {SCALERS}/lib.rs. It reads the length of a queue over HTTP.\n\
         Change parameters, request and response, then run\n\n  \
         cargo test -p scalers\n  cargo xtask generate\n  make fmt\n",
        folder.display()
    ))
}

/// The checkout that a folder is in.
fn checkout(here: &Path) -> Result<&Path, Failure> {
    let found = here.ancestors().find(|folder| folder.join(SCALERS).join("lib.rs").is_file());
    found.ok_or_else(|| {
        Failure::input(format!(
            "{} is not in a checkout of Plimsoll: there is no {SCALERS}/lib.rs in it or above it; change to a checkout \
             of the repository and repeat",
            here.display()
        ))
    })
}

impl TypeName {
    fn parse(name: &str) -> Result<Self, Failure> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_word = |word: &str| !word.is_empty() && word.chars().all(is_plain);
        let is_name = name.len() <= MAX_NAME_BYTES
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.split('-').all(is_word)
            && !KEYWORDS.contains(&name);
        if !is_name {
            return Err(Failure::input(format!(
                "{name:?} cannot be the name of a trigger type: use at most {MAX_NAME_BYTES} lower-case letters, digits and \
                 single hyphens that are no keyword of Rust, as in acme-queue"
            )));
        }
        if table::find(name).is_some() {
            return Err(Failure::input(format!(
                "there is a trigger type {name} already: choose another name, or change its folder in {SCALERS}"
            )));
        }
        let mut words = name.split('-');
        let first = words.next().unwrap_or_default().to_owned();
        let camel_case = words.fold(first, |text, word| {
            let (head, tail) = word.split_at_checked(1).unwrap_or_default();
            text + &head.to_ascii_uppercase() + tail
        });
        Ok(Self { name: name.to_owned(), folder: name.replace('-', "_"), camel_case })
    }

    /// A text about `example-queue` as one about this type.
    fn rename(&self, text: &str) -> String {
        text.replace("example-queue", &self.name)
            .replace("example_queue", &self.folder)
            .replace("exampleQueue", &self.camel_case)
    }
}

/// Writes the folder and the line; returns the folder. Nothing is overwritten.
fn write(root: &Path, type_: &TypeName) -> Result<PathBuf, Failure> {
    let scalers = root.join(SCALERS);
    let folder = scalers.join(&type_.folder);
    for taken in [folder.clone(), folder.with_extension("rs")] {
        if taken.exists() {
            return Err(Failure::input(format!("{} exists already: choose another name", taken.display())));
        }
    }
    let table = scalers.join("lib.rs");
    let text = std::fs::read_to_string(&table).map_err(|error| Failure::file("read", &table, &error))?;
    let Some(text) = with_folder(&text, &type_.folder) else {
        return Err(Failure::input(format!(
            "{} has no scaler_folders! list: use the plimsoll of this checkout",
            table.display()
        )));
    };
    std::fs::create_dir(&folder).map_err(|error| Failure::file("create", &folder, &error))?;
    for (name, content) in FILES {
        let file = folder.join(name);
        std::fs::write(&file, type_.rename(content))
            .map_err(|error| Failure::file("write", &file, &error))?;
    }
    std::fs::write(&table, text).map_err(|error| Failure::file("write", &table, &error))?;
    Ok(folder)
}

/// The source of the table with a line for a folder, in alphabetical order.
fn with_folder(table: &str, folder: &str) -> Option<String> {
    let mut lines: Vec<&str> = table.lines().collect();
    let start = lines.iter().position(|line| *line == "scaler_folders! {")? + 1;
    let mut place = start;
    for (index, line) in lines.iter().enumerate().skip(start) {
        match line.trim().split_once(": [") {
            Some((known, _)) if known < folder => place = index + 1,
            // Attributes belong to the folder below them.
            None if line.trim_start().starts_with('#') => {}
            _ => break,
        }
    }
    let added = format!("    {folder}: [TYPE];");
    lines.insert(place, &added);
    Some(lines.join("\n") + "\n")
}
