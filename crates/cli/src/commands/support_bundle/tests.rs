#![allow(clippy::unwrap_used)]

use std::io::Read as _;

use jiff::Timestamp;
use serde_json::json;

use super::archive::{BundleFile, packed};
use super::redact;

const CANARY: &str = "c4n4ry";

#[test]
fn secrets_of_objects_are_removed() {
    let mut object = json!({
        "metadata": {
            "name": "orders", "managedFields": [{"x": CANARY}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": CANARY, "other": CANARY,
                "autoscaling.keda.sh/paused": "true"
            }
        },
        "spec": {
            "triggers": [{"type": "rabbitmq", "metadata": {
                "host": format!("amqp://user:{CANARY}@rabbit:5672/v"), "queueName": "orders", "value": "5",
                "connection": format!("Endpoint=sb://x/;SharedAccessKey={CANARY}"), "passwordFromEnv": "PASSWORD",
                "query": format!("select 1 -- password='{CANARY}'"), "apiKey": CANARY, "privateKey": CANARY,
                "customHeaders": format!("X-Tenant=a,Cookie=a={CANARY}; b={CANARY}"),
                "scopes": [format!("https://x/?sig={CANARY}&a=b")], "tokens": [CANARY]
            }}],
            "secretTargetRef": [{"parameter": "password", "name": "rabbit", "key": "password"}],
            "template": {"containers": [{"env": [{"name": "A", "value": CANARY}], "args": [
                format!("--api-token={CANARY}"), "--client-password", CANARY, format!("--header=Authorization=Bearer {CANARY}"),
                format!("Authorization: Token {CANARY}"), format!("{{\\\"token\\\":\\\"{CANARY}\\\"}}"), format!("amqp://u:a/{CANARY}@h/v"),
                format!("root:{CANARY}@tcp(mysql:3306)/shop"), format!("dial u:{CANARY}@pg:5432/shop: refused"),
                format!("password='a {CANARY}'"), format!("app --token {CANARY} -v && x --client-password 'a {CANARY}' -q"),
                format!("curl -H 'Cookie: a={CANARY}; b={CANARY}' x")
            ]}]},
            "destination": {"http": {"uri": format!("https://hooks.example.com/services/{CANARY}")}}
        },
        "status": {"message": format!("refused: Authorization: Bearer {CANARY} \"token\":\"{CANARY}\"")}
    });
    redact::object(&mut object);
    let text = object.to_string();
    assert!(!text.contains(CANARY), "{text}");
    for kept in [
        "\"autoscaling.keda.sh/paused\":\"true\"",
        "amqp://REDACTED@rabbit:5672/v",
        "\"queueName\":\"orders\"",
        "\"passwordFromEnv\":\"PASSWORD\"",
        "\"name\":\"rabbit\",\"key\":\"password\"",
        "https://hooks.example.com\"",
        "https://x/?sig=REDACTED&a=b",
        "REDACTED@tcp(mysql:3306)/shop",
        "dial REDACTED@pg:5432/shop: refused",
        "app --token REDACTED -v && x --client-password 'REDACTED' -q",
        "curl -H 'Cookie: REDACTED' x",
        "X-Tenant=a,Cookie=REDACTED",
    ] {
        assert!(text.contains(kept), "{kept} is not in {text}");
    }
}

#[test]
fn texts_without_secrets_are_kept() {
    for text in [
        "",
        "a=b;c",
        "http://prometheus:9090/api?query=up",
        "at 12:30: 5 pods",
        "sum(rate(x{a=\"b\"}[5m]))",
        "a://b://c",
        "ghcr.io/kedacore/keda:2.20.2@sha256:abc",
        "owner@example.com",
        "set --enable-cert-rotation on all replicas - or none",
    ] {
        assert_eq!(redact::text(text), text);
    }
}

#[test]
fn archive_is_read_by_tar() {
    let files = [("a.json", "x".repeat(600)), ("dir/b.txt", String::new())];
    let files = files.map(|(name, text)| BundleFile { name: name.to_owned(), text });
    let bytes = packed(&files, Timestamp::from_second(1_700_000_000).unwrap()).unwrap();
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut tar).unwrap();
    // A header and two blocks, a header without content, two empty blocks.
    assert_eq!(tar.len(), 512 * 6);
    let header = tar.get(..512).unwrap();
    assert!(header.starts_with(b"a.json\0"));
    assert_eq!(header.get(257..265).unwrap(), b"ustar\x0000");
    assert_eq!(header.get(124..136).unwrap(), b"00000001130\0");
    let stored = std::str::from_utf8(header.get(148..154).unwrap()).unwrap();
    let sum: u32 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
        .sum();
    assert_eq!(u32::from_str_radix(stored, 8).unwrap(), sum);
    assert!(tar.get(1536..).unwrap().starts_with(b"dir/b.txt\0"));
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_the_archive() {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::temp_dir().join(format!("plimsoll-bundle-{}.tar.gz", std::process::id()));
    crate::files::write_private(&path, b"x").unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(mode & 0o777, 0o600);
}
