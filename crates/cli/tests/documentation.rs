//! Code blocks of the documentation: `console` blocks are run and compared, and whole objects in YAML are validated.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Pages name files relative to the repository, so all tests of this program run there.
fn enter_repository() {
    std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
}

#[test]
fn console_blocks_print_what_they_show() {
    enter_repository();
    trycmd::TestCases::new().case("docs/tutorials/*.md");
}

/// All Markdown files of a folder; those of docs/spec describe other programs.
fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("spec") {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The YAML blocks of a page that are whole objects of kinds that `plimsoll validate` checks.
fn objects(page: &str) -> Vec<String> {
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let checked = ["autoscaling/", "keda.sh/", "eventing.keda.sh/", "plimsoll.dev/"];
    let is_checked = |block: &&str| {
        let versions = checked.iter().any(|group| block.contains(&format!("apiVersion: {group}")));
        // The settings of the controller are a file, and not an object of the cluster.
        versions && block.contains("\nspec:") && block.contains("\nkind: ")
    };
    blocks.filter(is_checked).map(str::to_owned).collect()
}

#[test]
fn objects_of_the_documentation_are_valid() {
    enter_repository();
    let mut pages = vec![PathBuf::from("README.md")];
    add_pages(Path::new("docs"), &mut pages);
    let file = std::env::temp_dir().join(format!("plimsoll-documentation-{}.yaml", std::process::id()));
    let mut checked = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let is_run = page.starts_with("docs/tutorials");
        assert!(is_run || !text.contains("```console"), "{}: only tutorials are run", page.display());
        for object in objects(&text) {
            std::fs::write(&file, &object).unwrap();
            let output =
                Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("validate").arg(&file).output().unwrap();
            let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(output.status.success(), "{}:\n{object}\n{printed}", page.display());
            checked += 1;
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(checked >= 4, "{checked}");
}
