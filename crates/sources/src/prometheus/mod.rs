//! Prometheus: the rules of prometheus-adapter, discovery of their series, and the queries they produce.
//!
//! ```text
//! config     the configuration file of prometheus-adapter, read strictly
//! template   Go templates between << and >>
//! mapper     resolves resource names: pod, pods, deployment.apps
//! names      Go regular expressions and their expansion
//! rule       compiled rules: filters, names, labels of resources
//! registry   discovered metrics: (resource, metric) -> (series, rule)
//! query      builds PromQL
//! lint       checks a rule file, and explains a rule step by step
//! client     Prometheus client with single-flight queries
//! discovery  lists series, selector by selector
//! convert    converts query results to metric values
//! provider   serves custom, external and resource metrics
//! reload     watches the file
//! ```

pub mod client;
pub mod config;
pub mod convert;
pub mod discovery;
pub mod lint;
pub mod mapper;
pub mod names;
pub mod provider;
pub mod query;
pub mod registry;
pub mod reload;
pub mod rule;
pub mod template;
