//! The `LabelSelector` object of the Kubernetes API.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{InvalidRequirement, Operator, Requirement, Selector};
use crate::gotext::{self, Words};
use crate::map::StringMap;
use crate::wire::nullable;

/// A label selector as an object; all of its parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "StringMap::is_empty")]
    pub match_labels: StringMap,
    /// Further conditions.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One condition of a [`LabelSelector`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The label's key.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    /// The values of `In` and `NotIn`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Why a [`LabelSelector`] selects nothing sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabelSelector {
    /// An operator that does not exist.
    #[error("{} is not a valid label selector operator", gotext::quote(.0))]
    Operator(String),
    /// A malformed requirement.
    #[error(transparent)]
    Requirement(#[from] InvalidRequirement),
}

/// Why a selector has no [`LabelSelector`] form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotALabelSelector {
    /// Comparisons with numbers have no object form.
    #[error("{} isn't supported in label selectors", gotext::quote(.0.name()))]
    Unsupported(Operator),
    /// `!=` has no object form.
    #[error("{} is not a valid label selector operator", gotext::quote(.0.name()))]
    NotAnOperator(Operator),
}

impl LabelSelector {
    /// Converts to a [`Selector`]. An absent selector selects nothing, an empty one everything.
    pub fn to_selector(&self) -> Result<Selector, InvalidLabelSelector> {
        let mut requirements = Vec::with_capacity(self.match_labels.len() + self.match_expressions.len());
        for (key, value) in &self.match_labels {
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.clone()])?);
        }
        for expression in &self.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(InvalidLabelSelector::Operator(other.to_owned())),
            };
            requirements.push(Requirement::new(&expression.key, operator, expression.values.clone())?);
        }
        Ok(Selector::all_of(requirements))
    }

    /// The selector of an optional object: absent selects nothing.
    pub fn to_selector_or_nothing(selector: Option<&Self>) -> Result<Selector, InvalidLabelSelector> {
        selector.map_or_else(|| Ok(Selector::nothing()), Self::to_selector)
    }

    /// One line for people: the canonical text, `<none>` for none, `<error>` for a broken one.
    pub fn display(selector: Option<&Self>) -> String {
        match Self::to_selector_or_nothing(selector).map(|selector| selector.to_string()) {
            Ok(text) if text.is_empty() => "<none>".to_owned(),
            Ok(text) => text,
            Err(_) => "<error>".to_owned(),
        }
    }

    /// The form in which Go prints the object inside messages: `&LabelSelector{MatchLabels:…}`.
    pub fn go_string(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for LabelSelector {
    /// Go's form, see [`LabelSelector::go_string`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("&LabelSelector{MatchLabels:map[string]string{")?;
        for (key, value) in &self.match_labels {
            write!(f, "{key}: {value},")?;
        }
        f.write_str("},MatchExpressions:[]LabelSelectorRequirement{")?;
        for expression in &self.match_expressions {
            let LabelSelectorRequirement { key, operator, values } = expression;
            let values = Words(values);
            write!(f, "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:{values},}},")?;
        }
        f.write_str("},}")
    }
}

impl Selector {
    /// The same selector as an object, if it has that form. Of several equalities on one key the last wins,
    /// as in Kubernetes.
    pub fn to_label_selector(&self) -> Result<LabelSelector, NotALabelSelector> {
        let mut object = LabelSelector::default();
        for requirement in &self.requirements {
            let operator = match requirement.operator {
                Operator::Equals | Operator::DoubleEquals => {
                    let value = requirement.values.first().cloned().unwrap_or_default();
                    object.match_labels.insert(requirement.key.clone(), value);
                    continue;
                }
                Operator::In => "In",
                Operator::NotIn => "NotIn",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                other @ (Operator::GreaterThan | Operator::LessThan) => {
                    return Err(NotALabelSelector::Unsupported(other));
                }
                other @ Operator::NotEquals => return Err(NotALabelSelector::NotAnOperator(other)),
            };
            object.match_expressions.push(LabelSelectorRequirement {
                key: requirement.key.clone(),
                operator: operator.to_owned(),
                values: requirement.values().into_iter().map(str::to_owned).collect(),
            });
        }
        Ok(object)
    }
}
