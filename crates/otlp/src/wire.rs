//! Messages of OTLP 1: the fields that are sent, under the numbers of opentelemetry-proto. Of a `oneof` exactly one field is set.

/// `ExportMetricsServiceRequest`, or `MetricsData`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricsRequest {
    /// Metrics by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// Metrics of one resource.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceMetrics {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Metrics by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// Metrics of one scope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeMetrics {
    /// The meter.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// The origin of metrics or spans: a process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Attributes such as `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// `InstrumentationScope`: the meter or tracer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scope {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// An attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute: a `oneof`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// A text.
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
    /// True or false.
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    pub int_value: Option<i64>,
    /// A number.
    #[prost(double, optional, tag = "4")]
    pub double_value: Option<f64>,
}

/// A metric. `gauge`, `sum` and `histogram` are a `oneof`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metric {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Help text.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Unit, such as `s`.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Values at this moment.
    #[prost(message, optional, tag = "5")]
    pub gauge: Option<Gauge>,
    /// Sums since the start.
    #[prost(message, optional, tag = "7")]
    pub sum: Option<Sum>,
    /// Distributions since the start.
    #[prost(message, optional, tag = "9")]
    pub histogram: Option<Histogram>,
}

/// Values at this moment.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Gauge {
    /// One for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// Sums.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sum {
    /// One for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// Whether the sum only grows.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// Distributions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Histogram {
    /// One for each series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: since the start.
pub const CUMULATIVE: i32 = 2;

/// A number of a series. `as_double` and `as_int` are a `oneof`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NumberDataPoint {
    /// When counting began, in nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When the number was read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// A number.
    #[prost(double, optional, tag = "4")]
    pub as_double: Option<f64>,
    /// A whole number.
    #[prost(sfixed64, optional, tag = "6")]
    pub as_int: Option<i64>,
    /// Labels.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

/// A distribution of a series.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HistogramDataPoint {
    /// When counting began, in nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When the counts were read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// Observations.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Sum of all observations.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// Observations in each bucket; one more than there are bounds.
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    /// Upper bounds, ascending and without infinity.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
    /// Labels.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
}

/// `ExportTraceServiceRequest`, or `TracesData`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracesRequest {
    /// Spans by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of one resource.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Spans by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// Spans of one scope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    /// The tracer.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// 8 bytes; none for the first span of a trace.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// Name.
    #[prost(string, tag = "5")]
    pub name: String,
    /// [`INTERNAL`].
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// When it began, in nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// When it ended.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// Attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Whether it failed; none if that is not known.
    #[prost(message, optional, tag = "15")]
    pub status: Option<SpanStatus>,
}

/// `SPAN_KIND_INTERNAL`.
pub const INTERNAL: i32 = 1;
/// `STATUS_CODE_ERROR`.
pub const STATUS_ERROR: i32 = 2;

/// The result of a span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SpanStatus {
    /// Why it failed.
    #[prost(string, tag = "2")]
    pub message: String,
    /// [`STATUS_ERROR`].
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// `ExportMetricsServiceResponse` or `ExportTraceServiceResponse`, which have the same fields.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportResponse {
    /// What was not accepted.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What a collector did not accept.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PartialSuccess {
    /// How many data points or spans were refused.
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    /// Why they were refused.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

impl KeyValue {
    /// An attribute with a text.
    pub fn text(key: impl Into<String>, value: impl Into<String>) -> Self {
        let value = AnyValue { string_value: Some(value.into()), ..AnyValue::default() };
        Self { key: key.into(), value: Some(value) }
    }

    /// An attribute with a whole number.
    pub fn integer(key: impl Into<String>, value: i64) -> Self {
        let value = AnyValue { int_value: Some(value), ..AnyValue::default() };
        Self { key: key.into(), value: Some(value) }
    }

    /// An attribute with a number.
    pub fn number(key: impl Into<String>, value: f64) -> Self {
        let value = AnyValue { double_value: Some(value), ..AnyValue::default() };
        Self { key: key.into(), value: Some(value) }
    }

    /// An attribute that is true or false.
    pub fn flag(key: impl Into<String>, value: bool) -> Self {
        let value = AnyValue { bool_value: Some(value), ..AnyValue::default() };
        Self { key: key.into(), value: Some(value) }
    }
}
