use crate::test_support::{build, texts, trigger};

fn error(changed: &[(&str, &str)]) -> String {
    let mut given = trigger(
        "aws-cloudwatch",
        &[("expression", "e"), ("targetMetricValue", "1"), ("minMetricValue", "0"), ("awsRegion", "r")],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("awsAccessKeyID", "a"), ("awsSecretAccessKey", "s")]);
    let error = build(&given).err().map(|error| error.message).unwrap_or_default();
    error.rsplit_once("metadata: ").map(|(_, text)| text.to_owned()).unwrap_or_default()
}

#[test]
fn periods_are_those_of_cloudwatch() {
    assert_eq!(error(&[]), "");
    assert_eq!(error(&[("metricStatPeriod", "30")]), "");
    assert!(error(&[("metricStatPeriod", "7")]).starts_with("metricStatPeriod < 60 has to be one of"));
    assert!(error(&[("metricStatPeriod", "61")]).starts_with("metricStatPeriod >= 60"));
    assert!(error(&[("metricStatPeriod", "0")]).contains("can not be smaller than 1"));
    assert!(error(&[("metricStatPeriod", "60"), ("metricCollectionTime", "100")]).contains("multiple of"));
}

#[test]
fn a_metric_has_matching_dimensions() {
    let metric = |names, values| {
        error(&[
            ("expression", ""),
            ("namespace", "n"),
            ("metricName", "m"),
            ("dimensionName", names),
            ("dimensionValue", values),
        ])
    };
    assert_eq!(metric("a;b", "c;d"), "");
    assert_eq!(metric("a;b", "c"), "dimensionName and dimensionValue are not matching in size");
    assert_eq!(metric("a", ""), "dimension value not given");
}
