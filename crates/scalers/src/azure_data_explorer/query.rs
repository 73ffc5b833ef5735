//! The request for a query of Azure Data Explorer, and its response, without IO.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::azure_client::check_azure_status;
use crate::azure_clouds::{is_of_domains, origin};
use crate::responses::{excerpt, hidden, json as parsed_json, kind};

/// Where queries are sent.
pub(super) const PATH: &str = "/v2/rest/query";
const PRODUCT: &str = "Azure Data Explorer";
/// Domains of the clusters of Azure. Only their hosts get tokens of the operator.
const KUSTO_DOMAINS: [&str; 3] =
    [".kusto.windows.net", ".kusto.usgovcloudapi.net", ".kusto.chinacloudapi.cn"];

/// The URL of a cluster without a trailing slash.
pub(super) fn endpoint(given: &str, is_workload: bool) -> Result<String, ScalerError> {
    let Some(endpoint) = origin(given) else {
        bail!("endpoint must be the URL of the cluster, such as https://NAME.REGION.kusto.windows.net");
    };
    if is_workload && !is_of_domains(endpoint, &KUSTO_DOMAINS) {
        bail!(
            "azure-workload can be used with clusters of Azure (*.kusto.windows.net) only, not with {endpoint}: give a \
             service principal"
        );
    }
    Ok(endpoint.to_owned())
}

/// The body of a query whose tables are each in one frame.
pub(super) fn request_body(database: &str, query: &str) -> String {
    let properties = json!({"Options": {"results_progressive_enabled": false}});
    json!({"db": database, "csl": query, "properties": properties}).to_string()
}

/// The first column of the only row of the first result.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    check_azure_status(PRODUCT, status, body)?;
    let answer = parsed_json(body)?;
    let Some(frames) = answer.as_array() else {
        bail!("the answer of {PRODUCT} is not a list of frames: {}", hidden(body));
    };
    // The frame comes last: without it, or with errors, a part of the result is missing.
    let Some(end) = frames_of(frames, "DataSetCompletion").next_back() else {
        bail!("the answer of {PRODUCT} is incomplete");
    };
    let is_set = |key: &str| end.get(key).and_then(Value::as_bool) == Some(true);
    if is_set("HasErrors") || is_set("Cancelled") {
        let message =
            end.pointer("/OneApiErrors/0/error/@message").and_then(Value::as_str).unwrap_or_default();
        bail!("the query failed: {}", excerpt(message));
    }
    let is_result = |table: &&Value| table.get("TableKind").and_then(Value::as_str) == Some("PrimaryResult");
    let table = frames_of(frames, "DataTable").find(is_result);
    let rows = table.and_then(|table| table.get("Rows")).and_then(Value::as_array);
    let row = match rows.map(Vec::as_slice).unwrap_or_default() {
        [] => bail!("the query has no results"),
        [row] => row,
        _ => bail!("the query result had more than a single result row"),
    };
    let type_ = table.and_then(|table| table.pointer("/Columns/0/ColumnType")).and_then(Value::as_str);
    let type_ = type_.unwrap_or_default();
    if !matches!(type_, "real" | "int" | "long") {
        bail!("data type {} is not valid", excerpt(type_));
    }
    let found = row.get(0);
    match found.and_then(Value::as_f64).filter(|number| number.is_finite()) {
        Some(number) if number < 0.0 => {
            Err(scaler_error!("query result must be >= 0 but received: {number:.6}"))
        }
        Some(number) => Ok(number),
        None => Err(scaler_error!("the query result is {} instead of a number", kind(found))),
    }
}

/// The frames of a type.
fn frames_of<'a>(frames: &'a [Value], wanted: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame.get("FrameType").and_then(Value::as_str) == Some(wanted))
}
