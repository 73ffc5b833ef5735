//! Tests of the Dockerfile and of `cargo xtask image`, because the image cannot be built on every machine.

use std::process::Command;

use testbed::program::TempFolder;

use crate::shared::manifests::repository;
use crate::shared::program::program;

fn read(name: &str) -> String {
    std::fs::read_to_string(repository().join(name)).unwrap()
}

/// The words of the line with this prefix.
fn after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no line begins with {start:?}")).split_whitespace().collect()
}

#[test]
fn image_build_matches_the_workspace() {
    let (file, workspace, package) = (read("Dockerfile"), read("Cargo.toml"), read("crates/cli/Cargo.toml"));
    let compiler = after(&workspace, "rust-version = ")[0].trim_matches('"');
    assert!(
        after(&file, "ARG RUST_IMAGE=rust:")[0].starts_with(&format!("{compiler}.")),
        "{compiler} is what is tested"
    );
    let words = after(&file, "RUN make ");
    assert_eq!(words, ["dist", "&&", "mv", "target/*/dist/plimsoll", "target/plimsoll"]);
    assert!(workspace.contains("[profile.dist]"));
    assert!(
        package.contains("[package]\nname = \"plimsoll\"\n")
            && package.contains("[[bin]]\nname = \"plimsoll\"\n")
    );
    assert_eq!(after(&file, "WORKDIR "), ["/src"]);
    let copied = after(&file, "COPY --from=build /src/target/");
    assert_eq!(copied, ["plimsoll", "/usr/local/bin/plimsoll"]);
    let left_out = read(".dockerignore");
    for part in ["Cargo.toml", "Cargo.lock", "Makefile", "make", "crates", "examples", "xtask"] {
        assert!(repository().join(part).exists() && !left_out.lines().any(|line| line == part), "{part}");
    }
}

/// The commands that make would run, one per line.
fn would_do(options: &[&str]) -> String {
    // The tests may run under make, whose flags must not be inherited.
    let mut make = Command::new("make");
    make.args(options).args(["--dry-run", "--no-print-directory", "dist"]);
    let make =
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(repository()).output().unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    String::from_utf8_lossy(&make.stdout).replace("\\\n", "")
}

#[test]
fn image_uses_the_pgo_profile() {
    let output_text = would_do(&["--always-make"]);
    let (unpack, build) = output_text.trim().split_once('\n').unwrap();
    let profile = unpack.split_whitespace().find(|word| word.contains(".profdata.")).unwrap();
    assert!(repository().join(profile).metadata().unwrap().len() > 0, "{profile}");
    let unpacked = unpack.split_whitespace().last().unwrap();
    assert!(build.contains("-Cprofile-use=") && build.contains(&format!("/{unpacked}\"")), "{output_text}");
    let words: Vec<&str> = build.split_whitespace().collect();
    for wanted in [["--profile", "dist"], ["--package", "plimsoll"]] {
        assert!(words.windows(2).any(|pair| pair == wanted), "{output_text}");
    }
    assert!(words.contains(&"--locked") && words.contains(&"--target"), "its folder has a name of its own");
    let old = would_do(&["--assume-old", unpacked]);
    assert_eq!(old.trim(), build, "what is unpacked stays, or everything would be built again");
}

#[test]
fn image_has_ca_certificates() {
    let file = read("Dockerfile");
    let (_, authorities) = file.split_once("xargs -0 cat > /rootfs").unwrap();
    let authorities = authorities.split_whitespace().next().unwrap();
    let reader = "crates/sources/src/http/trust.rs";
    assert!(read(reader).contains(&format!("\"{authorities}\"")), "{reader} does not read {authorities}");
}

/// `make image` and the Dockerfile take the same files from the same packages.
#[test]
fn dockerfile_has_the_files_of_the_image() {
    let (file, source) = (read("Dockerfile"), read("xtask/src/image/rootfs.rs"));
    let (_, lists) = source.split_once("const LIBRARIES").unwrap();
    let (lists, rest) = lists.split_once("/// Writes the files").unwrap();
    let words: Vec<&str> = file.split([' ', '\n', ';', '/']).collect();
    let names: Vec<&str> = lists.split('"').skip(1).step_by(2).collect();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        assert!(words.contains(&name), "the Dockerfile lacks {name}");
    }
    for line in rest.split("b\"").skip(1).filter_map(|text| text.split("\\n").next()).take(2) {
        assert!(file.contains(&format!("'{line}'")), "the Dockerfile lacks {line}");
    }
    let (_, last) = file.rsplit_once("\nFROM ").unwrap();
    assert!(last.starts_with("scratch\n") && !last.contains("\nRUN "), "{last}");
}

#[test]
fn image_has_links_named_like_replaced_servers() {
    let file = read("Dockerfile");
    let linked: Vec<&str> = file.split("ln -s usr/local/bin/plimsoll /rootfs/").skip(1).collect();
    let linked: Vec<&str> = linked.iter().map(|rest| rest.split_whitespace().next().unwrap()).collect();
    assert_eq!(linked, ["metrics-server", "adapter", "keda"]);
    let temp_folder = TempFolder::new().unwrap();
    for (name, command) in linked.into_iter().zip(["metrics", "metrics", "operator"]) {
        let link = temp_folder.path(name);
        std::os::unix::fs::symlink(program(), &link).unwrap();
        let output = Command::new(&link).arg("--help").output().unwrap();
        let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && output_text.contains(&format!(" {command} [OPTIONS]")),
            "{name}: {output_text}"
        );
    }
}

/// Runs `cargo xtask image`, which `make` builds beside the test programs, with a small program instead of ours.
fn write_image(temp_folder: &TempFolder, name: &str) -> std::path::PathBuf {
    let xtask = program().with_file_name("xtask");
    let folder = temp_folder.path(name);
    let mut command = Command::new(xtask);
    command.args(["image", "--without-sbom", "--binary", "/bin/true", "--output"]).arg(&folder);
    let output = command.current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn image_is_reproducible_and_holds_nothing_but_the_program_its_libraries_and_certificates() {
    let is_debian = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !(is_debian("apt-get") && is_debian("dpkg-deb")) {
        eprintln!("skipped: the image is made of Debian's packages, and there is no apt-get");
        return;
    }
    let temp_folder = TempFolder::new().unwrap();
    let (first, second) = (write_image(&temp_folder, "first"), write_image(&temp_folder, "second"));
    let index = |folder: &std::path::Path| std::fs::read_to_string(folder.join("oci/index.json")).unwrap();
    assert_eq!(index(&first), index(&second), "two builds have the same digest");
    let listed =
        Command::new("find").arg(".").args(["!", "-type", "d"]).current_dir(first.join("rootfs")).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let mut files: Vec<&str> = listed.lines().map(|line| line.trim_start_matches("./")).collect();
    files.sort_unstable();
    // On arm64, /lib is a folder with the loader instead of a link.
    let loader: &[&str] = match std::env::consts::ARCH {
        "x86_64" => &["lib", "lib64/ld-linux-x86-64.so.2"],
        _ => &["lib/ld-linux-aarch64.so.1"],
    };
    let mut wanted = [
        "adapter",
        "etc/group",
        "etc/passwd",
        "etc/ssl/certs/ca-certificates.crt",
        "keda",
        "metrics-server",
        "usr/lib/libc.so.6",
        "usr/lib/libdl.so.2",
        "usr/lib/libgcc_s.so.1",
        "usr/lib/libm.so.6",
        "usr/lib/libpthread.so.0",
        "usr/lib/librt.so.1",
        "usr/local/bin/plimsoll",
    ]
    .to_vec();
    wanted.extend(loader);
    wanted.sort_unstable();
    assert_eq!(files, wanted);
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout == b"0\n" {
        // The program finds all its libraries in the image.
        let started = Command::new("chroot").arg(first.join("rootfs")).arg("/keda").output().unwrap();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    }
}
