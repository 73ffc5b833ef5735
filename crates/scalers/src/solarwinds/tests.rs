use super::Parameters;
use super::query::{sharing_key, url, value};
use crate::Reading;
use crate::metric::milli;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn first_measurement_that_is_not_null_counts() {
    let body =
        br#"{"groupings": [{"measurements": [{"time": "t", "value": null}, {"time": "t", "value": 2.5}]}]}"#;
    assert_eq!(value(200, body), Ok(2.5));
    assert!(value(200, br#"{"groupings": []}"#).is_err());
    assert!(value(200, b"{}").is_err());
    assert!(value(401, b"no").unwrap_err().message.contains("401"));
}

#[tokio::test]
async fn request_has_the_token() {
    let address = server(|request| {
        assert!(request.to_lowercase().contains("authorization: bearer t\r\n"), "{request}");
        assert!(
            request
                .contains("GET /v1/metrics/a.b%2Fc/measurements?aggregateBy=AVG&seriesType=SCALAR&filter=x")
        );
        ServerAction::Answer(200, r#"{"groupings": [{"measurements": [{"value": 7}]}]}"#.to_owned())
    })
    .await;
    let metadata = [
        ("host", &*address),
        ("metricName", "a.b/c"),
        ("aggregation", "AVG"),
        ("intervalS", "60"),
        ("targetValue", "5"),
        ("activationValue", "7"),
        ("filter", "x"),
    ];
    let mut given = trigger("solarwinds", &metadata);
    given.auth = texts(&[("apiToken", "t")]);
    assert_eq!(read(&given).await.unwrap(), Reading::one("m", milli(7.0), false));
}

#[test]
fn windows_of_different_lengths_do_not_share_a_response() {
    let of = |interval| {
        let metadata = [
            ("host", "https://solarwinds.example"),
            ("metricName", "m"),
            ("aggregation", "AVG"),
            ("intervalS", interval),
            ("targetValue", "5"),
        ];
        Parameters::read(&trigger("solarwinds", &metadata)).unwrap()
    };
    let (minute, hour) = (of("60"), of("3600"));
    assert_ne!(sharing_key(&minute), sharing_key(&hour));
    let [earlier, later] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"].map(|time| time.parse().unwrap());
    assert_ne!(url(&minute, earlier), url(&minute, later), "the window moves");
    assert_eq!(sharing_key(&minute), sharing_key(&of("60")));
}
