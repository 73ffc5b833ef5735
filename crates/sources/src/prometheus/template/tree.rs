//! Syntax tree of templates, and the fields it uses.

use super::functions::Function;
use super::number::Number;

/// Nodes of a block.
#[derive(Debug, Default)]
pub(super) struct NodeList(pub(super) Vec<(usize, TemplateNode)>);

#[derive(Debug)]
pub(super) enum TemplateNode {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: String, pipe: Option<Pipe> },
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) body: NodeList,
    pub(super) otherwise: NodeList,
}

/// Commands joined by `|`, with the variables that get the result.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub(super) variables: Vec<String>,
    pub(super) assigns: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

#[derive(Debug)]
pub(super) enum Operand {
    Dot,
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Function(Function),
    String(String),
    Number(Number),
    Bool(bool),
    Nil,
    Pipe(Pipe),
    Chain(Box<Operand>, Vec<String>),
}

impl NodeList {
    /// Whether a field of the data is used.
    pub(super) fn uses(&self, field: &str) -> bool {
        let mut found = false;
        self.fields(&mut |fields| found |= fields.first().is_some_and(|first| first == field));
        found
    }

    /// Adds used fields that query data does not have. Dot may be something else within `with` and `range`, so only
    /// names that are fields of no value are reported.
    pub(super) fn unknown_fields(&self, unknown: &mut Vec<String>) {
        let known = ["Series", "LabelMatchers", "LabelValuesByName", "GroupBy", "GroupBySlice"];
        self.fields(&mut |fields| {
            if let Some(first) = fields.first().filter(|first| !known.contains(&first.as_str()))
                && !unknown.contains(first)
            {
                unknown.push(first.clone());
            }
        });
    }

    fn fields(&self, each: &mut impl FnMut(&[String])) {
        for (_, node) in &self.0 {
            match node {
                TemplateNode::Text(_)
                | TemplateNode::Break
                | TemplateNode::Continue
                | TemplateNode::Template { pipe: None, .. } => {}
                TemplateNode::Action(pipe) | TemplateNode::Template { pipe: Some(pipe), .. } => {
                    pipe.fields(each);
                }
                TemplateNode::If(branch) | TemplateNode::With(branch) | TemplateNode::Range(branch) => {
                    branch.pipe.fields(each);
                    branch.body.fields(each);
                    branch.otherwise.fields(each);
                }
            }
        }
    }
}

impl Pipe {
    fn fields(&self, each: &mut impl FnMut(&[String])) {
        for operand in self.commands.iter().flatten() {
            match operand {
                Operand::Field(fields) => each(fields),
                Operand::Variable(name, fields) if name == "$" && !fields.is_empty() => each(fields),
                Operand::Pipe(pipe) => pipe.fields(each),
                Operand::Chain(inner, _) => {
                    if let Operand::Pipe(pipe) = &**inner {
                        pipe.fields(each);
                    }
                }
                _ => {}
            }
        }
    }
}
