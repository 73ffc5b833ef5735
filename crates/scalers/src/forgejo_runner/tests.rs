use super::Parameters;
use super::query::{jobs, url};
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn url_depends_on_the_scope_of_runners() {
    let of = |set: &dyn Fn(&mut Parameters)| {
        let mut parameters =
            Parameters { address: "https://f/".into(), labels: "a,b".into(), ..Parameters::default() };
        set(&mut parameters);
        url(&parameters)
    };
    assert_eq!(of(&|_| {}), "https://f/api/v1/user/actions/runners/jobs?labels=a%2Cb");
    assert_eq!(of(&|p| p.global = true), "https://f/api/v1/admin/runners/jobs?labels=a%2Cb");
    assert_eq!(of(&|p| p.org = "o".into()), "https://f/api/v1/orgs/o/actions/runners/jobs?labels=a%2Cb");
    let repository = of(&|p| (p.owner, p.repo, p.global) = ("o".into(), "r".into(), true));
    assert_eq!(repository, "https://f/api/v1/repos/o/r/actions/runners/jobs?labels=a%2Cb");
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(jobs(200, br#"[{"id":1},{"id":2}]"#), Ok(2.0));
    assert_eq!(jobs(200, b"null"), Ok(0.0));
    for (status, bad) in [(200, "{}"), (200, "<html>"), (200, ""), (403, "[]")] {
        assert!(jobs(status, bad.as_bytes()).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.contains("authorization: token t\r\n"), "{head}");
        ServerAction::Answer(200, "[{}]".to_owned())
    })
    .await;
    let mut trigger = trigger("forgejo-runner", &[("address", &url), ("labels", "a")]);
    trigger.auth = texts(&[("token", "t")]);
    assert!(read(&trigger).await.unwrap().active);
}
