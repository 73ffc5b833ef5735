//! Go templates between `<<` and `>>`, as much of them as rules can use: everything but methods and complex numbers.
//!
//! Own code rather than the crate gotmpl: what counts here is that Go tells a struct from a map (an unknown field is an
//! error, an unknown key `<no value>`), that blocks are closed, and that names are known when the file is read.
//! A template cannot run for ever and cannot print without end.

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

/// Bytes of a template.
const LONGEST_SOURCE: usize = 64 << 10;
/// Bytes of what a template, or one of its functions, writes.
const LONGEST_OUTPUT: usize = 1 << 20;
/// Actions, iterations and calls of one execution.
const MOST_STEPS: usize = 100_000;
/// Levels of blocks and parentheses within one template, and of calls of templates.
const DEEPEST: usize = 64;

/// A template that was understood.
#[derive(Clone, Debug)]
pub struct Template {
    name: &'static str,
    text: Arc<str>,
    bodies: Arc<BTreeMap<String, tree::List>>,
}

/// Why a template could not be understood or executed.
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

/// What templates of queries know.
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
    /// Understands a template of this name.
    pub fn parse(name: &'static str, text: &str) -> Result<Self, TemplateError> {
        let fault = |(line, message)| TemplateError { name, line, message };
        if text.len() > LONGEST_SOURCE {
            return Err(fault((1, format!("template is longer than {LONGEST_SOURCE} bytes"))));
        }
        let tokens = lex::tokens(text).map_err(fault)?;
        let bodies = parse::bodies(name, tokens).map_err(fault)?;
        Ok(Self { name, text: text.into(), bodies: Arc::new(bodies) })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it writes for a query.
    pub fn query(&self, args: &QueryArgs) -> Result<String, TemplateError> {
        self.execute(&Value::Query(Arc::new(args.clone())))
    }

    /// What it writes for a resource.
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

    /// Whether anything of the template uses this field of the data, such as `GroupBy`.
    pub fn uses(&self, field: &str) -> bool {
        self.bodies.values().any(|body| body.uses(field))
    }

    /// The fields used that queries do not have.
    pub fn unknown_fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        for body in self.bodies.values() {
            body.unknown_fields(&mut fields);
        }
        fields
    }
}

/// A text that does not grow beyond [`LONGEST_OUTPUT`].
#[derive(Default)]
struct Sink(String);

impl Sink {
    fn put(&mut self, text: &str) -> Result<(), String> {
        if self.0.len() + text.len() > LONGEST_OUTPUT {
            return Err(format!("output is longer than {LONGEST_OUTPUT} bytes"));
        }
        self.0.push_str(text);
        Ok(())
    }
}
