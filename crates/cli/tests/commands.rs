//! The commands as users type them: `tests/cmd/*.md` are transcripts that are run and compared.
#![allow(clippy::unwrap_used, missing_docs)]

#[test]
fn transcripts_show_the_output_of_their_commands() {
    trycmd::TestCases::new().case("tests/cmd/*.md");
}

/// Every example runs as a user would run it.
#[test]
fn examples_can_be_simulated() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|ext| ext == "yaml")).collect();
    assert!(!files.is_empty());
    for file in files {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let output = command.args(["simulate", "--quiet"]).arg(&file).output().unwrap();
        let (stdout, stderr) =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
        assert!(output.status.success() && stdout.contains("pod-hours"), "{}: {stderr}", file.display());
    }
}

/// Every change of the count is in the row of its decision, with the reason.
#[test]
fn wide_table_has_the_rows_that_explain_changes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scale-to-zero.yaml");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let output = command.args(["simulate", file, "-o", "wide"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = text.lines().map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()));
    let titles: Vec<&str> = rows.next().unwrap().collect();
    let place = |title: &str| titles.iter().position(|known| *known == title).unwrap();
    let (replicas, desired, why) = (place("REPLICAS"), place("DESIRED"), place("WHY"));
    let rows: Vec<Vec<&str>> =
        rows.map(Iterator::collect).filter(|row: &Vec<&str>| row.len() > why).collect();
    let changes: Vec<_> = rows.windows(2).filter(|pair| pair[0][replicas] != pair[1][replicas]).collect();
    assert!(changes.len() >= 4, "{text}");
    for pair in changes {
        assert_eq!(pair[0][desired], pair[1][replicas], "no row explains {:?}", pair[1]);
    }
}

/// Shell completion knows the kinds, and the commands about events.
#[test]
fn completion_knows_the_kinds() {
    for shell in ["bash", "zsh", "fish"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["completion", shell])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("operator") && text.contains("scalers"), "{shell}");
        let kinds = text
            .lines()
            .any(|line| ["hpa", "autoscaler", "so", "all"].iter().all(|kind| line.contains(kind)));
        assert!(kinds || shell == "fish", "{shell}");
    }
}

/// Under the names of metrics-server and prometheus-adapter the program accepts their flags.
#[cfg(unix)]
#[test]
fn program_names_of_replaced_servers() {
    let folder = std::env::temp_dir().join(format!("plimsoll-replaced-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let output_of = |name: &str, words: &[&str]| {
        let link = folder.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), &link).unwrap();
        }
        let output = std::process::Command::new(&link).args(words).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(output_of("metrics-server", &["--version"]).starts_with("plimsoll "));
    let wrong = output_of("metrics-server", &["--metric-resolution=5s", "--cert-dir=/tmp"]);
    assert!(wrong.contains("but value 5s provided"), "{wrong}");
    let wrong = output_of("adapter", &["--secure-port=6443", "--logtostderr=true"]);
    assert!(wrong.contains("prometheus-adapter needs --config"), "{wrong}");
    let wrong = output_of("prometheus-adapter", &["--metrics-max-age=1s", "--config=none"]);
    assert!(wrong.contains("max age must not be less than relist interval"), "{wrong}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A document that is not an autoscaler passes unchanged, whatever characters it has.
#[test]
fn converted_json_keeps_control_characters() {
    let file = std::env::temp_dir().join(format!("plimsoll-convert-{}.yaml", std::process::id()));
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: \"a\\x7fb\"}\n";
    std::fs::write(&file, object).unwrap();
    let mut convert = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let output =
        convert.args(["convert", "--to", "autoscaling/v2", "-o", "json"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"a\u{7f}b\""));
    std::fs::remove_file(&file).unwrap();
}

/// As a plugin of kubectl the program has another name, which its help shows.
#[cfg(unix)]
#[test]
fn kubectl_plugin() {
    let folder = std::env::temp_dir().join(format!("plimsoll-plugin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("kubectl-plimsoll");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), &link).unwrap();
    let output_of = |words: &[&str]| {
        let output = std::process::Command::new(&link).args(words).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let help = output_of(&["--help"]);
    assert!(help.contains("Usage: kubectl plimsoll <COMMAND>"), "{help}");
    assert!(help.contains("\n  kubectl plimsoll get -A\n"), "{help}");
    let help = output_of(&["why", "--help"]);
    assert!(help.contains("Usage: kubectl plimsoll why [OPTIONS] <AUTOSCALER|FILE>..."), "{help}");
    assert!(help.contains("\n  kubectl plimsoll why hpa/php-apache --since 1h "), "{help}");
    let usage = output_of(&["get", "--nonsense"]);
    assert!(usage.contains("Usage: kubectl plimsoll get"), "{usage}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// kubectl completes the words after `kubectl plimsoll` with the program under another name.
#[cfg(unix)]
#[test]
fn kubectl_plugin_completion() {
    let folder = std::env::temp_dir().join(format!("plimsoll-completion-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("kubectl_complete-plimsoll");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), &link).unwrap();
    for (words, expected) in [
        (&["wh"][..], "why\tExplain a decision as arithmetic a person can follow\n:4\n"),
        (&["get", "s"], "so\nsj\n:4\n"),
        (&["up", "--workloads", "all,re"], "all,report\tScaled at fixed times\n:4\n"),
        (&["validate", "--strict", ""], ":0\n"),
    ] {
        let output = std::process::Command::new(&link).args(words).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{words:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
