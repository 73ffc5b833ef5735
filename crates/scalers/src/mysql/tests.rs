use crate::test_support::{build, texts, trigger};

async fn name(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> String {
    let mut given = trigger("mysql", metadata);
    given.auth = texts(auth);
    let specs = build(&given).unwrap().specs().await.unwrap();
    specs[0].external.as_ref().unwrap().metric.name.clone()
}

#[tokio::test]
async fn metric_has_the_name_of_the_database() {
    let query = [("query", "SELECT 1"), ("queryValue", "4.4")];
    assert_eq!(name(&[query[0], query[1], ("dbName", "db.x")], &[]).await, "s0-mysql-db-x");
    let connection = [("connectionString", "u:p@tcp(h:3306)/stats?tls=true")];
    assert_eq!(name(&query, &connection).await, "s0-mysql-stats?tls=true");
    assert_eq!(name(&query, &[("connectionString", "nodb")]).await, "s0-mysql-nodb");
}
