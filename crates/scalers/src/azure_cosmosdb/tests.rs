use super::*;
use crate::test_support::{build, texts, trigger};

const METADATA: [(&str, &str); 5] = [
    ("databaseId", "d"),
    ("containerId", "c"),
    ("leaseDatabaseId", "d"),
    ("leaseContainerId", "l"),
    ("processorName", "p"),
];

fn error(auth: &[(&str, &str)]) -> String {
    let mut given = trigger("azure-cosmosdb", &METADATA);
    given.auth = texts(auth);
    build(&given).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn connection_strings_have_endpoint_and_key() {
    assert!(is_account("AccountEndpoint=https://a;AccountKey=a2V5;"));
    assert!(!is_account("AccountEndpoint=https://a") && !is_account("bad") && !is_account(""));
}

#[test]
fn both_accounts_need_credentials() {
    assert_eq!(error(&[("endpoint", "https://a"), ("cosmosDBKey", "k")]), "");
    let lease = [("endpoint", "https://a"), ("cosmosDBKey", "k"), ("leaseEndpoint", "https://l")];
    assert!(error(&lease).contains("are required for both data and lease accounts"));
    assert!(error(&[("endpoint", "https://a"), ("tenantId", "t")]).contains("must all be provided"));
    assert!(error(&[]).ends_with("connection string or endpoint is required for the data account"));
}
