use crate::test_support::{build, texts, trigger};

fn error(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> String {
    let mut given =
        trigger("mongodb", &[("dbName", "d"), ("collection", "c"), ("query", "{}"), ("queryValue", "1")]);
    given.metadata.extend(texts(metadata));
    given.auth = texts(auth);
    let prefix = "error parsing mongodb metadata: error parsing mongodb metadata: ";
    build(&given).err().map(|error| error.message.replace(prefix, "")).unwrap_or_default()
}

#[test]
fn connection_is_complete() {
    assert_eq!(error(&[], &[]), "no host given");
    assert_eq!(error(&[("host", "h")], &[]), "no port given");
    assert_eq!(error(&[("host", "h"), ("scheme", "mongodb+srv")], &[]), "no username given");
    assert_eq!(error(&[("host", "h"), ("port", "1"), ("username", "u")], &[]), "no password given");
    assert_eq!(error(&[], &[("connectionString", "mongodb://h")]), "");
}

#[test]
fn tls_needs_certificates() {
    let connection = ("connectionString", "mongodb://h");
    assert!(error(&[], &[connection, ("tls", "enable")]).starts_with("at least one of cert"));
    assert!(error(&[], &[connection, ("tls", "enable"), ("cert", "c")]).starts_with("both cert and key"));
    assert_eq!(error(&[], &[connection, ("tls", "enable"), ("ca", "c")]), "");
}
