//! Executes parsed templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::functions::Function;
use super::lex::TemplateFault;
use super::number::Number;
use super::tree::{Branch, NodeList, Operand, Pipe, TemplateNode};
use super::value::{NO_VALUE, Value};
use super::{BoundedOutput, EvalError, MAX_DEPTH, MAX_STEPS};

/// Executes the template of this name.
pub(super) fn execute(
    name: &str,
    bodies: &BTreeMap<String, NodeList>,
    data: &Value,
) -> Result<String, TemplateFault> {
    let mut run = Execution {
        bodies,
        output: BoundedOutput::default(),
        variables: vec![("$".to_owned(), data.clone())],
        line: 1,
        steps: 0,
        depth: 0,
    };
    let done = match bodies.get(name) {
        Some(body) => run.list(body, data),
        None => Ok(ControlFlow::On),
    };
    let line = run.line;
    done.map_err(|message| (line, format!("executing {name:?}: {message}")))?;
    Ok(run.output.0)
}

#[derive(Clone, Copy, PartialEq)]
enum ControlFlow {
    On,
    Break,
    Continue,
}

struct Execution<'a> {
    bodies: &'a BTreeMap<String, NodeList>,
    output: BoundedOutput,
    variables: Vec<(String, Value)>,
    line: usize,
    steps: usize,
    depth: usize,
}

impl Execution<'_> {
    fn step(&mut self) -> Result<(), EvalError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            Err(format!("template takes more than {MAX_STEPS} steps").into())
        } else {
            Ok(())
        }
    }

    fn list(&mut self, list: &NodeList, dot: &Value) -> Result<ControlFlow, EvalError> {
        let known = self.variables.len();
        for (line, node) in &list.0 {
            self.line = *line;
            self.step()?;
            let flow = self.node(node, dot)?;
            if flow != ControlFlow::On {
                self.variables.truncate(known);
                return Ok(flow);
            }
        }
        self.variables.truncate(known);
        Ok(ControlFlow::On)
    }

    fn node(&mut self, node: &TemplateNode, dot: &Value) -> Result<ControlFlow, EvalError> {
        match node {
            TemplateNode::Text(text) => self.output.put(text)?,
            TemplateNode::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    match value {
                        Value::Nothing => self.output.put(NO_VALUE)?,
                        value => self.output.put(&value.print())?,
                    }
                }
            }
            TemplateNode::If(branch) => return self.scoped(|run| run.branch(branch, dot, false)),
            TemplateNode::With(branch) => return self.scoped(|run| run.branch(branch, dot, true)),
            TemplateNode::Range(branch) => return self.scoped(|run| run.range(branch, dot)),
            TemplateNode::Template { name, pipe } => self.call(name, pipe.as_ref(), dot)?,
            TemplateNode::Break => return Ok(ControlFlow::Break),
            TemplateNode::Continue => return Ok(ControlFlow::Continue),
        }
        Ok(ControlFlow::On)
    }

    /// Drops variables declared by `inner`.
    fn scoped<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.variables.len();
        let result = inner(self);
        self.variables.truncate(known);
        result
    }

    fn branch(&mut self, branch: &Branch, dot: &Value, with: bool) -> Result<ControlFlow, EvalError> {
        let value = self.pipe(&branch.pipe, dot)?;
        if !value.is_true() {
            return self.list(&branch.otherwise, dot);
        }
        self.list(&branch.body, if with { &value } else { dot })
    }

    fn range(&mut self, branch: &Branch, dot: &Value) -> Result<ControlFlow, EvalError> {
        let value = self.pipe(&branch.pipe, dot)?;
        let two = branch.pipe.variables.len() > 1;
        let mut any = false;
        match &value {
            Value::Int(_) | Value::Byte(_) if two => {
                return Err(
                    format!("can't use {} to iterate over more than one variable", value.print()).into()
                );
            }
            Value::Int(_) | Value::Byte(_) => {
                let count =
                    if let Value::Byte(byte) = value { i64::from(byte) } else { int(&value).unwrap_or(0) };
                for index in 0..count {
                    any = true;
                    if self.round(branch, Value::Nothing, &Value::Int(index))? == ControlFlow::Break {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (index, item) in (0_i64..).zip(list.iter()) {
                    any = true;
                    let item = Value::Text(Arc::clone(item));
                    if self.round(branch, Value::Int(index), &item)? == ControlFlow::Break {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, item) in map.iter() {
                    any = true;
                    let (key, item) = (Value::text(key.as_str()), Value::text(item.as_str()));
                    if self.round(branch, key, &item)? == ControlFlow::Break {
                        break;
                    }
                }
            }
            Value::Nothing => {}
            other => return Err(format!("range can't iterate over {}", other.print()).into()),
        }
        if any { Ok(ControlFlow::On) } else { self.list(&branch.otherwise, dot) }
    }

    fn round(&mut self, branch: &Branch, key: Value, item: &Value) -> Result<ControlFlow, EvalError> {
        self.step()?;
        self.scoped(|run| {
            let values = match branch.pipe.variables.as_slice() {
                [_] => vec![item.clone()],
                _ => vec![key, item.clone()],
            };
            for (name, value) in branch.pipe.variables.iter().zip(values) {
                run.set(name, value, branch.pipe.assigns)?;
            }
            run.list(&branch.body, item)
        })
    }

    fn call(&mut self, name: &str, pipe: Option<&Pipe>, dot: &Value) -> Result<(), EvalError> {
        let bodies = self.bodies;
        let body = bodies.get(name).ok_or_else(|| EvalError(format!("template {name:?} not defined")))?;
        let data = pipe.map_or(Ok(Value::Nothing), |pipe| self.pipe(pipe, dot))?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("exceeded maximum template depth ({MAX_DEPTH})").into());
        }
        let outer = std::mem::replace(&mut self.variables, vec![("$".to_owned(), data.clone())]);
        self.list(body, &data)?;
        self.variables = outer;
        self.depth -= 1;
        Ok(())
    }

    fn set(&mut self, name: &str, value: Value, assigns: bool) -> Result<(), EvalError> {
        if !assigns {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        let known = self.variables.iter_mut().rev().find(|(own, _)| own == name);
        known.map(|(_, old)| *old = value).ok_or_else(|| EvalError(format!("undefined variable: {name}")))
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, EvalError> {
        let mut last = None;
        for command in &pipe.commands {
            self.step()?;
            last = Some(self.command(command, dot, last)?);
        }
        let value = last.unwrap_or(Value::Nothing);
        // A range loop assigns its variables itself.
        if let [name] = pipe.variables.as_slice() {
            self.set(name, value.clone(), pipe.assigns)?;
        }
        Ok(value)
    }

    fn command(&mut self, command: &[Operand], dot: &Value, last: Option<Value>) -> Result<Value, EvalError> {
        let Some((first, rest)) = command.split_first() else { return Ok(Value::Nothing) };
        if let Operand::Function(function) = first {
            return self.function(*function, rest, dot, last);
        }
        if let Operand::Chain(inner, fields) = first
            && let Operand::Function(function) = **inner
        {
            let value = self.function(function, &[], dot, None)?;
            return if rest.is_empty() && last.is_none() {
                walk(value, fields)
            } else {
                Err(not_a_function())
            };
        }
        if !rest.is_empty() || last.is_some() {
            return Err(not_a_function());
        }
        match first {
            Operand::Nil => Err("nil is not a command".into()),
            operand => self.operand(operand, dot),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, EvalError> {
        Ok(match operand {
            Operand::Dot => dot.clone(),
            Operand::Field(fields) => walk(dot.clone(), fields)?,
            Operand::Variable(name, fields) => {
                let known = self.variables.iter().rev().find(|(own, _)| own == name);
                let (_, value) = known.ok_or_else(|| EvalError(format!("undefined variable: {name}")))?;
                walk(value.clone(), fields)?
            }
            Operand::Function(function) => self.function(*function, &[], dot, None)?,
            Operand::String(text) => Value::text(text.as_str()),
            Operand::Number(Number::Int(int)) => Value::Int(*int),
            Operand::Number(Number::Big(big)) => return Err(format!("{big} overflows int").into()),
            Operand::Number(Number::Float(float)) => Value::Float(*float),
            Operand::Bool(truth) => Value::Bool(*truth),
            Operand::Nil => Value::Nothing,
            Operand::Pipe(pipe) => self.pipe(pipe, dot)?,
            Operand::Chain(inner, fields) => {
                let value = self.operand(inner, dot)?;
                walk(value, fields)?
            }
        })
    }

    fn function(
        &mut self,
        function: Function,
        operands: &[Operand],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, EvalError> {
        let given = operands.len() + usize::from(last.is_some());
        function.accepts(given)?;
        let mut values = Vec::with_capacity(given);
        for operand in operands {
            let value = self.operand(operand, dot)?;
            if function.decided_by(&value) {
                return Ok(value);
            }
            values.push(value);
        }
        values.extend(last);
        function.call(&values).map_err(|why| EvalError(format!("error calling {}: {why}", function.name())))
    }
}

fn int(value: &Value) -> Option<i64> {
    if let Value::Int(int) = value { Some(*int) } else { None }
}

fn not_a_function() -> EvalError {
    "can't give argument to non-function".into()
}

fn walk(value: Value, fields: &[String]) -> Result<Value, EvalError> {
    fields.iter().try_fold(value, |value, field| value.field(field))
}
