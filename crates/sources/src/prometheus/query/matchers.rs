//! Label matchers of PromQL.

use std::collections::BTreeMap;

use api::gotext::quote;
use api::selector::{Operator, Selector};

use super::QueryBuildError;
use crate::prometheus::mapper::{GroupResource, RestMapper};
use crate::prometheus::rule::{LabelError, ResourceLabels};

/// Objects whose values are queried.
#[derive(Clone, Copy, Debug)]
pub enum ObjectFilter<'a> {
    /// Objects by name.
    Named(&'a [&'a str]),
    /// All objects that have the label, so that the response serves many requests.
    Any,
}

impl ObjectFilter<'_> {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Named([]))
    }
}

/// Matchers in order, and their values by label; the last value of a label wins.
#[derive(Debug, Default)]
pub(super) struct LabelMatchers {
    pub(super) texts: Vec<String>,
    pub(super) values: BTreeMap<String, String>,
}

impl LabelMatchers {
    /// Matchers of a series selector. Values are not escaped in regular expressions, as in prometheus-adapter.
    pub(super) fn of(selector: &Selector) -> Result<Self, QueryBuildError> {
        let mut matchers = Self::default();
        for requirement in selector.requirements() {
            let values = requirement.values();
            let operator = match requirement.operator() {
                Operator::Equals | Operator::DoubleEquals | Operator::DoesNotExist => "=",
                Operator::NotEquals | Operator::Exists => "!=",
                Operator::In => "=~",
                Operator::NotIn => "!~",
                Operator::GreaterThan | Operator::LessThan => {
                    return Err(QueryBuildError::UnsupportedOperator);
                }
            };
            matchers.add(requirement.key(), operator, values.join("|"));
        }
        Ok(matchers)
    }

    /// Restricts to a namespace.
    pub(super) fn namespace(
        &mut self,
        labels: &ResourceLabels,
        mapper: &RestMapper,
        namespace: &str,
    ) -> Result<(), Box<LabelError>> {
        let resource = GroupResource { group: String::new(), resource: "namespaces".to_owned() };
        let label = labels.label_of(&resource, mapper)?;
        self.add(&label, "=", namespace.to_owned());
        Ok(())
    }

    /// Restricts to objects.
    pub(super) fn objects(&mut self, label: &str, objects: &ObjectFilter<'_>) {
        match objects {
            ObjectFilter::Named([name]) => self.add(label, "=", (*name).to_owned()),
            ObjectFilter::Named(names) => self.add(label, "=~", names.join("|")),
            ObjectFilter::Any => self.add(label, "!=", String::new()),
        }
    }

    fn add(&mut self, label: &str, operator: &str, value: String) {
        self.texts.push(format!("{label}{operator}{}", quote(&value)));
        self.values.insert(label.to_owned(), value);
    }
}
