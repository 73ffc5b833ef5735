//! Commands of Helm and kubectl in the documentation: a shell can parse them, both programs have their flags, and the chart accepts their
//! values. `make test-install` runs some of them on real nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::program::TempFolder;
use testbed::{Helm, Parts};

use crate::chart::rendered;
use crate::shared::manifests::repository;

/// Pages outside of docs/ with such commands.
const OTHER_PAGES: [&str; 2] = ["deploy/README.md", "charts/plimsoll/README.md"];
/// Folders of docs/ that are generated or describe other programs.
const OTHER_FOLDERS: [&str; 2] = ["reference", "spec"];
/// Shell functions that replace the programs. Each writes its name and arguments to a file, one per line, and an empty line. Scripts in `PATH`
/// could not be started (`Text file busy`) while a process that another test forked at that time holds them open.
const RECORDING_FUNCTIONS: &str = "record() { printf '%s\\n' \"$@\" '' >>\"$CALLS\"; }
helm() { record helm \"$@\"; }
kubectl() { record kubectl \"$@\"; }
plimsoll() { record plimsoll \"$@\"; }
";

/// A command, and the page and line where it ends.
struct DocumentedCommand {
    place: String,
    line: String,
}

fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !OTHER_FOLDERS.iter().any(|other| path.ends_with(other)) {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The lines of code blocks that begin with Helm or kubectl, or take their output for a variable; continued lines are joined.
fn commands(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut language, mut begun) = (Vec::new(), None, String::new());
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim();
        if let Some(name) = text.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name) };
            continue;
        }
        let is_shell = match language {
            Some(name) => ["", "console", "sh"].contains(&name),
            None => line.starts_with("    "),
        };
        if !is_shell {
            continue;
        }
        begun.push_str(text.strip_prefix("$ ").unwrap_or(text));
        if begun.ends_with('\\') {
            begun.pop();
            continue;
        }
        let whole = std::mem::take(&mut begun);
        if ["helm ", "kubectl ", "CA=$(kubectl "].iter().any(|start| whole.starts_with(start)) {
            found.push((number, whole));
        }
    }
    found
}

fn documented() -> Vec<DocumentedCommand> {
    let mut pages: Vec<PathBuf> = OTHER_PAGES.iter().map(|page| repository().join(page)).collect();
    add_pages(&repository().join("docs"), &mut pages);
    let of_page = |page: &PathBuf| {
        let place = |number: usize| format!("{}:{number}", page.display());
        let found = commands(&fs::read_to_string(page).unwrap()).into_iter();
        found
            .map(|(number, line)| DocumentedCommand { place: place(number), line })
            .collect::<Vec<DocumentedCommand>>()
    };
    pages.iter().flat_map(of_page).collect()
}

/// The programs that a line calls, each with its arguments.
fn calls(line: &DocumentedCommand) -> Vec<Vec<String>> {
    let temp_folder = TempFolder::new().unwrap();
    let file = temp_folder.path("calls");
    let shell = Command::new("sh")
        .args(["-c", &format!("{RECORDING_FUNCTIONS}{}", line.line)])
        .env("CALLS", &file)
        .current_dir(temp_folder.root())
        .output()
        .unwrap();
    assert!(shell.status.success(), "{}: {}\n{shell:?}", line.place, line.line);
    let text = fs::read_to_string(file).unwrap();
    text.split("\n\n")
        .filter(|call| !call.is_empty())
        .map(|call| call.lines().map(str::to_owned).collect())
        .collect()
}

/// Asserts that a program has the command and the flags.
fn check_flags(program: &Path, place: &str, arguments: &[String]) {
    let help = Command::new(program).args(arguments).arg("--help").output().unwrap();
    assert!(help.status.success(), "{place}: {arguments:?}\n{}", String::from_utf8_lossy(&help.stderr));
}

/// The values of a command, as Helm merges them.
fn values(arguments: &[String]) -> Vec<String> {
    let settings = arguments.windows(2).filter(|pair| pair[0] == "--set");
    settings.map(|pair| format!("--set={}", pair[1])).collect()
}

#[test]
fn commands_of_helm_and_kubectl_can_be_run() {
    let (helm, kubectl) = (Helm::ensure().unwrap().helm, Parts::ensure().unwrap().kubectl);
    let (mut checked, mut installed) = (Vec::new(), Vec::new());
    for line in documented() {
        for call in calls(&line) {
            let (program, arguments) = call.split_first().unwrap();
            let program = match program.as_str() {
                "helm" => &helm,
                "kubectl" => &kubectl,
                _ => continue,
            };
            if checked.contains(&call) {
                continue;
            }
            check_flags(program, &line.place, arguments);
            let values = values(arguments);
            if arguments.iter().any(|argument| argument == "charts/plimsoll") && !installed.contains(&values)
            {
                rendered(&values);
                installed.push(values);
            }
            checked.push(call);
        }
    }
    assert!(checked.len() >= 50 && installed.len() >= 8, "{} and {}", checked.len(), installed.len());
}

#[test]
fn continued_lines_are_one_command() {
    let page = "Run `helm x`.\n\n    helm a \\\n      --b  # c\n    make d\n\n```yaml\nhelm: e\n```\n```sh\nkubectl f > g\n```\n";
    let found = commands(page);
    assert_eq!(found, [(4, "helm a --b  # c".to_owned()), (11, "kubectl f > g".to_owned())]);
}
