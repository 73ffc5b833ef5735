use std::path::PathBuf;

use controllers::hpa::records::{Recording, RecordingLimits};

use super::*;
use crate::commands::console::{object as page, passes, path::ObjectPath};
use crate::live::objects::ObjectFilter;
use crate::live::sample::{at, record_of};
use crate::live::{AutoscalerName, Scope};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-console-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Records passes as the controller does.
fn record(folder: &Folder, passes: &[DecisionRecord]) {
    let recording = Recording::start(&folder.0, RecordingLimits::default()).unwrap();
    let records = Records::default().with_recording(recording);
    for pass in passes {
        let key = key_of(&pass.metadata).unwrap();
        records.add(&key, pass.mode, pass.period, &Arc::new(pass.spec.clone()), &pass.decision);
    }
}

fn recorded(name: &str) -> Folder {
    let folder = Folder::new(name);
    record(
        &folder,
        &[
            record_of("web", "2026-01-05T09:14:45Z", 1, &[610]),
            record_of("web", "2026-01-05T09:15:00Z", 4, &[100; 4]),
            record_of("web", "2026-01-05T09:15:15Z", 4, &[]),
            record_of("api", "2026-01-05T09:15:20Z", 4, &[100; 4]),
        ],
    );
    folder
}

#[tokio::test]
async fn recording_answers_as_a_cluster_does() {
    let folder = recorded("whole");
    let client = open(&folder.0, None).unwrap();
    let summary = client.recording().unwrap();
    assert_eq!((summary.passes, summary.autoscalers, summary.from), (4, 2, at("2026-01-05T09:14:45Z")));
    assert_eq!(client.now(), at("2026-01-05T09:15:20Z"));
    let filter = |scope| ObjectFilter { kinds: &AutoscalerKind::ALL, scope, labels: None, cached: true };
    let all = client.objects(filter(Scope::All)).await.unwrap();
    assert_eq!(
        all.iter().map(|object| object.named().to_string()).collect::<Vec<_>>(),
        ["hpa/api", "hpa/web"]
    );
    assert!(client.objects(filter(Scope::Namespace("other"))).await.unwrap().is_empty());
    let (latest, unavailable) = client.latest_about(&all, Scope::All).await;
    assert_eq!((latest.len(), unavailable), (2, None));
    let web = AutoscalerName { kind: AutoscalerKind::Hpa, name: "web".into() };
    let records = client.decisions_of("shop", &web).await.unwrap();
    assert_eq!((records.records.len(), records.undecodable), (3, None));
    let points = passes::read(&client, "shop", &web, None, client.now()).await.unwrap();
    assert_eq!((points.points.len(), &points.points[0]["current"]), (3, &json!(4)));
    let counts = passes::counts(&client, None, client.now()).await;
    assert_eq!(counts["shop/hpa/web"].iter().map(|step| step.1).collect::<Vec<_>>(), [4]);
    let events = client.events("shop", &web).await.unwrap();
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("SuccessfulRescale")), "{events:?}");
    assert!(client.events("other", &web).await.unwrap().is_empty());
    let segments = ["shop".to_owned(), "hpa".to_owned(), "web".to_owned()];
    let detail = page::detail(&client, &ObjectPath::parse(&segments).unwrap(), client.now()).await.unwrap();
    assert_eq!(detail["row"]["state"], "failing");
    assert!(detail["yaml"].as_str().unwrap().starts_with("# Rebuilt from recorded decisions"), "{detail}");
    let missing = client.get::<Value>("/api/v1/pods").await.unwrap_err();
    assert_eq!(missing.code(), Some(404));
}

#[tokio::test]
async fn earlier_time_is_the_present_of_a_recording() {
    let folder = recorded("earlier");
    let client = open(&folder.0, Some(at("2026-01-05T09:15:05Z"))).unwrap();
    assert_eq!((client.now(), client.recording().unwrap().passes), (at("2026-01-05T09:15:00Z"), 2));
    let early = open(&folder.0, Some(at("2026-01-05T09:00:00Z"))).err().unwrap().to_string();
    assert!(early.contains("begins at 2026-01-05T09:14:45Z"), "{early}");
    let nothing = open(&folder.0.join("nothing"), None).err().unwrap().to_string();
    assert!(nothing.contains("failed to read") && nothing.contains("--record FOLDER"), "{nothing}");
}
