#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;

use super::*;
use crate::http::tests::folder;

#[test]
fn a_broken_file_is_complained_about_once() {
    let path = folder("reload").join("config.yaml");
    let mut watched = Watched::new(&path);
    assert!(matches!(watched.look(), Looked::Refused(ReadError::File { .. })));
    assert_eq!(watched.look(), Looked::Unchanged);
    fs::write(&path, "rules:\n- seriesQuery: a\n  metricsQuery: b\n").unwrap();
    let Looked::Changed(config) = watched.look() else { panic!("not read") };
    assert_eq!(config.rules[0].series_query, "a");
    assert_eq!(watched.look(), Looked::Unchanged);
    fs::write(&path, "rules:\n- seriesquery: a\n").unwrap();
    let Looked::Refused(error) = watched.look() else { panic!("not refused") };
    assert!(
        error.to_string().contains("config.yaml") && error.to_string().contains("seriesquery"),
        "{error}"
    );
    assert_eq!(watched.look(), Looked::Unchanged);
    fs::remove_file(&path).unwrap();
    assert!(matches!(watched.look(), Looked::Refused(_)));
    assert_eq!(watched.look(), Looked::Unchanged);
}

#[test]
fn exchanged_links_are_noticed() {
    let folder = folder("links");
    for (name, query) in [("one", "a"), ("two", "b")] {
        fs::create_dir(folder.join(name)).unwrap();
        let text = format!("rules:\n- seriesQuery: {query}\n  metricsQuery: q\n");
        fs::write(folder.join(name).join("config.yaml"), text).unwrap();
    }
    symlink(folder.join("one"), folder.join("..data")).unwrap();
    symlink("..data/config.yaml", folder.join("config.yaml")).unwrap();
    let mut watched = Watched::new(folder.join("config.yaml"));
    assert!(matches!(watched.look(), Looked::Changed(_)));
    symlink(folder.join("two"), folder.join("..new")).unwrap();
    fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    let Looked::Changed(config) = watched.look() else { panic!("not noticed") };
    assert_eq!(config.rules[0].series_query, "b");
}
