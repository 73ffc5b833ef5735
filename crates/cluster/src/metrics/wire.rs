//! What the metrics APIs answer. Kubernetes reads a value that is not there as zero; here it is an error.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use api::metrics::{
    DescribedObject, ExternalMetricValue, ExternalMetricValueList, MetricValue, MetricValueList,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::request::{Expected, Kind, Shape};

/// `PodMetricsList`.
pub(super) const PODS: Expected = Expected::typed(
    &[("metrics.k8s.io/v1beta1", "PodMetricsList"), ("metrics.k8s.io/v1", "PodMetricsList")],
    &POD_METRICS_LIST,
);
/// `MetricValueList`.
pub(super) const VALUES: Expected = Expected::universal(
    &[
        ("custom.metrics.k8s.io/v1beta2", "MetricValueList"),
        ("custom.metrics.k8s.io/v1beta1", "MetricValueList"),
    ],
    &METRIC_VALUE_LIST,
);
/// `ExternalMetricValueList`.
pub(super) const SERIES: Expected = Expected::lax(&EXTERNAL_METRIC_VALUE_LIST);

const INT64: Kind = Kind::Int("int64", i64::MIN, i64::MAX);

static POD_METRICS_LIST: Shape =
    Shape { name: "v1beta1.PodMetricsList", fields: &[("items", Kind::List(&POD_METRICS))] };
static POD_METRICS: Shape = Shape {
    name: "v1beta1.PodMetrics",
    fields: &[
        ("metadata", Kind::Struct(&OBJECT_META)),
        ("timestamp", Kind::Text),
        ("window", Kind::Text),
        ("containers", Kind::List(&CONTAINER_METRICS)),
    ],
};
static OBJECT_META: Shape =
    Shape { name: "v1.ObjectMeta", fields: &[("name", Kind::Text), ("labels", Kind::Texts)] };
static CONTAINER_METRICS: Shape =
    Shape { name: "v1beta1.ContainerMetrics", fields: &[("name", Kind::Text), ("usage", Kind::Any)] };

static METRIC_VALUE_LIST: Shape =
    Shape { name: "v1beta2.MetricValueList", fields: &[("items", Kind::List(&METRIC_VALUE))] };
static METRIC_VALUE: Shape = Shape {
    name: "v1beta2.MetricValue",
    fields: &[
        ("describedObject", Kind::Struct(&OBJECT_REFERENCE)),
        ("timestamp", Kind::Text),
        ("windowSeconds", INT64),
        ("window", INT64),
    ],
};
static OBJECT_REFERENCE: Shape = Shape { name: "v1.ObjectReference", fields: &[("name", Kind::Text)] };

static EXTERNAL_METRIC_VALUE_LIST: Shape = Shape {
    name: "v1beta1.ExternalMetricValueList",
    fields: &[("items", Kind::List(&EXTERNAL_METRIC_VALUE))],
};
static EXTERNAL_METRIC_VALUE: Shape = Shape { name: "v1beta1.ExternalMetricValue", fields: &[] };

/// Usage of pods.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Pods<'a> {
    #[serde(borrow, default, deserialize_with = "list")]
    pub(super) items: Vec<Pod<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) metadata: Meta<'a>,
    #[serde(deserialize_with = "time")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "duration")]
    pub(super) window: SignedDuration,
    #[serde(borrow, deserialize_with = "list")]
    pub(super) containers: Vec<Container<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    #[serde(borrow, deserialize_with = "pairs")]
    pub(super) labels: Vec<(Text<'a>, Text<'a>)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: Text<'a>,
    /// A usage of `null` is none.
    #[serde(borrow, deserialize_with = "pairs")]
    pub(super) usage: Vec<(Text<'a>, Option<Quantity>)>,
}

/// Text that is copied only if it must be.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Values of objects.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Values {
    #[serde(default, deserialize_with = "list")]
    items: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Value {
    #[serde(deserialize_with = "nullable")]
    described_object: DescribedObject,
    #[serde(deserialize_with = "time")]
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    #[serde(rename = "value")]
    amount: Option<Quantity>,
}

/// Values of series.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Series {
    #[serde(default, deserialize_with = "list")]
    items: Vec<OneSeries>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneSeries {
    #[serde(deserialize_with = "time")]
    #[allow(dead_code, reason = "one that cannot be read spoils the answer, as in Kubernetes")]
    timestamp: Option<Timestamp>,
    value: Option<Quantity>,
}

const NO_VALUE: &str = "the answer has an item without a value";

impl Values {
    /// As the rest of the program knows them.
    pub(super) fn complete(self) -> Result<MetricValueList, String> {
        let item = |item: Value| {
            Ok(MetricValue {
                described_object: item.described_object,
                timestamp: item.timestamp,
                window_seconds: item.window_seconds,
                value: item.amount.ok_or(NO_VALUE)?,
            })
        };
        Ok(MetricValueList { items: self.items.into_iter().map(item).collect::<Result<_, String>>()? })
    }
}

impl Series {
    /// As the rest of the program knows them.
    pub(super) fn complete(self) -> Result<ExternalMetricValueList, String> {
        let item = |item: OneSeries| Ok(ExternalMetricValue { value: item.value.ok_or(NO_VALUE)? });
        Ok(ExternalMetricValueList {
            items: self.items.into_iter().map(item).collect::<Result<_, String>>()?,
        })
    }
}

/// Reads `null` as the empty value, as Go does.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A list that may be `null`, and so may be what is in it.
fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// The fields of an object in their order; `null` has none.
fn pairs<'de, D, T>(deserializer: D) -> Result<Vec<(Text<'de>, T)>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    struct Pairs<T>(PhantomData<T>);

    impl<'de, T: Default + Deserialize<'de>> Visitor<'de> for Pairs<T> {
        type Value = Vec<(Text<'de>, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(4).min(64));
            while let Some((key, value)) = map.next_entry::<_, Option<T>>()? {
                pairs.push((key, value.unwrap_or_default()));
            }
            Ok(pairs)
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }

    deserializer.deserialize_any(Pairs(PhantomData))
}

/// A time, or none where there is `null`.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(|_| D::Error::custom(no_time(&text)))).transpose()
}

/// What Go says of a text that is no time at all; where it is wrong further on, only Go knows how.
fn no_time(text: &str) -> String {
    let text = api::gotext::quote(text);
    format!("parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\"")
}

/// A Go duration; absent is none at all.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SignedDuration, D::Error> {
    let Some(text) = Option::<Cow<'de, str>>::deserialize(deserializer)? else {
        return Ok(SignedDuration::ZERO);
    };
    api::time::parse_go_duration(&text)
        .ok_or_else(|| D::Error::custom(format!("time: invalid duration {}", api::gotext::quote(&text))))
}
