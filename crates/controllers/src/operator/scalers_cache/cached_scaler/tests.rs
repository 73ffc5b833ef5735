use super::*;

/// Futures are moved several times before they are polled; when this one was as large as the largest scaler, that took a third of a poll.
#[test]
fn query_future_is_small() {
    fn size<A, B, C, D, E, F>(_: impl FnOnce(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(CachedScaler::read);
    assert!(size < 2048, "{size}");
}

/// When the functions around the query kept it several times, moving it took a seventh of a poll.
#[test]
fn sample_future_does_not_contain_the_query() {
    fn size<A, B, C, D, E, G, F>(_: impl FnOnce(A, B, C, D, E, G) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(CachedScaler::sample);
    assert!(size < 1024, "{size}");
}

#[test]
fn timeout_of_a_trigger_extends_the_deadline_up_to_a_bound() {
    let deadline = Duration::from_secs(10);
    for (timeout, expected) in
        [("", 10), ("500", 10), ("20000", 21), ("30s", 31), ("1h", 120), ("soon", 10), ("-5s", 10)]
    {
        let mut trigger = Trigger::default();
        if !timeout.is_empty() {
            trigger.metadata.insert("timeout".to_owned(), timeout.to_owned());
        }
        let scaler = CachedScaler::new(0, &trigger, None);
        assert_eq!(scaler.query_deadline(deadline), Duration::from_secs(expected), "{timeout}");
    }
}

#[test]
fn ignore_null_values_is_exported_as_it_is_parsed() {
    for (written, expected) in [(None, true), (Some("T"), true), (Some("1"), true), (Some("false"), false)] {
        let mut trigger = Trigger::default();
        if let Some(written) = written {
            trigger.metadata.insert("ignoreNullValues".to_owned(), written.to_owned());
        }
        assert_eq!(CachedScaler::new(0, &trigger, None).ignores_null_values(), expected, "{written:?}");
    }
}
