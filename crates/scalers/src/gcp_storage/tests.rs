use super::Parameters;
use super::query::{ObjectPage, page, url};
use crate::Trigger;
use crate::test_support::{google_metadata, read_answered, texts, trigger};
use crate::web::HttpCall;

fn bucket(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger("gcp-storage", &[("bucketName", "b")]);
    given.metadata.extend(texts(changed));
    given.identity.provider = "gcp".into();
    given
}

const BASE: &str =
    "https://storage.googleapis.com/storage/v1/b/b/o?fields=items%28size%29%2CnextPageToken&maxResults=1000";

#[test]
fn url_has_bucket_prefix_delimiter_and_page() {
    let url = |changed: &[(&str, &str)], token| url(&Parameters::read(&bucket(changed)).unwrap(), token);
    assert_eq!(url(&[], ""), BASE);
    let changed = [("blobPrefix", "a b/"), ("blobDelimiter", "/")];
    assert_eq!(url(&changed, "t=="), format!("{BASE}&prefix=a+b%2F&delimiter=%2F&pageToken=t%3D%3D"));
    let evil = url(&[("bucketName", "../x?y")], "");
    assert!(evil.starts_with("https://storage.googleapis.com/storage/v1/b/..%2Fx%3Fy/o?"), "{evil}");
}

#[test]
fn pages_are_decoded_or_refused() {
    let read = |body: &str| page(200, body.as_bytes()).map_err(|error| error.message);
    let found = |count, next: &str| Ok(ObjectPage { count, next: next.to_owned() });
    // Folders are empty objects.
    let three = r#"{"items": [{"size": "10"}, {"size": "0"}, {"size": "7"}], "nextPageToken": "n"}"#;
    assert_eq!(read(three), found(2, "n"));
    assert_eq!(read("{}"), found(0, ""));
    for (bad, why) in [
        (r#"{"items": [{}]}"#, "with nothing as size"),
        (r#"{"items": [{"size": "x"}]}"#, "with a string as size"),
        (r#"{"items": {}}"#, "has an object as items"),
        ("[]", "is not an object"),
        ("<html>", "not JSON"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = page(403, br#"{"error": {"message": "denied"}}"#).unwrap_err().message;
    assert_eq!(error, "Cloud Storage returned 403: denied");
}

fn list(count: usize, next: &str) -> String {
    format!(r#"{{"items": [{}], "nextPageToken": "{next}"}}"#, vec![r#"{"size": "1"}"#; count].join(", "))
}

#[tokio::test]
async fn all_pages_are_read_with_a_token() {
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert!(call.url.starts_with(BASE), "{}", call.url);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
            (200, if call.url.ends_with("&pageToken=n") { list(3, "") } else { list(2, "n") })
        })
    };
    let reading = read_answered(&bucket(&[("activationTargetObjectCount", "5")]), reply).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("5".to_owned(), false));
    let reading = read_answered(&bucket(&[("maxBucketItemsToScan", "4")]), reply).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "4");
    // After the maximum no page is requested.
    let once = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert_eq!(call.url, BASE);
            (200, list(2, "n"))
        })
    };
    let reading = read_answered(&bucket(&[("maxBucketItemsToScan", "2")]), once).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "2");
}

#[tokio::test]
async fn missing_buckets_and_endless_lists_are_errors() {
    let missing = |call: &HttpCall| {
        let body = r#"{"error": {"code": 404, "message": "The specified bucket does not exist."}}"#;
        google_metadata(call).unwrap_or((404, body.to_owned()))
    };
    let error = read_answered(&bucket(&[]), missing).await.unwrap_err().message;
    assert_eq!(error, "Cloud Storage returned 404: The specified bucket does not exist.");
    let folders = |call: &HttpCall| {
        let body = r#"{"items": [{"size": "0"}], "nextPageToken": "n"}"#;
        google_metadata(call).unwrap_or((200, body.to_owned()))
    };
    let error = read_answered(&bucket(&[]), folders).await.unwrap_err().message;
    assert!(error.contains("more than 500 pages"), "{error}");
}
