use super::*;
use crate::parts::{ETCD, GoModule, KUBERNETES, PROMETHEUS};

fn variables(set: &[(&'static str, &'static str)]) -> impl Fn(&str) -> Option<PathBuf> {
    move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
}

fn module(part: Part) -> GoModule {
    let Source::Go(module) = part.source else { panic!("{} is no Go module", part.name) };
    module
}

#[test]
fn cache_folder_comes_from_environment_variables() {
    let home = ("HOME", "/home/ada");
    let xdg = ("XDG_CACHE_HOME", "/var/cache/ada");
    let own = (CACHE_VARIABLE, "/big/disk");
    assert_eq!(root(variables(&[home, xdg, own])), Some("/big/disk".into()));
    assert_eq!(root(variables(&[home, xdg])), Some("/var/cache/ada/plimsoll".into()));
    assert_eq!(root(variables(&[home])), Some("/home/ada/.cache/plimsoll".into()));
    assert_eq!(root(variables(&[])), None);
}

#[test]
fn cache_key_changes_with_every_build_input() {
    let first = key(&ETCD);
    assert!(first.starts_with("etcd-3.6.5-"), "{first}");
    assert_eq!(first, key(&ETCD));
    let etcd = module(ETCD);
    let variants = [
        GoModule { manifest: "go 1.27", ..etcd },
        GoModule { sums: "", ..etcd },
        GoModule { link_flags: &["-X a.b=c"], ..etcd },
        GoModule { link_flags: &["-X a.b", "=c"], ..etcd },
        GoModule { programs: &[("go.etcd.io/etcd/server/v3", "server")], ..etcd },
    ];
    let mut keys: Vec<String> =
        variants.iter().map(|m| key(&Part { source: Source::Go(*m), ..ETCD })).collect();
    keys.extend([first, key(&KUBERNETES), key(&PROMETHEUS)]);
    let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
}

#[test]
fn complete_parts_are_not_rebuilt_and_drafts_are_not_returned() {
    let root = std::env::temp_dir().join(format!("testbed-cache-{}", std::process::id()));
    let cache = Cache::at(&root);
    let part = Part {
        name: "nothing",
        version: "1",
        source: Source::Debian { package: "no such package, ever", programs: &["nothing"] },
    };
    let home = root.join("parts").join(key(&part));
    let draft = root.join("parts").join(format!("{}.draft", key(&part)));
    let missing = cache.require(&part, "--it").unwrap_err();
    assert!(missing.is_out_of_reach(), "{missing}");
    assert_eq!(
        missing.to_string(),
        "nothing (Debian's) is not built\n  remedy: run `cargo xtask real build --it`"
    );
    assert!(!home.exists(), "nothing was built");
    // This folder was left by an interrupted build.
    fs::create_dir_all(draft.join("bin")).unwrap();
    fs::create_dir_all(&home).unwrap();
    assert!(cache.ensure(&part, &mut Progress::silent()).is_err());
    assert!(!draft.exists() && !home.exists());

    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("nothing"), "").unwrap();
    assert_eq!(cache.ensure(&part, &mut Progress::silent()).unwrap(), home);
    fs::remove_dir_all(root).unwrap();
}
