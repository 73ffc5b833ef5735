#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;

use super::*;
use crate::http::tests::folder;

#[test]
fn invalid_file_is_reported_once() {
    let path = folder("reload").join("config.yaml");
    let mut watched = WatchedConfigFile::new(&path);
    assert!(matches!(watched.poll(), FileChange::Refused(ConfigFileError::File { .. })));
    assert_eq!(watched.poll(), FileChange::Unchanged);
    fs::write(&path, "rules:\n- seriesQuery: a\n  metricsQuery: b\n").unwrap();
    let FileChange::Changed(config) = watched.poll() else { panic!("not read") };
    assert_eq!(config.rules[0].series_query, "a");
    assert_eq!(watched.poll(), FileChange::Unchanged);
    fs::write(&path, "rules:\n- seriesquery: a\n").unwrap();
    let FileChange::Refused(error) = watched.poll() else { panic!("not refused") };
    assert!(
        error.to_string().contains("config.yaml") && error.to_string().contains("seriesquery"),
        "{error}"
    );
    assert_eq!(watched.poll(), FileChange::Unchanged);
    fs::remove_file(&path).unwrap();
    assert!(matches!(watched.poll(), FileChange::Refused(_)));
    assert_eq!(watched.poll(), FileChange::Unchanged);
}

#[test]
fn content_is_reported_again_after_an_error() {
    let path = folder("again").join("config.yaml");
    let text = "rules:\n- seriesQuery: a\n  metricsQuery: b\n";
    let mut watched = WatchedConfigFile::new(&path);
    fs::write(&path, text).unwrap();
    let first = watched.poll();
    assert!(matches!(first, FileChange::Changed(_)));
    fs::remove_file(&path).unwrap();
    assert!(matches!(watched.poll(), FileChange::Refused(ConfigFileError::File { .. })));
    fs::write(&path, text).unwrap();
    assert_eq!(watched.poll(), first);
    assert_eq!(watched.poll(), FileChange::Unchanged);
    watched.forget();
    assert_eq!(watched.poll(), first);
}

#[test]
fn replaced_symlinks_are_detected() {
    let folder = folder("links");
    for (name, query) in [("one", "a"), ("two", "b")] {
        fs::create_dir(folder.join(name)).unwrap();
        let text = format!("rules:\n- seriesQuery: {query}\n  metricsQuery: q\n");
        fs::write(folder.join(name).join("config.yaml"), text).unwrap();
    }
    symlink(folder.join("one"), folder.join("..data")).unwrap();
    symlink("..data/config.yaml", folder.join("config.yaml")).unwrap();
    let mut watched = WatchedConfigFile::new(folder.join("config.yaml"));
    assert!(matches!(watched.poll(), FileChange::Changed(_)));
    symlink(folder.join("two"), folder.join("..new")).unwrap();
    fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    let FileChange::Changed(config) = watched.poll() else { panic!("not noticed") };
    assert_eq!(config.rules[0].series_query, "b");
}
