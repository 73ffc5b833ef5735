use super::Parameters;
use super::glob::{check, compile};
use super::query::{BlobFilter, page};
use crate::azure_storage::{StorageConnection, StorageService};
use crate::test_support::{ServerAction, read, read_answered, server, texts, trigger};

/// As KEDA 2.20 and 2.21 do.
const V2_20: bool = false;
const V2_21: bool = true;

#[test]
fn brackets_and_braces_are_closed() {
    for good in ["", "*.json", "a/**/[a-z]?.{txt,md}", "\\["] {
        assert_eq!((check(good, V2_20), check(good, V2_21)), (Ok(()), Ok(())), "{good}");
    }
    assert_eq!(check("[", V2_20).unwrap_err().to_string(), "unexpected end of input");
    assert_eq!(
        check("[", V2_21).unwrap_err().to_string(),
        "glob: syntax error at 1: unexpected end of input"
    );
    for empty in ["{}[]<>|", "ab[]", "a[!]"] {
        assert_eq!(check(empty, V2_20).unwrap_err().to_string(), "could not parse range", "{empty}");
        let error = check(empty, V2_21).unwrap_err().to_string();
        assert_eq!(error, "glob: syntax error at 4: could not parse range", "{empty}");
    }
    assert_eq!(check("{a,b", V2_20), Ok(()));
    assert_eq!(check("{a,b", V2_21).unwrap_err().to_string(), "glob: syntax error at 4: unclosed `{`");
}

#[test]
fn patterns_match_whole_names() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("*.json", &["a.json", "a/b.json", ".json"], &["a.json.gz", "json"]),
        ("/folder/*", &["folder/a", "folder/a/b"], &["/folder/a", "folder"]),
        ("a/**/x", &["a/b/x", "a/b/c/x"], &["a/x"]),
        ("?.txt", &["a.txt", "/.txt", "ä.txt"], &["ab.txt"]),
        ("[a-c]x", &["ax", "cx"], &["dx", "-x"]),
        ("[!a-c]x", &["dx"], &["ax"]),
        ("[a^]x", &["ax", "^x"], &["bx"]),
        ("{a,b*}.txt", &["a.txt", "bcd.txt"], &["c.txt", "a,b.txt"]),
        ("a,b", &["a,b"], &["a", "b"]),
        (r"\*a", &["*a"], &["xa"]),
        ("a.b(c)+$", &["a.b(c)+$"], &["axb(c)+$"]),
        ("{a,b", &["a", "b"], &["c"]),
    ];
    for (pattern, matching, others) in cases {
        let compiled = compile(pattern).unwrap();
        assert!(matching.iter().all(|name| compiled.is_match(name)), "{pattern}");
        assert!(!others.iter().any(|name| compiled.is_match(name)), "{pattern}");
    }
    for bad in ["[]", "[z-a]", &"{".repeat(1_000)] {
        assert!(compile(bad).unwrap_err().message.starts_with("globPattern cannot be used"));
    }
    for long in ["[a-z]".repeat(100_000), "?".repeat(1_025)] {
        let error = compile(&long).unwrap_err().message;
        assert_eq!(error, "globPattern has more than 1024 bytes, the maximum of a pattern");
    }
    assert!(compile(&"a".repeat(1_024)).is_ok());
}

fn filter(metadata: &[(&str, &str)]) -> BlobFilter {
    let mut given = trigger("azure-blob", &[("blobContainerName", "c")]);
    given.metadata.extend(texts(metadata));
    Parameters::read(&given).unwrap().filter()
}

#[test]
fn requests() {
    let connection =
        StorageConnection::parse("AccountName=acc;AccountKey=a2V5", StorageService::Blob).unwrap();
    let url = |filter: &BlobFilter, marker| filter.page(&connection, marker, "").unwrap().url;
    let base = "https://acc.blob.core.windows.net/c?comp=list";
    assert_eq!(url(&filter(&[]), ""), format!("{base}&delimiter=%2F&maxresults=2000&restype=container"));
    let folder = filter(&[("blobPrefix", "a b")]);
    assert_eq!(
        url(&folder, "m+1"),
        format!("{base}&delimiter=%2F&marker=m%2B1&maxresults=2000&prefix=a%20b%2F&restype=container")
    );
    let recursive = filter(&[("blobPrefix", "a"), ("recursive", "true")]);
    assert_eq!(url(&recursive, ""), format!("{base}&maxresults=2000&prefix=a&restype=container"));
    // The pattern is applied to all levels below the folder.
    let pattern = filter(&[("blobPrefix", "a"), ("globPattern", "*.txt")]);
    assert_eq!(url(&pattern, ""), format!("{base}&maxresults=2000&prefix=a%2F&restype=container"));
}

/// Computed over the string that the documentation of Azure Storage describes.
#[test]
fn signatures() {
    let connection =
        StorageConnection::parse("AccountName=acc;AccountKey=a2V5", StorageService::Blob).unwrap();
    let signed = filter(&[]).page(&connection, "", "Fri, 26 Jun 2015 23:39:12 GMT").unwrap();
    assert_eq!(signed.authorization.unwrap(), "SharedKey acc:rKvzGtmP8nQpQYRz24jik87Z0fLyR/QKKijQyolepuA=");
}

fn list(names: &[&str], next: &str) -> String {
    let blobs: Vec<String> = names
        .iter()
        .map(|name| {
            format!("<Blob><Name>{name}</Name><Properties><BlobType>BlockBlob</BlobType></Properties></Blob>")
        })
        .collect();
    let folder = "<BlobPrefix><Name>folder/</Name></BlobPrefix>";
    format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"x\" ContainerName=\"c\">\
         <Blobs>{}{folder}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>",
        blobs.concat()
    )
}

#[test]
fn lists() {
    let read = |xml: &str, pattern: Option<&str>| {
        let pattern = pattern.map(|pattern| compile(pattern).unwrap());
        page(200, xml.as_bytes(), pattern.as_ref()).map(|page| (page.count, page.next))
    };
    let three = list(&["a.txt", "b&amp;c.txt", "d.json"], "m&amp;1");
    assert_eq!(read(&three, None), Ok((3, "m&1".to_owned())));
    assert_eq!(read(&three, Some("*.txt")), Ok((2, "m&1".to_owned())));
    assert_eq!(read(&three, Some("b&c.txt")), Ok((1, "m&1".to_owned())));
    let empty = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
    assert_eq!(read(empty, None), Ok((0, String::new())));
    let encoded = r#"<EnumerationResults><Blobs><Blob><Name Encoded="true">a%FFFF+b</Name></Blob></Blobs></EnumerationResults>"#;
    assert!(read(encoded, Some("*")).is_err());
    let encoded = encoded.replace("%FFFF", "%EF%BF%BF");
    assert_eq!(read(&encoded, Some("a\u{ffff}+b")), Ok((1, String::new())));
    let nameless = "<EnumerationResults><Blobs><Blob></Blob></Blobs></EnumerationResults>";
    assert!(read(nameless, Some("*")).unwrap_err().message.contains("without a name"));
    for bad in ["", "{}", "<html></html>", "<EnumerationResults><Blobs><Blob><Name>a</Name></Blob>"] {
        assert!(read(bad, None).unwrap_err().message.contains("not a list of blobs"), "{bad}");
    }
    assert!(page(200, &[b'<', 0xff], None).is_err());
    let missing = b"<?xml version=\"1.0\"?><Error><Code>ContainerNotFound</Code></Error>";
    let error = page(404, missing, None).unwrap_err().message;
    assert_eq!(error, "the blob storage returned 404: ContainerNotFound");
}

#[tokio::test]
async fn all_pages_are_read() {
    let url = server(|head| {
        assert!(head.contains("authorization: SharedKey acc:") && head.contains("x-ms-version: "), "{head}");
        assert!(head.starts_with("GET /acc/c?comp=list&delimiter=%2F&"), "{head}");
        let is_second = head.contains("&marker=next&");
        ServerAction::Answer(200, if is_second { list(&["c"], "") } else { list(&["a", "b"], "next") })
    })
    .await;
    let mut trigger = trigger("azure-blob", &[("blobContainerName", "c"), ("activationBlobCount", "2")]);
    trigger.auth =
        texts(&[("connection", &format!("AccountName=acc;AccountKey=a2V5;BlobEndpoint={url}/acc"))]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("3".to_owned(), true));
}

#[tokio::test]
async fn pod_identity_names_what_is_missing() {
    let mut trigger = trigger("azure-blob", &[("blobContainerName", "c"), ("accountName", "acc")]);
    trigger.identity.provider = "azure-workload".into();
    let nowhere = |call: &crate::web::HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let error = read_answered(&trigger, nowhere).await.unwrap_err().message;
    assert!(error.contains("the operator's pod has no federated token"), "{error}");
    // A token of the operator is sent to Azure's hosts only.
    trigger.metadata.extend(texts(&[("cloud", "Private"), ("endpointSuffix", "evil.example")]));
    let error = read_answered(&trigger, nowhere).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}
