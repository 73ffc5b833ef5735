//! Decoding of responses of the metrics APIs. Kubernetes reads a missing value as zero; here it is an error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use api::metrics::{
    DescribedObject, ExternalMetricValue, ExternalMetricValueList, MetricValue, MetricValueList,
};
use api::wire::nullable;
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::request::{Expected, GoStruct, GoType};

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

const INT64: GoType = GoType::Int("int64", i64::MIN, i64::MAX);

static POD_METRICS_LIST: GoStruct =
    GoStruct { name: "v1beta1.PodMetricsList", fields: &[("items", GoType::List(&POD_METRICS))] };
static POD_METRICS: GoStruct = GoStruct {
    name: "v1beta1.PodMetrics",
    fields: &[
        ("metadata", GoType::Struct(&OBJECT_META)),
        ("timestamp", GoType::Text),
        ("window", GoType::Text),
        ("containers", GoType::List(&CONTAINER_METRICS)),
    ],
};
static OBJECT_META: GoStruct =
    GoStruct { name: "v1.ObjectMeta", fields: &[("name", GoType::Text), ("labels", GoType::Texts)] };
static CONTAINER_METRICS: GoStruct =
    GoStruct { name: "v1beta1.ContainerMetrics", fields: &[("name", GoType::Text), ("usage", GoType::Any)] };

static METRIC_VALUE_LIST: GoStruct =
    GoStruct { name: "v1beta2.MetricValueList", fields: &[("items", GoType::List(&METRIC_VALUE))] };
static METRIC_VALUE: GoStruct = GoStruct {
    name: "v1beta2.MetricValue",
    fields: &[
        ("describedObject", GoType::Struct(&OBJECT_REFERENCE)),
        ("timestamp", GoType::Text),
        ("windowSeconds", INT64),
        ("window", INT64),
    ],
};
static OBJECT_REFERENCE: GoStruct =
    GoStruct { name: "v1.ObjectReference", fields: &[("name", GoType::Text)] };

static EXTERNAL_METRIC_VALUE_LIST: GoStruct = GoStruct {
    name: "v1beta1.ExternalMetricValueList",
    fields: &[("items", GoType::List(&EXTERNAL_METRIC_VALUE))],
};
static EXTERNAL_METRIC_VALUE: GoStruct = GoStruct { name: "v1beta1.ExternalMetricValue", fields: &[] };

/// Usage of pods.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WirePodList<'a> {
    #[serde(borrow, default, deserialize_with = "list")]
    pub(super) items: Vec<WirePod<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePod<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) metadata: WireMetadata<'a>,
    #[serde(deserialize_with = "time")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "duration")]
    pub(super) window: SignedDuration,
    #[serde(borrow, deserialize_with = "list")]
    pub(super) containers: Vec<WireContainer<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireMetadata<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: WireText<'a>,
    #[serde(borrow, deserialize_with = "pairs")]
    pub(super) labels: Vec<(WireText<'a>, WireText<'a>)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireContainer<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: WireText<'a>,
    /// A `null` is no usage.
    #[serde(borrow, deserialize_with = "pairs")]
    pub(super) usage: Vec<(WireText<'a>, Option<Quantity>)>,
}

/// Text that is borrowed unless it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Values of objects.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireValueList {
    #[serde(default, deserialize_with = "list")]
    items: Vec<WireValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireValue {
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
pub(super) struct WireSeriesList {
    #[serde(default, deserialize_with = "list")]
    items: Vec<WireSeries>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSeries {
    /// A time that cannot be parsed makes the whole response invalid, as in Kubernetes.
    #[serde(deserialize_with = "time")]
    timestamp: Option<Timestamp>,
    /// Labels and window are only recorded, so any value is accepted.
    metric_labels: Option<serde_json::Value>,
    window: Option<serde_json::Value>,
    value: Option<Quantity>,
}

impl WireSeries {
    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.metric_labels.as_ref().and_then(serde_json::Value::as_object);
        let text =
            |(name, value): (&String, &serde_json::Value)| Some((name.clone(), value.as_str()?.to_owned()));
        labels.map(|labels| labels.iter().filter_map(text).collect()).unwrap_or_default()
    }
}

/// A response has an item without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer has an item without a value")]
pub(super) struct MissingValue;

impl WireValueList {
    /// The values as API types; fails if an item has no value.
    pub(super) fn complete(self) -> Result<MetricValueList, MissingValue> {
        let item = |item: WireValue| {
            Ok(MetricValue {
                described_object: item.described_object,
                timestamp: item.timestamp,
                window_seconds: item.window_seconds,
                value: item.amount.ok_or(MissingValue)?,
            })
        };
        Ok(MetricValueList { items: self.items.into_iter().map(item).collect::<Result<_, MissingValue>>()? })
    }
}

impl WireSeriesList {
    /// The values as API types; fails if an item has no value.
    pub(super) fn complete(self) -> Result<ExternalMetricValueList, MissingValue> {
        let item = |item: WireSeries| {
            Ok(ExternalMetricValue {
                metric_labels: item.labels(),
                timestamp: item.timestamp,
                window_seconds: item.window.as_ref().and_then(serde_json::Value::as_i64),
                value: item.value.ok_or(MissingValue)?,
            })
        };
        Ok(ExternalMetricValueList {
            items: self.items.into_iter().map(item).collect::<Result<_, MissingValue>>()?,
        })
    }
}

/// A list; `null` is the empty list, and a `null` item is the empty item.
fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// The fields of an object in their order; `null` is the empty object.
fn pairs<'de, D, T>(deserializer: D) -> Result<Vec<(WireText<'de>, T)>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    struct Pairs<T>(PhantomData<T>);

    impl<'de, T: Default + Deserialize<'de>> Visitor<'de> for Pairs<T> {
        type Value = Vec<(WireText<'de>, T)>;

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

/// A time; `null` is none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(|_| D::Error::custom(no_time(&text)))).transpose()
}

/// Go's error for a text that does not begin like a time. Errors further on in the text are not reproduced.
fn no_time(text: &str) -> String {
    let text = api::gotext::quote(text);
    format!("parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\"")
}

/// A Go duration; absent is zero.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SignedDuration, D::Error> {
    let Some(text) = Option::<Cow<'de, str>>::deserialize(deserializer)? else {
        return Ok(SignedDuration::ZERO);
    };
    api::time::parse_go_duration(&text)
        .ok_or_else(|| D::Error::custom(format!("time: invalid duration {}", api::gotext::quote(&text))))
}
