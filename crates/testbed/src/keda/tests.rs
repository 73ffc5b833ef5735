use super::*;

#[test]
fn options_become_flags_and_variables() {
    let options = KedaOptions { namespace: Some("one".into()), requests: None, ..KedaOptions::default() };
    let said = environment(&options);
    assert!(said.contains(&("WATCH_NAMESPACE", "one".to_owned())), "{said:?}");
    let all = environment(&KedaOptions::default());
    assert!(
        all.contains(&("WATCH_NAMESPACE", String::new())),
        "it does not start without the variable: {all:?}"
    );
    let flags = arguments(Path::new("/k"), Path::new("/c"), [1, 2, 3], &options);
    assert!(flags.iter().all(|flag| !flag.starts_with("--kube-api")), "{flags:?}");
    let flags = arguments(Path::new("/k"), Path::new("/c"), [1, 2, 3], &KedaOptions::default());
    assert!(flags.contains(&"--kube-api-qps=500".to_owned()), "{flags:?}");
}
