use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;

use super::Parameters;
use super::query::value;
use crate::backends::{Backends, Cluster, ClusterFuture, ConfigSource, PodView};
use crate::test_support::trigger;
use crate::web::HttpSettings;
use crate::{ScalerError, table};

fn parameters(format: &str, location: Option<&str>, type_: &str) -> Parameters {
    Parameters {
        format: format.into(),
        value_location: location.map(str::to_owned),
        value_type: type_.into(),
        ..Parameters::default()
    }
}

#[test]
fn numbers_are_parsed_by_type() {
    let number = |text: &str, type_: &str| value(text.as_bytes(), &parameters("number", None, type_)).ok();
    assert_eq!(number(" 2.5\n", "float64"), Some(2.5));
    assert_eq!(number("1500m", "quantity"), Some(1.5));
    assert_eq!(number("7", "int64"), Some(7.0));
    for (text, type_) in [
        ("", "float64"),
        ("NaN", "float64"),
        ("inf", "float64"),
        ("2.5", "int64"),
        ("x", "quantity"),
        ("1k", "float64"),
    ] {
        assert_eq!(number(text, type_), None, "{text} as {type_}");
    }
    assert!(value(&[0xff], &parameters("number", None, "float64")).is_err());
}

#[test]
fn values_are_found_at_their_location() {
    let json = |text: &str, location: &str, type_: &str| {
        value(text.as_bytes(), &parameters("json", Some(location), type_)).map_err(|error| error.message)
    };
    assert_eq!(json(r#"{"a":{"b":[1,{"c":5}]}}"#, "a.b.1.c", "int64"), Ok(5.0));
    assert_eq!(json(r#"{"a":"1500m"}"#, "a", "quantity"), Ok(1.5));
    assert_eq!(json(r#"{"a":2.5}"#, "a", "float64"), Ok(2.5));
    assert!(json(r#"{"a":2.5}"#, "a", "int64").is_err());
    assert!(json(r#"{"a":null}"#, "a", "float64").unwrap_err().contains("null"));
    assert!(json("{}", "a", "float64").unwrap_err().contains("not found"));
    let yaml =
        |text: &str, location: &str| value(text.as_bytes(), &parameters("yaml", Some(location), "float64"));
    assert_eq!(yaml("a:\n  b:\n  - 1\n  - c: 5\n", "a.b.1.c"), Ok(5.0));
    assert!(yaml("a: [", "a").is_err());
}

/// Errors do not quote Secrets.
#[test]
fn errors_do_not_quote_values() {
    for format in ["number", "json", "yaml"] {
        let error = value(b"hunter2: [", &parameters(format, Some("a"), "float64")).unwrap_err().message;
        assert!(!error.contains("hunter2"), "{error}");
    }
}

struct FakeConfigMaps;

impl Cluster for FakeConfigMaps {
    fn pods<'a>(&'a self, _: &'a str, _: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> ClusterFuture<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn entry<'a>(
        &'a self,
        holder: ConfigSource,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> ClusterFuture<'a, Option<Vec<u8>>> {
        assert_eq!((holder, namespace), (ConfigSource::ConfigMap, "ns"));
        Box::pin(async move {
            match (name, key) {
                ("there", "k") => Ok(Some(b"6".to_vec())),
                ("there", _) => Ok(None),
                _ => Err(ScalerError::new("configmaps \"gone\" not found")),
            }
        })
    }
}

#[tokio::test]
async fn reads_from_cluster() {
    let backends =
        Backends::new(Arc::new(FakeConfigMaps), HttpSettings::allowing_loopback(), Compat::default());
    let read = async |name: &str, key: &str| {
        let pairs =
            [("resourceKind", "ConfigMap"), ("resourceName", name), ("key", key), ("targetValue", "5")];
        table::build(&trigger("kubernetes-resource", &pairs), &backends).unwrap().read("m").await
    };
    let reading = read("there", "k").await.unwrap();
    assert!(reading.active);
    assert_eq!(reading.values.first().unwrap().value.canonical(), "6");
    assert_eq!(read("there", "x").await.unwrap_err().message, "ConfigMap there, key x: there is no such key");
    assert_eq!(
        read("gone", "k").await.unwrap_err().message,
        "ConfigMap gone, key k: configmaps \"gone\" not found"
    );
}
