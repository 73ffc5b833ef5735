use std::time::Duration;

use super::*;

#[tokio::test(start_paused = true)]
async fn changed_file_is_applied_and_invalid_one_is_ignored() {
    let path = std::env::temp_dir().join(format!("plimsoll-upstreams-{}.yaml", std::process::id()));
    let line = |name: &str| format!("upstreams: [{{name: {name}, group: external, url: 'https://{name}'}}]");
    std::fs::write(&path, line("a")).unwrap();
    let own = OwnService { namespace: "ns".into(), service: "us".into(), id: String::new() };
    let router = Router::new(own, LocalProviders::default(), FederationConfig::default());
    let following = tokio::spawn({
        let (router, path) = (router.clone(), path.clone());
        async move { router.follow(&path).await }
    });
    let names = || router.report().into_iter().map(|one| one.name).collect::<Vec<_>>();
    let a_while = || tokio::time::sleep(Duration::from_secs(6));
    a_while().await;
    assert_eq!((names(), router.problem()), (vec!["a".to_owned()], None));
    for (broken, why) in [
        ("upstreams: [{nam: b}]".to_owned(), "nam"),
        ("upstreams: [".to_owned(), "upstreams"),
        (line("us.ns.svc"), "the Service of this server"),
        (format!("# {}\n", "x".repeat(2 << 20)), "more than"),
    ] {
        std::fs::write(&path, broken).unwrap();
        a_while().await;
        assert_eq!(names(), ["a"], "{why}");
        assert!(
            router.problem().is_some_and(|problem| problem.contains(why)),
            "{why}: {:?}",
            router.problem()
        );
    }
    std::fs::remove_file(&path).unwrap();
    a_while().await;
    assert!(names() == ["a"] && router.problem().is_some());
    std::fs::write(&path, line("b")).unwrap();
    a_while().await;
    assert_eq!((names(), router.problem()), (vec!["b".to_owned()], None));
    following.abort();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn built_in_upstreams_stay_when_the_file_changes() {
    let file =
        |name: &str| config(&format!("upstreams: [{{name: {name}, group: custom, url: 'https://{name}'}}]"));
    let service = ServiceReference { namespace: "a".into(), name: "operator".into(), port: Port::default() };
    let own = |ca: &[u8]| {
        let mut one = UpstreamConfig::of_service("operator", ApiGroups::External, service.clone());
        one.tls.ca_bundle = Some(ca.to_vec());
        one
    };
    let router = Router::new(OwnService::default(), LocalProviders::default(), file("first"));
    let names = || router.report().into_iter().map(|report| report.name).collect::<Vec<_>>();
    router.set_built_in(vec![own(b"ca")]);
    assert_eq!(names(), ["operator", "first"]);
    assert_eq!(router.config(), file("first"), "only the file is compared with the file");
    router.configure(file("second"));
    assert_eq!(names(), ["operator", "second"]);
    router.set_built_in(vec![own(b"other")]);
    assert_eq!(names(), ["operator", "second"]);
    router.set_built_in(Vec::new());
    assert_eq!(names(), ["second"]);
}
