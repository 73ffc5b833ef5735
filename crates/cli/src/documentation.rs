//! Commands that the documentation and the help name exist, with all their flags, and YAML can be read.

use std::fs;
use std::path::{Path, PathBuf};

use api::yaml::SourceFile;
use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap::error::ErrorKind;
use sources::federation::{FederationConfig, OwnService};

/// Pages outside of docs/. The changelog may name what no longer exists.
const PAGES: [&str; 5] = [
    "README.md",
    "CONTRIBUTING.md",
    "deploy/README.md",
    "charts/plimsoll/README.md",
    "examples/external-scaler/README.md",
];
/// Folders of docs/ that are generated, or describe other programs.
const OTHER_FOLDERS: [&str; 2] = ["reference", "spec"];
/// What ends a command in a line of a shell.
const COMMAND_ENDS: [&str; 5] = [" #", " | ", " > ", " && ", " & "];

/// A command, and the page and line where it stands.
struct DocumentedCommand {
    place: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Markdown files of a folder.
fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !OTHER_FOLDERS.contains(&name) {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// All pages and their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages: Vec<PathBuf> = PAGES.iter().map(|page| root().join(page)).collect();
    add_pages(&root().join("docs"), &mut pages);
    pages.into_iter().map(|page| (page.clone(), fs::read_to_string(page).unwrap())).collect()
}

/// All commands that begin with these words.
fn documented(start: &str) -> Vec<DocumentedCommand> {
    let mut found = Vec::new();
    for (page, text) in pages() {
        let commands = commands(&text).into_iter().filter(|(_, command)| command.starts_with(start));
        found.extend(commands.map(|(line, command)| DocumentedCommand {
            place: format!("{}:{line}", page.display()),
            text: command.to_owned(),
        }));
    }
    found
}

/// The lines of code blocks and what is between backquotes, with line numbers.
fn commands(page: &str) -> Vec<(usize, &str)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    let mut language = None;
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim_start();
        if let Some(name) = text.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name) };
            continue;
        }
        let is_shell = match language {
            Some(name) => ["", "console", "sh"].contains(&name),
            None => line.starts_with("    "),
        };
        if is_shell {
            found.push((number, text.strip_prefix("$ ").unwrap_or(text)));
        } else if language.is_none() {
            found.extend(line.split('`').skip(1).step_by(2).map(|code| (number, code)));
        }
    }
    found
        .into_iter()
        .flat_map(|(number, line)| shell_commands(line).map(move |command| (number, command)))
        .collect()
}

/// All commands in a line of a shell.
fn shell_commands(line: &str) -> impl Iterator<Item = &str> {
    let line = line.split(" #").next().unwrap_or_default();
    line.split(" | ").flat_map(|part| part.split(" && ")).map(first_command)
}

/// The first command in a line of a shell, without a comment.
fn first_command(line: &str) -> &str {
    COMMAND_ENDS.iter().fold(line, |line, end| line.split(*end).next().unwrap_or_default()).trim_end()
}

/// Words as a shell splits them, without placeholders for further ones.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, piece) in command.split(['\'', '"']).enumerate() {
        // Every second piece is quoted.
        if index % 2 == 1 {
            words.push(piece.to_owned());
        } else {
            words.extend(piece.split_whitespace().map(str::to_owned));
        }
    }
    words.retain(|word| !word.starts_with('[') && word != "…");
    words
}

/// The YAML blocks of a page, without the indentation of a list around them.
fn yaml_blocks(page: &str) -> Vec<String> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in page.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("```") {
            match open.take() {
                Some((_, block)) => blocks.push(block),
                None if text == "```yaml" => open = Some((indent, String::new())),
                None => {}
            }
        } else if let Some((indent, block)) = &mut open {
            block.push_str(line.get(*indent..).unwrap_or_default());
            block.push('\n');
        }
    }
    blocks
}

#[test]
fn yaml_can_be_parsed_and_upstreams_are_valid() {
    let mut upstreams = 0;
    for (page, text) in pages() {
        for block in yaml_blocks(&text) {
            let source = SourceFile::new(page.display().to_string(), block.as_str());
            let problem = api::yaml::parse(&source).err().map(|problem| problem.message);
            assert_eq!(problem, None, "{}:\n{block}", page.display());
            if block.starts_with("upstreams:") {
                let read = FederationConfig::read(&source, &OwnService::default());
                assert!(read.is_ok(), "{}:\n{block}", page.display());
                upstreams += 1;
            }
        }
    }
    assert!(upstreams >= 2, "{upstreams}");
}

#[test]
fn code_is_found_in_pages() {
    let page = "Use `a b` and `c`.\n\n    $ d --e  # f\n\n```yaml\ng: h\n```\n```console\n$ i | j\nk\n```\n";
    assert_eq!(commands(page), [(1, "a b"), (1, "c"), (3, "d --e"), (9, "i"), (9, "j"), (10, "k")]);
    assert_eq!(words("a --b 'c d' [E] …"), ["a", "--b", "c d"]);
    let page = "- a\n  ```yaml\n  b:\n    c: d\n  ```\n```json\n{}\n```\n```yaml\ne: f\n```\n";
    assert_eq!(yaml_blocks(page), ["b:\n  c: d\n", "e: f\n"]);
}

fn after_help(command: &clap::Command) -> String {
    command.get_after_help().map(StyledStr::to_string).unwrap_or_default()
}

/// Lines of examples that clap would break in two, so that a shell would run the second part by itself.
fn add_wrapped_examples(command: &clap::Command, found: &mut Vec<String>) {
    /// The width to which clap wraps on a wide terminal.
    const HELP_COLUMNS: usize = 100;
    let help = after_help(command);
    let wide = help.lines().filter(|line| line.starts_with("  ") && line.chars().count() > HELP_COLUMNS);
    found.extend(wide.map(str::to_owned));
    command.get_subcommands().for_each(|below| add_wrapped_examples(below, found));
}

#[test]
fn examples_in_the_help_stay_on_their_lines() {
    let mut wrapped = Vec::new();
    add_wrapped_examples(&crate::Cli::command(), &mut wrapped);
    assert_eq!(wrapped, Vec::<String>::new());
}

/// The examples in the help of a command and of those below it.
fn add_examples(command: &clap::Command, found: &mut Vec<DocumentedCommand>) {
    // A backslash at the end of a line continues it.
    let help = after_help(command).replace("\\\n", " ");
    let examples = help.lines().map(str::trim_start).filter(|line| line.starts_with("plimsoll "));
    found.extend(examples.map(|line| DocumentedCommand {
        place: format!("the help of {}", command.get_name()),
        text: first_command(line).to_owned(),
    }));
    command.get_subcommands().for_each(|below| add_examples(below, found));
}

#[test]
fn commands_and_flags_exist() {
    let program = crate::Cli::command();
    let mut all = documented("plimsoll ");
    assert!(all.len() > 100, "{}", all.len());
    let pages = all.len();
    add_examples(&program, &mut all);
    assert!(all.len() > pages + 50, "{pages} in pages, {} in all", all.len());
    all.sort_by(|one, other| one.text.cmp(&other.text));
    all.dedup_by(|one, other| one.text == other.text);
    for DocumentedCommand { place, text } in all {
        let Err(error) = program.clone().try_get_matches_from(words(&text)) else { continue };
        // Values may be placeholders, and required ones may be left out.
        let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
        assert!(!is_unknown, "{place}: {text}\n{error}");
    }
}

#[test]
fn targets_of_the_makefile_exist() {
    let mut rules = fs::read_to_string(root().join("Makefile")).unwrap();
    for entry in fs::read_dir(root().join("make")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mk") {
            rules.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    let targets: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.split_once(':'))
        .flat_map(|(targets, _)| targets.split_whitespace())
        .collect();
    for DocumentedCommand { place, text } in documented("make ") {
        let target = words(&text).into_iter().skip(1).find(|word| !word.contains('=')).unwrap_or_default();
        assert!(targets.contains(&target.as_str()), "{place}: there is no target {target}");
    }
}

#[test]
fn developer_tasks_exist() {
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    for DocumentedCommand { place, text } in documented("cargo xtask ") {
        let name = words(&text).into_iter().nth(2).unwrap();
        let variant: String = name[..1].to_uppercase() + &name[1..];
        let exists =
            [format!("    {variant}("), format!("    {variant},")].iter().any(|line| tasks.contains(line));
        assert!(exists || name == "--help", "{place}: there is no task {name}");
    }
}

/// The text of all plain manifests.
fn add_manifests(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_manifests(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn files_and_objects_of_kubectl_and_helm_exist() {
    let mut manifests = String::new();
    add_manifests(&root().join("deploy"), &mut manifests);
    // The roles create these objects, and hooks of the chart delete them.
    let created = fs::read_to_string(root().join("charts/plimsoll/templates/removal.yaml")).unwrap();
    let (mut files, mut objects) = (0, 0);
    for DocumentedCommand { place, text } in ["kubectl ", "helm "].into_iter().flat_map(documented) {
        for word in words(&text) {
            let name = word.rsplit('/').next().unwrap_or_default();
            if ["charts/", "deploy/", "examples/"].iter().any(|folder| word.starts_with(folder)) {
                assert!(root().join(&word).exists(), "{place}: there is no {word}");
                files += 1;
            } else if name.starts_with("plimsoll-") || name.ends_with(".plimsoll.dev") {
                let exists = manifests.contains(&format!("name: {name}"))
                    || created.contains(&format!("\"name\" \"{name}\""));
                assert!(exists, "{place}: neither deploy/ nor the chart's removal.yaml has {name}");
                objects += 1;
            }
        }
    }
    assert!(files >= 10 && objects >= 10, "{files} files, {objects} objects");
}

#[test]
fn values_of_the_chart_in_commands_exist() {
    let file = fs::read_to_string(root().join("charts/plimsoll/values.yaml")).unwrap();
    let documents = api::yaml::parse(&SourceFile::new("values.yaml", file.as_str())).unwrap_or_default();
    let values = documents[0].root.to_json();
    let mut checked = 0;
    for DocumentedCommand { place, text } in documented("") {
        let words = words(&text);
        for (index, word) in words.iter().enumerate() {
            let setting = match word.strip_prefix("--set") {
                Some("") => words.get(index + 1).map_or("", String::as_str),
                Some(setting) => setting,
                None => continue,
            };
            let Some((key, _)) = setting.trim_start_matches('=').split_once('=') else { continue };
            // Items of lists are not in the file.
            let key = key.split('[').next().unwrap_or_default();
            let found = values.pointer(&format!("/{}", key.replace('.', "/")));
            assert!(found.is_some(), "{place}: the chart has no value {key}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}
