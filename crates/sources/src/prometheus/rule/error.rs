//! Errors of rules. Their texts are those of prometheus-adapter.

use crate::prometheus::mapper::{GroupResource, ResourceNotFound};
use crate::prometheus::names::{FilterError, RegexError};
use crate::prometheus::template::TemplateError;

/// Why a rule cannot be compiled. Texts of the file are quoted as Go quotes them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The mapping of labels is not valid.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The query template is not valid.
    #[error("unable to construct metrics query associated with series query {series}: {source}")]
    Query {
        /// `seriesQuery`.
        series: String,
        /// The template error.
        source: QueryTemplateError,
    },
    /// A series filter is not valid.
    #[error("unable to generate series name filter associated with series query {series}: {source}")]
    Filter {
        /// `seriesQuery`.
        series: String,
        /// The filter error.
        source: FilterError,
    },
    /// The name expression is not valid as a filter.
    #[error(
        "unable to generate series name filter from name rules associated with series query {series}: {source}"
    )]
    NameFilter {
        /// `seriesQuery`.
        series: String,
        /// The filter error.
        source: FilterError,
    },
    /// The name expression is not valid.
    #[error(
        "unable to compile series name match expression {expression} associated with series query {series}: {source}"
    )]
    NameExpression {
        /// `name.matches`.
        expression: String,
        /// `seriesQuery`.
        series: String,
        /// The regular expression error.
        source: RegexError,
    },
    /// The name expression has several groups, and `name.as` is missing.
    #[error("must specify an 'as' value for name matcher {expression} associated with series query {series}")]
    NoLayout {
        /// `name.matches`.
        expression: String,
        /// `seriesQuery`.
        series: String,
    },
    /// A resource rule is not valid.
    #[error("unable to construct querier for {what} metrics: {source}")]
    Resource {
        /// `CPU` or `memory`.
        what: &'static str,
        /// Which part is not valid.
        source: ResourceRuleError,
    },
}

/// A query template that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse metrics query template {text}: {source}")]
pub struct QueryTemplateError {
    /// The template.
    pub text: String,
    /// The template error.
    pub source: TemplateError,
}

/// Why a resource rule cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceRuleError {
    /// The mapping of labels is not valid.
    #[error("unable to construct label-resource converter: {0}")]
    Mapping(#[source] MappingError),
    /// The container query is not valid.
    #[error("unable to construct container metrics query: {0}")]
    Containers(#[source] QueryTemplateError),
    /// The node query is not valid.
    #[error("unable to construct node metrics query: {0}")]
    Nodes(#[source] QueryTemplateError),
}

/// Why a mapping of labels to resources cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// An override names an unknown resource.
    #[error("unable to normalize group-resource {{{group} {resource}}}: {source}")]
    Override {
        /// API group.
        group: String,
        /// Resource.
        resource: String,
        /// Why it does not resolve.
        source: ResourceNotFound,
    },
    /// The template cannot be parsed.
    #[error("unable to parse label template {text}: {source}")]
    Template {
        /// The template.
        text: String,
        /// The template error.
        source: TemplateError,
    },
    /// The template cannot be inverted.
    #[error("unable to generate label format from template {text}: {reason}")]
    Inverse {
        /// The template.
        text: String,
        /// The cause.
        #[source]
        reason: InverseError,
    },
}

/// Why a label template cannot be turned into a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InverseError {
    /// The template fails.
    #[error("unable to convert label template to matcher: {0}")]
    Template(#[source] TemplateError),
    /// The template prints nothing.
    #[error("unable to convert label template to matcher: empty template")]
    Empty,
    /// The result is not a regular expression.
    #[error("unable to convert label template to matcher: {0}")]
    Regex(#[source] RegexError),
    /// The template does not use the resource.
    #[error("must include at least `{{{{.Resource}}}}` in the label template")]
    NoResource,
}

/// Why no label names a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to convert resource {resource} into label: {reason}")]
pub struct LabelError {
    /// The resource.
    pub resource: GroupResource,
    /// The cause.
    #[source]
    pub reason: NoLabel,
}

/// Reason of a [`LabelError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLabel {
    /// There is neither an override nor a template.
    #[error("no generic resource label form specified for this metric")]
    NoTemplate,
    /// The resource is unknown.
    #[error("unable to singularize resource {resource}: {source}")]
    Unknown {
        /// The resource.
        resource: GroupResource,
        /// Why it does not resolve.
        source: ResourceNotFound,
    },
    /// The template prints nothing.
    #[error("empty label produced by label template for {0}")]
    Empty(GroupResource),
    /// The template fails.
    #[error(transparent)]
    Template(TemplateError),
}
