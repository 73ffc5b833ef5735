use crate::Trigger;
use crate::test_support::{google_metadata, read_answered, texts, trigger};
use crate::web::HttpCall;

fn metric(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger("gcp-stackdriver", &[("projectId", "shop"), ("filter", r#"metric.type="x""#)]);
    given.metadata.extend(texts(changed));
    given.identity.provider = "gcp".into();
    given
}

const ONE_TIME_SERIES: &str =
    r#"{"timeSeries": [{"points": [{"value": {"doubleValue": 5.5}}, {"value": {"doubleValue": 1}}]}]}"#;

#[tokio::test]
async fn reads_the_newest_point_with_a_token() {
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            let base = "https://monitoring.googleapis.com/v3/projects/shop/timeSeries?filter=metric.type%3D%22x%22+AND+\
                        resource.labels.project_id%3D%22shop%22&pageSize=100&interval.startTime=";
            assert!(call.url.starts_with(base), "{}", call.url);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
            (200, ONE_TIME_SERIES.to_owned())
        })
    };
    let reading = read_answered(&metric(&[("activationTargetValue", "5.5")]), reply).await.unwrap();
    assert_eq!(
        (reading.values.first().unwrap().value.canonical(), reading.active),
        ("5500m".to_owned(), false)
    );
}

#[tokio::test]
async fn points_are_aligned() {
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            let aligned = "&aggregation.alignmentPeriod=60s&aggregation.perSeriesAligner=ALIGN_PERCENTILE_99\
                           &aggregation.crossSeriesReducer=REDUCE_SUM&";
            assert!(call.url.contains(aligned), "{}", call.url);
            (200, ONE_TIME_SERIES.to_owned())
        })
    };
    let changed = [
        ("alignmentPeriodSeconds", "60"),
        ("alignmentAligner", "percentile_99"),
        ("alignmentReducer", "Sum"),
        ("filterDuration", "5"),
    ];
    assert!(read_answered(&metric(&changed), reply).await.is_ok());
    // Without a period nothing is aligned.
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert!(!call.url.contains("aggregation."), "{}", call.url);
            (200, ONE_TIME_SERIES.to_owned())
        })
    };
    assert!(read_answered(&metric(&[("alignmentAligner", "mean")]), reply).await.is_ok());
}

#[tokio::test]
async fn missing_data_is_an_error_without_value_if_null() {
    let nothing = |call: &HttpCall| google_metadata(call).unwrap_or((200, "{}".to_owned()));
    let error = read_answered(&metric(&[]), nothing).await.unwrap_err().message;
    assert_eq!(error, r#"could not find stackdriver metric with filter metric.type="x""#);
    let reading = read_answered(&metric(&[("valueIfNull", "0")]), nothing).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "0");
    // An error is not missing data.
    let refused = |call: &HttpCall| {
        google_metadata(call).unwrap_or((403, r#"{"error": {"message": "denied"}}"#.to_owned()))
    };
    let error = read_answered(&metric(&[("valueIfNull", "0")]), refused).await.unwrap_err().message;
    assert_eq!(error, "Cloud Monitoring returned 403: denied");
    let endless =
        |call: &HttpCall| google_metadata(call).unwrap_or((200, r#"{"nextPageToken": "t"}"#.to_owned()));
    let error = read_answered(&metric(&[("valueIfNull", "0")]), endless).await.unwrap_err().message;
    assert!(error.contains("10 pages without a time series"), "{error}");
    let error = read_answered(&metric(&[("projectId", "a/b")]), nothing).await.unwrap_err().message;
    assert!(error.contains("is not the id of a project"), "{error}");
}

#[test]
fn invalid_parameters_are_refused() {
    let refused = |changed: &[(&str, &str)]| {
        let error = crate::test_support::build(&metric(changed)).err().map(|error| error.message);
        error.unwrap_or_default().replace("error parsing Stackdriver metadata: ", "")
    };
    assert_eq!(refused(&[("alignmentPeriodSeconds", "59")]), "alignmentPeriodSeconds must be at least 60");
    assert_eq!(refused(&[("alignmentAligner", "x")]), "");
    let both = [("alignmentPeriodSeconds", "60"), ("alignmentAligner", "x")];
    assert_eq!(refused(&both), "unknown aligner: x");
    assert_eq!(refused(&[("valueIfNull", "null")]), "");
}
