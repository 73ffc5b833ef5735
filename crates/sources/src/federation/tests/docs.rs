//! The examples of `docs/federation.md`.

use std::path::Path;

use super::*;

#[test]
fn examples_of_the_docs_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/federation.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (mut read, mut upstreams) = (0, 0);
    for (place, block) in page.split("```yaml\n").skip(1).enumerate() {
        // Without the indentation of the surrounding list, as a reader copies it.
        let text = block.split("```").next().unwrap();
        let indent = text.len() - text.trim_start_matches(' ').len();
        let lines: Vec<&str> = text.lines().map(|line| line.get(indent..).unwrap_or_default()).collect();
        let source = SourceFile::new(format!("block {place}"), lines.join("\n"));
        let documents =
            api::yaml::parse(&source).unwrap_or_else(|problem| panic!("{}", problem.render(false)));
        if documents[0].root.get("upstreams").is_some() {
            let own = OwnService {
                namespace: "plimsoll".into(),
                service: "plimsoll-metrics".into(),
                id: String::new(),
            };
            let config = FederationConfig::read(&source, &own).unwrap_or_else(|found| {
                panic!("{}", found.iter().map(|one| one.render(false)).collect::<Vec<_>>().join("\n"))
            });
            upstreams += config.upstreams.len();
        }
        read += 1;
    }
    assert!(read >= 3 && upstreams >= 3, "{read} blocks, {upstreams} upstreams");
}

#[test]
fn docs_list_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/federation.md");
    let page = std::fs::read_to_string(page).unwrap();
    for key in [
        "name",
        "group",
        "url",
        "service.namespace",
        "service.name",
        "service.port",
        "tls.caFile",
        "tls.insecure",
        "tls.serverName",
        "auth.tokenFile",
        "auth.clientCertificateFile",
        "auth.clientKeyFile",
        "metrics",
        "namespaces",
        "timeout",
        "priority",
    ] {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}
