mod clouds;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cache::CredentialCache;
use super::*;
use crate::web::HttpSettings;

/// A client at a fixed time, which shares no responses.
fn web() -> SharedHttpClient {
    let clock = runtime::Clock::new(|| "2026-01-01T00:00:00Z".parse().unwrap());
    SharedHttpClient::new(HttpSettings { fresh: Duration::ZERO, clock, ..HttpSettings::default() })
}

/// A file with this text, which is removed at the end.
struct TempFile(std::path::PathBuf);

impl TempFile {
    fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-identity-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn identities(variables: &[(&str, &str)]) -> Identities {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let find = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    Identities::new(IdentityEnvironment::of(find))
}

/// A source of numbered credentials that are valid for an hour, and can be told to fail.
#[derive(Default)]
struct FakeCredentialSource {
    requested: AtomicUsize,
    fails: std::sync::atomic::AtomicBool,
}

impl FakeCredentialSource {
    fn fetch(&self) -> Result<(usize, Duration), ScalerError> {
        let number = self.requested.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fails.load(Ordering::Relaxed) {
            bail!("refused");
        }
        Ok((number, Duration::from_hours(1)))
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_are_shared_and_renewed_ahead_of_time() {
    let cache = Arc::new(CredentialCache::<&str, usize>::default());
    let source = Arc::new(FakeCredentialSource::default());
    let get = |key: &'static str| {
        let (cache, source) = (Arc::clone(&cache), Arc::clone(&source));
        async move { cache.get(&key, || std::future::ready(source.fetch())).await }
    };
    let all = futures::future::join_all((0..100).map(|_| get("a"))).await;
    assert!(all.into_iter().all(|value| value == Ok(1)));
    assert_eq!(get("b").await, Ok(2));
    tokio::time::advance(Duration::from_mins(54)).await;
    assert_eq!(get("a").await, Ok(1));
    tokio::time::advance(Duration::from_mins(2)).await;
    assert_eq!(get("a").await, Ok(3));
    // Old credentials are used until their end if new ones are refused, and no new ones are requested at once.
    source.fails.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_mins(56)).await;
    assert_eq!(get("a").await, Ok(3));
    assert_eq!(get("a").await, Ok(3));
    assert_eq!(source.requested.load(Ordering::Relaxed), 4);
    tokio::time::advance(Duration::from_mins(5)).await;
    assert_eq!(get("a").await.unwrap_err().message, "refused");
    assert_eq!(get("a").await.unwrap_err().message, "refused");
    assert_eq!(source.requested.load(Ordering::Relaxed), 5);
    source.fails.store(false, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(get("a").await, Ok(6));
}

#[tokio::test]
async fn token_files_are_read_anew_and_bounded() {
    let file = TempFile::new("one\n");
    assert_eq!(token_file(&file.path()).await.unwrap().reveal(), "one");
    std::fs::write(&file.0, "x".repeat(1 << 20)).unwrap();
    assert_eq!(token_file(&file.path()).await.unwrap().reveal().len() as u64, MAX_TOKEN_FILE_BYTES);
    assert!(token_file("/nowhere/token").await.is_err());
}
