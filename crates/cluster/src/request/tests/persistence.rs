//! What is tried again, for how long, and what is too much.

use std::io::ErrorKind;

use super::*;

fn put(deadline: Duration) -> Request {
    Request { method: Method::PUT, ..Request::get("/x", "deployments", deadline).named("web") }
}

#[tokio::test(start_paused = true)]
async fn a_response_with_retry_after_is_retried_ten_times() {
    for (code, request) in [(429, pods()), (503, pods()), (429, put(LONG))] {
        let fake = Fake::always(Reply::new(code, TEXT, "later").with("retry-after", "1"));
        let start = Instant::now();
        let error = send(&fake.client(), request).await.unwrap_err();
        assert_eq!((error.code, error.retry_after), (Some(code), Some(Duration::from_secs(1))));
        assert_eq!(fake.lines().len(), 11);
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_end_at_the_deadline() {
    let fake = Fake::always(Reply::new(429, TEXT, "later").with("retry-after", "2"));
    let start = Instant::now();
    let error = send(&fake.client(), put(Duration::from_secs(5))).await.unwrap_err();
    assert_eq!(error.code, Some(429));
    assert_eq!((fake.lines().len(), start.elapsed().as_secs()), (3, 4));
}

#[tokio::test(start_paused = true)]
async fn a_response_without_retry_after_is_not_retried() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    for reply in [
        Reply::new(503, TEXT, "x"),
        Reply::new(429, TEXT, "x"),
        Reply::new(503, TEXT, "x").with("retry-after", date),
        Reply::new(404, TEXT, "x").with("retry-after", "1"),
    ] {
        let fake = Fake::always(reply);
        send(&fake.client(), pods()).await.unwrap_err();
        assert_eq!(fake.lines().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_reads_are_retried_after_a_closed_connection() {
    let fake = Fake::always(Reply { broken: Some(ErrorKind::ConnectionReset), ..Reply::default() });
    let error = send(&fake.client(), pods()).await.unwrap_err();
    assert_eq!(
        error.message,
        "Get \"/apis/metrics.k8s.io/v1beta1/namespaces/x/pods\": connection reset by peer"
    );
    assert_eq!(fake.lines().len(), 11);
    let error = send(&fake.client(), put(LONG)).await.unwrap_err();
    assert_eq!((error.message.as_str(), error.code), ("Put \"/x\": connection reset by peer", None));
    assert_eq!(fake.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_hides_earlier_failures() {
    let times = std::sync::atomic::AtomicU32::new(0);
    let fake = Fake::new(move |_| match times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Reply { broken: Some(ErrorKind::BrokenPipe), ..Reply::default() },
        1 => Reply::new(429, TEXT, "later").with("retry-after", "1"),
        _ => Reply::new(200, JSON, "{}"),
    });
    assert_eq!(&send(&fake.client(), pods()).await.unwrap()[..], b"{}");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_the_body_too() {
    let slow = Reply::new(200, JSON, "{}").after(Duration::from_secs(20));
    let request = Request { deadline: Duration::from_secs(10), ..pods() };
    let error = send(&Fake::always(slow).client(), request).await.unwrap_err();
    assert_eq!(
        error.message,
        "Get \"/apis/metrics.k8s.io/v1beta1/namespaces/x/pods\": context deadline exceeded"
    );
}

#[tokio::test]
async fn an_incomplete_body_is_an_error() {
    let reply = Reply { broken: Some(ErrorKind::UnexpectedEof), ..Reply::new(200, JSON, "{\"kind\":") };
    let error = send(&Fake::always(reply).client(), pods()).await.unwrap_err();
    assert_eq!(
        error.message,
        "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
    );
}

#[tokio::test]
async fn bodies_are_joined_and_bounded() {
    let pieces = ["{\"a\"", ":1", "}"].map(|piece| Bytes::from_static(piece.as_bytes()));
    let reply = Reply { body: pieces.to_vec(), ..Reply::new(200, JSON, "") };
    assert_eq!(&send(&Fake::always(reply).client(), pods()).await.unwrap()[..], b"{\"a\":1}");
    let mega = Bytes::from(vec![b' '; 1 << 20]);
    for (count, fits) in [(64, true), (65, false)] {
        let reply = Reply { body: vec![mega.clone(); count], ..Reply::new(200, JSON, "") };
        let answer = send(&Fake::always(reply).client(), pods()).await;
        assert_eq!(answer.is_ok(), fits);
        let _ = answer.map_err(|e| assert_eq!(e.message, "the answer is larger than 64 MiB"));
    }
}

#[tokio::test(start_paused = true)]
async fn huge_durations_are_cut() {
    let fake = Fake::always(Reply::new(429, TEXT, "x").with("retry-after", &u64::MAX.to_string()));
    let error = send(&fake.client(), put(Duration::MAX)).await.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_hours(1)));
    let fake = Fake::always(Reply::new(429, TEXT, "x").with("retry-after", "0"));
    send(&fake.client(), put(Duration::MAX)).await.unwrap_err();
    assert_eq!(fake.lines().len(), 11);
    let never = Fake::always(Reply::new(200, JSON, "{}").after(Duration::from_hours(2)));
    send(&never.client(), put(Duration::MAX)).await.unwrap_err();
    send(&never.client(), put(Duration::ZERO)).await.unwrap_err();
}
