//! Go templates between `<<` and `>>`, as prometheus-adapter rules use them: the whole language except methods and
//! complex numbers. The entry point is [`Template`].
//!
//! This is own code and not the crate `gotmpl` (0.6 was tried and renders the common templates correctly), because
//! rules must fail as they do in prometheus-adapter: Go distinguishes structs from maps (an unknown field is an
//! error, an unknown key prints `<no value>`), unclosed blocks and unknown functions are errors when the file is
//! read, and error texts are compared with recorded ones. The linter also needs the fields that a template uses.
//! Steps and output of a template are limited.

mod exec;
mod format;
mod functions;
mod lex;
mod number;
mod parse;
#[cfg(test)]
mod tests;
mod tree;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mapper::GroupResource;
use value::Value;

/// Size limit of a template in bytes.
const MAX_SOURCE_BYTES: usize = 64 << 10;
/// Size limit of the output of a template or of one function in bytes.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Maximum number of actions, iterations and calls per execution.
const MAX_STEPS: usize = 100_000;
/// Maximum depth of blocks, parentheses and template calls.
const MAX_DEPTH: usize = 64;

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {
    name: &'static str,
    text: Arc<str>,
    bodies: Arc<BTreeMap<String, tree::NodeList>>,
}

/// Why a template cannot be parsed or executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct TemplateError {
    /// Name of the template.
    pub name: &'static str,
    /// Line of the template, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Data of query templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryArgs {
    /// `.Series`: name of the series.
    pub series: String,
    /// `.LabelMatchers`: matchers joined by commas.
    pub label_matchers: String,
    /// `.LabelValuesByName`: values of matchers, joined by `|`.
    pub label_values_by_name: BTreeMap<String, String>,
    /// `.GroupBy`: labels joined by commas.
    pub group_by: String,
    /// `.GroupBySlice`: the same as a list.
    pub group_by_slice: Vec<String>,
}

impl Template {
    /// Parses a template with this name.
    pub fn parse(name: &'static str, text: &str) -> Result<Self, TemplateError> {
        let fault = |(line, message)| TemplateError { name, line, message };
        if text.len() > MAX_SOURCE_BYTES {
            return Err(fault((1, format!("template is longer than {MAX_SOURCE_BYTES} bytes"))));
        }
        let tokens = lex::tokens(text).map_err(fault)?;
        let bodies = parse::bodies(name, tokens).map_err(fault)?;
        Ok(Self { name, text: text.into(), bodies: Arc::new(bodies) })
    }

    /// Source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Executes the template for a query.
    pub fn query(&self, args: &QueryArgs) -> Result<String, TemplateError> {
        self.execute(&Value::Query(Arc::new(args.clone())))
    }

    /// Executes the template for a resource.
    pub fn label(&self, resource: &GroupResource) -> Result<String, TemplateError> {
        self.execute(&Value::Resource(Arc::new(resource.clone())))
    }

    fn execute(&self, data: &Value) -> Result<String, TemplateError> {
        exec::execute(self.name, &self.bodies, data).map_err(|(line, message)| TemplateError {
            name: self.name,
            line,
            message,
        })
    }

    /// Whether the template uses this field of its data, such as `GroupBy`.
    pub fn uses(&self, field: &str) -> bool {
        self.bodies.values().any(|body| body.uses(field))
    }

    /// Used fields that query data does not have.
    pub fn unknown_fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        for body in self.bodies.values() {
            body.unknown_fields(&mut fields);
        }
        fields
    }
}

/// Message of a failed evaluation, in the words of Go; a [`TemplateError`] adds name and line of the template.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct EvalError(String);

impl From<String> for EvalError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for EvalError {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// Output limited to [`MAX_OUTPUT_BYTES`].
#[derive(Default)]
struct BoundedOutput(String);

impl BoundedOutput {
    fn put(&mut self, text: &str) -> Result<(), EvalError> {
        if self.0.len() + text.len() > MAX_OUTPUT_BYTES {
            return Err(format!("output is longer than {MAX_OUTPUT_BYTES} bytes").into());
        }
        self.0.push_str(text);
        Ok(())
    }
}
