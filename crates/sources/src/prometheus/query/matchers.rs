//! Conditions on labels, as PromQL writes them.

use std::collections::BTreeMap;

use api::gotext::quote;
use api::selector::{Operator, Selector};

use crate::prometheus::mapper::{GroupResource, Mapper};
use crate::prometheus::rule::ResourceLabels;

/// Of which objects values are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Objects<'a> {
    /// These, by name.
    Named(&'a [&'a str]),
    /// Any that has the label at all, so that the answer can serve many questions.
    Any,
}

impl Objects<'_> {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Named([]))
    }
}

/// Matchers in the order they are written, and their values by label; of two for one label the last.
#[derive(Debug, Default)]
pub(super) struct Matchers {
    pub(super) texts: Vec<String>,
    pub(super) values: BTreeMap<String, String>,
}

impl Matchers {
    /// Those of a selector of series. Values are not escaped within expressions, as the adapter does not either.
    pub(super) fn of(selector: &Selector) -> Result<Self, String> {
        let mut matchers = Self::default();
        for requirement in selector.requirements() {
            let values = requirement.values();
            let operator = match requirement.operator() {
                Operator::Equals | Operator::DoubleEquals | Operator::DoesNotExist => "=",
                Operator::NotEquals | Operator::Exists => "!=",
                Operator::In => "=~",
                Operator::NotIn => "!~",
                Operator::GreaterThan | Operator::LessThan => {
                    return Err("operator not supported by prometheus".to_owned());
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
        mapper: &Mapper,
        namespace: &str,
    ) -> Result<(), String> {
        let resource = GroupResource { group: String::new(), resource: "namespaces".to_owned() };
        let label = labels.label_of(&resource, mapper)?;
        self.add(&label, "=", namespace.to_owned());
        Ok(())
    }

    /// Restricts to objects.
    pub(super) fn objects(&mut self, label: &str, objects: &Objects<'_>) {
        match objects {
            Objects::Named([name]) => self.add(label, "=", (*name).to_owned()),
            Objects::Named(names) => self.add(label, "=~", names.join("|")),
            Objects::Any => self.add(label, "!=", String::new()),
        }
    }

    fn add(&mut self, label: &str, operator: &str, value: String) {
        self.texts.push(format!("{label}{operator}{}", quote(&value)));
        self.values.insert(label.to_owned(), value);
    }
}
