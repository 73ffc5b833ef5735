//! The image cannot be built everywhere; what its Dockerfile names can be looked at.

use std::process::Command;

use testbed::program::Room;

use crate::shared::manifests::repository;
use crate::shared::program::program;

fn read(name: &str) -> String {
    std::fs::read_to_string(repository().join(name)).unwrap()
}

/// The words of the line that begins so.
fn after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no line begins with {start:?}")).split_whitespace().collect()
}

#[test]
fn it_is_built_as_the_workspace_has_it() {
    let (file, workspace, package) = (read("Dockerfile"), read("Cargo.toml"), read("crates/cli/Cargo.toml"));
    let compiler = after(&workspace, "rust-version = ")[0].trim_matches('"');
    assert!(
        after(&file, "FROM rust:")[0].starts_with(&format!("{compiler}-")),
        "{compiler} is what is tested"
    );
    let words = after(&file, "RUN cargo build ");
    assert_eq!(words, ["--profile", "dist", "--locked", "--package", "plimsoll"]);
    assert!(workspace.contains("[profile.dist]"));
    assert!(
        package.contains("[package]\nname = \"plimsoll\"\n")
            && package.contains("[[bin]]\nname = \"plimsoll\"\n")
    );
    assert_eq!(after(&file, "WORKDIR "), ["/src"]);
    let copied = after(&file, "COPY --from=build /src/target/");
    assert_eq!(copied, ["dist/plimsoll", "/usr/local/bin/plimsoll"]);
    let left_out = read(".dockerignore");
    for part in ["Cargo.toml", "Cargo.lock", "crates", "examples", "xtask"] {
        assert!(repository().join(part).exists() && !left_out.lines().any(|line| line == part), "{part}");
    }
}

#[test]
fn it_has_the_authorities_that_scalers_look_for() {
    let file = read("Dockerfile");
    let authorities = after(&file, "COPY --from=build /etc/")[1];
    for reader in ["crates/scalers/src/tls.rs", "crates/sources/src/http/trust.rs"] {
        assert!(
            read(reader).contains(&format!("\"{authorities}\"")),
            "{reader} does not look at {authorities}"
        );
    }
}

#[test]
fn the_names_of_others_are_their_commands() {
    let file = read("Dockerfile");
    let linked: Vec<&str> = file.split("ln -s usr/local/bin/plimsoll /").skip(1).collect();
    let linked: Vec<&str> = linked.iter().map(|rest| rest.split_whitespace().next().unwrap()).collect();
    assert_eq!(linked, ["metrics-server", "adapter", "keda"]);
    let room = Room::new().unwrap();
    for (name, command) in linked.into_iter().zip(["metrics", "metrics", "operator"]) {
        let link = room.path(name);
        std::os::unix::fs::symlink(program(), &link).unwrap();
        let output = Command::new(&link).arg("--help").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains(&format!(" {command} [OPTIONS]")), "{name}: {said}");
    }
}
