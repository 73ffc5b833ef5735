//! Responses of the HTTP servers of every scaler type. The result is values, or a short error that contains no password.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::provider::Compat;
use http::{HeaderMap, StatusCode};
use scalers::backends::Backends;
use scalers::table::SCALER_TYPES;
use scalers::table::sample::{Protocol, SECRET, Sample};
use scalers::web::{HttpSettings, SharedHttpClient};
use scalers::{Owner, Trigger, table};
use sources::http::HttpResponse;
use tokio::runtime::{Builder, Runtime};

/// The number of requests of one read that get the response of the input; later ones get status 429.
const MAX_REQUESTS: usize = 200;

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// The first byte of the input selects the scaler type, the second the status, and the rest is the body of all responses.
pub fn run(data: &[u8]) {
    let [which, status, body @ ..] = data else { return };
    let samples: Vec<(&str, &Sample)> = SCALER_TYPES
        .iter()
        .flat_map(|scaler| scaler.samples.iter().map(|sample| (scaler.name, sample)))
        .filter(|(_, sample)| matches!(sample.protocol, Protocol::Http | Protocol::Https | Protocol::Fixed))
        .collect();
    let Some((name, sample)) = samples.get(usize::from(*which) % samples.len().max(1)) else { return };
    let status = match status % 8 {
        0 => StatusCode::INTERNAL_SERVER_ERROR,
        1 => StatusCode::NOT_FOUND,
        2 => StatusCode::UNAUTHORIZED,
        _ => StatusCode::OK,
    };
    let response = HttpResponse { status, headers: HeaderMap::new(), body: body.to_vec().into() };
    let mut backends = Backends::without_cluster(HttpSettings::default(), Compat::Better);
    let requests = AtomicUsize::new(0);
    backends.web = Arc::new(SharedHttpClient::answered_by(move |_| {
        // A list may lead to a request for each of its entries. A deadline limits them in production; these responses take no time.
        let is_over_limit = requests.fetch_add(1, Ordering::Relaxed) > MAX_REQUESTS;
        let status = if is_over_limit { StatusCode::TOO_MANY_REQUESTS } else { response.status };
        HttpResponse { status, ..response.clone() }
    }));
    let trigger = trigger(name, sample);
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
        });
        runtime.block_on(async {
            let scaler = table::build(&trigger, &backends).expect("a sample can be built");
            let metric = match scaler.specs().await {
                Ok(specs) => {
                    specs.iter().find_map(|spec| spec.external.as_ref()).map(|one| one.metric.name.clone())
                }
                Err(_) => None,
            };
            match scaler.read(&metric.unwrap_or_default()).await {
                Ok(reading) => assert!(reading.values.len() < 10_000),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.len() < 2_000 && !text.trim().is_empty(), "{name}: {text:?}");
                    assert!(!text.contains(SECRET), "{name}: {text}");
                }
            }
        });
    });
}

fn trigger(name: &str, sample: &Sample) -> Trigger {
    let texts = |pairs: &[(&str, &str)]| {
        let address = |text: &str| match text.starts_with('{') && text != "{}" && text != "{port}" {
            true => text.to_owned(),
            false => text.replace("{port}", "1").replace("{}", "127.0.0.1:1"),
        };
        pairs.iter().map(|(key, value)| ((*key).to_owned(), address(value))).collect()
    };
    Trigger {
        owner: Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() },
        type_: name.to_owned(),
        metadata: texts(sample.metadata),
        auth: texts(sample.auth),
        http_timeout: Duration::from_secs(1),
        ..Trigger::default()
    }
}
