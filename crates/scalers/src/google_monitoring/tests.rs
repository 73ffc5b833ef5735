use super::query::{
    Alignment, MonitoringPage, SeriesFilter, is_project, listed, queried, query_body, query_url,
};

fn filter(alignment: Option<&Alignment>) -> SeriesFilter<'_> {
    SeriesFilter { project: "p", filter: r#"metric.type="m""#, minutes: 0, alignment }
}

#[test]
fn urls_of_filters() {
    let now = "2026-01-01T00:02:00Z".parse().unwrap();
    let base = "https://monitoring.googleapis.com/v3/projects/p/timeSeries?filter=metric.type%3D%22m%22+AND+\
                resource.labels.project_id%3D%22p%22&pageSize=100";
    let interval = "&interval.startTime=2026-01-01T00%3A00%3A00Z&interval.endTime=2026-01-01T00%3A02%3A00Z";
    assert_eq!(filter(None).url(now, "").unwrap(), format!("{base}{interval}"));
    let alignment = Alignment { period: 60, aligner: "Mean".into(), reducer: String::new() };
    let aligned = "&aggregation.alignmentPeriod=60s&aggregation.perSeriesAligner=ALIGN_MEAN\
                   &aggregation.crossSeriesReducer=REDUCE_NONE&pageToken=a%2Fb";
    assert_eq!(filter(Some(&alignment)).url(now, "a/b").unwrap(), format!("{base}{aligned}{interval}"));
    // However far back, the time is one that exists.
    let far = SeriesFilter { minutes: i64::MAX, ..filter(None) }.url(now, "").unwrap();
    assert!(far.contains("interval.startTime=1970-01-01T00%3A00%3A00Z&"), "{far}");
    assert_ne!(filter(None).same_as(""), SeriesFilter { minutes: 5, ..filter(None) }.same_as(""));
    let evil = SeriesFilter { project: "p/../q", ..filter(None) };
    assert!(evil.url(now, "").unwrap_err().message.contains("is not the id of a project"));
}

#[test]
fn only_project_ids_are_queried() {
    assert!(is_project("shop-1") && is_project("example.com:shop"));
    for bad in ["", "a/b", "a'b", "a b", "ä"] {
        assert!(!is_project(bad) && query_url(bad).is_err(), "{bad}");
    }
    assert_eq!(query_url("p").unwrap(), "https://monitoring.googleapis.com/v3/projects/p/timeSeries:query");
    assert_eq!(query_body("q", ""), r#"{"query":"q","pageSize":1}"#);
    assert_eq!(query_body("q", "t"), r#"{"query":"q","pageSize":1,"pageToken":"t"}"#);
}

#[test]
fn points_of_filters() {
    let read = |body: &str| listed(200, body.as_bytes()).map_err(|error| error.message);
    let newest = r#"{"timeSeries": [{"points": [{"value": {"int64Value": "7"}}, {"value": {"int64Value": "9"}}]},
                                   {"points": [{"value": {"int64Value": "1"}}]}]}"#;
    assert_eq!(read(newest), Ok(MonitoringPage::Value(7.0)));
    assert_eq!(
        read(r#"{"timeSeries": [{"points": [{"value": {"doubleValue": 0.5}}]}]}"#),
        Ok(MonitoringPage::Value(0.5))
    );
    for nothing in
        ["{}", r#"{"timeSeries": []}"#, r#"{"timeSeries": [{"points": []}], "nextPageToken": "t"}"#]
    {
        assert_eq!(read(nothing), Ok(MonitoringPage::Nothing), "{nothing}");
    }
    assert_eq!(read(r#"{"nextPageToken": "t"}"#), Ok(MonitoringPage::Next("t".to_owned())));
    for (bad, why) in [
        (r#"{"timeSeries": {}}"#, "no list in timeSeries"),
        (r#"{"timeSeries": [{"points": [{"value": {"doubleValue": "NaN"}}]}]}"#, "is not a number"),
        (r#"{"timeSeries": [{"points": [{"value": {"boolValue": true}}]}]}"#, "is not a number"),
        (r#"{"timeSeries": [{"points": [{}]}]}"#, "is not a number"),
        (r#"{"executionErrors": [{"code": 7, "message": "denied there"}]}"#, "denied there"),
        ("[]", "is not an object"),
        ("<html>", "not JSON"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let refused = listed(403, br#"{"error": {"message": "Permission denied"}}"#).unwrap_err().message;
    assert_eq!(refused, "Cloud Monitoring returned 403: Permission denied");
}

#[test]
fn points_of_queries() {
    let read = |body: &str| queried(200, body.as_bytes()).map_err(|error| error.message);
    let one = r#"{"timeSeriesData": [{"pointData": [{"values": [{"int64Value": "3"}]}, {"values": [{"int64Value": "4"}]}]}]}"#;
    assert_eq!(read(one), Ok(MonitoringPage::Value(3.0)));
    assert_eq!(read(r#"{"timeSeriesDescriptor": {}}"#), Ok(MonitoringPage::Nothing));
    assert!(read(r#"{"timeSeriesData": [{"pointData": [{"values": []}]}]}"#).is_err());
    assert!(read(r#"{"partialErrors": [{"message": "too slow"}]}"#).unwrap_err().contains("too slow"));
}
