//! The classes of errors, because KEDA and our scalers have different texts for the same error.

/// The classes, each with words of which one must be in the text. The first class that matches is used.
const CLASSES: [(&str, &[&str]); 4] = [
    ("certificate", &["x509", "certificate", "unknown authority", "unknown ca", "unknownca"]),
    (
        "unreachable",
        &[
            "connection refused",
            "no such host",
            "i/o timeout",
            "timed out",
            "deadline exceeded",
            "eof",
            "connection reset",
            "no answer within",
            "out of brokers",
            "closed the connection",
            "broken pipe",
            "server selection",
            "invalid connection",
            "no connections were made",
        ],
    ),
    (
        "refused",
        &[
            "401",
            "403",
            "unauthorized",
            "authentication",
            "access denied",
            "accessdenied",
            "forbidden",
            "wrongpass",
            "noauth",
            "signature",
            "access_refused",
            "credential",
            "invalid_grant",
            "not authorized",
            "authorizationfailure",
            "password was refused",
            "wrong password",
            "unknown user",
            "password are incorrect",
        ],
    ),
    (
        "missing",
        &[
            "404",
            "not found",
            "notfound",
            "not exist",
            "doesn't exist",
            "no such",
            "nonexistent",
            "unknown topic",
            "unknown_topic",
            "unconfigured table",
            "nogroup",
            "unknown database",
        ],
    ),
];

/// The class of an error. Ports are removed first, because they may look like status codes.
pub(super) fn class(error: &str, ports: &[u16]) -> &'static str {
    // These words occur in errors of other classes: `EOF` of a text is not the end of a connection, and gRPC calls each TLS handshake authentication.
    let mut text =
        error.to_lowercase().replace("eof while parsing", "").replace("authentication handshake failed", "");
    for port in ports {
        text = text.replace(&port.to_string(), "port");
    }
    let found = CLASSES.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    found.map_or("other", |(name, _)| *name)
}

#[test]
fn errors_have_classes() {
    for (text, expected) in [
        ("dial tcp 127.0.0.1:24040: connect: connection refused", "unreachable"),
        ("redis 127.0.0.1:24040: ERR DB index is out of range", "other"),
        ("the server answered 404", "missing"),
        ("tls: failed to verify certificate: x509: certificate signed by unknown authority", "certificate"),
        ("WRONGPASS invalid username-password pair", "refused"),
    ] {
        assert_eq!(class(text, &[24040]), expected, "{text}");
    }
}
