//! The value at a GJSON path, read while JSON is decoded: only what the path leads to is kept, so that a response of many small
//! values needs no tree of them.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::follow::follow;
use super::json::{ItemCondition, Step, TooMuchWork, WorkBudget, fits, leaf};
use super::pipeline::{self, Stage, StageError, stages};
use crate::tree::{self, BoundedTree, TreeBudget, TreeError, TreeTooLarge};
use crate::{ParseError, ScalerError};

/// Length in characters of the part of a path that an error quotes.
const MAX_SHOWN_CHARS: usize = 200;

/// Why no value could be looked up.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The path is invalid.
    #[error("valueLocation {path:?}: {reason}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: ParseError,
    },
    /// The path costs too much with this response.
    #[error("valueLocation {path:?}: {reason}")]
    Work {
        /// The path.
        path: String,
        /// What costs too much.
        reason: TooMuchWork,
    },
    /// An item that the path examines has too many values.
    #[error(transparent)]
    TooLarge(#[from] TreeTooLarge),
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl FindError {
    /// The error for users; `invalid` describes text that is not JSON.
    pub(crate) fn described(self, invalid: impl FnOnce(&serde_json::Error) -> String) -> ScalerError {
        match self {
            Self::Json(error) => ScalerError::new(invalid(&error)),
            other => ScalerError::new(other.to_string()),
        }
    }
}

/// The value at a path, if it exists; of lists and objects only the type.
pub fn find(body: &[u8], path: &str) -> Result<Option<Value>, FindError> {
    let shown = || match path.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", path.get(..end).unwrap_or_default()),
        None => path.to_owned(),
    };
    let stages = stages(path).map_err(|reason| FindError::Path { path: shown(), reason })?;
    let work = WorkBudget::new(body.len());
    let [Stage::Steps(steps)] = stages.as_slice() else {
        let tree = tree::from_slice(body).map_err(|error| match error {
            TreeError::TooLarge(error) => FindError::TooLarge(error),
            TreeError::Json(error) => FindError::Json(error),
        })?;
        let found = pipeline::apply(tree, &stages, &work, &TreeBudget::default());
        return match found {
            Ok(found) => Ok(found.as_ref().map(leaf)),
            Err(StageError::Work(reason)) => Err(FindError::Work { path: shown(), reason }),
            Err(StageError::TooLarge(error)) => Err(error.into()),
        };
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let too_large = Cell::new(false);
    let seed = PathSeed { steps, work: &work, too_large: &too_large };
    match seed.deserialize(&mut json) {
        Ok(found) => {
            json.end()?;
            Ok(found)
        }
        Err(_) if work.is_exhausted() => Err(FindError::Work { path: shown(), reason: TooMuchWork }),
        Err(_) if too_large.get() => Err(TreeTooLarge.into()),
        Err(error) => Err(error.into()),
    }
}

/// Decodes only the value at the rest of a path.
#[derive(Clone, Copy)]
struct PathSeed<'s> {
    steps: &'s [Step],
    work: &'s WorkBudget,
    /// Whether an item was too large.
    too_large: &'s Cell<bool>,
}

impl PathSeed<'_> {
    /// A value that is neither a list nor an object.
    fn scalar(self, value: Value) -> Option<Value> {
        self.steps.is_empty().then_some(value)
    }
}

impl<'de> DeserializeSeed<'de> for PathSeed<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PathSeed<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(self.scalar(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.scalar(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.scalar(value.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(if self.steps.is_empty() { Some(Value::String(text.to_owned())) } else { None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let empty = || Some(Value::Array(Vec::new()));
        let found = match self.steps.split_first() {
            Some((Step::Each, [])) => return Ok(Some(count(&mut items)?.into())),
            None | Some((Step::Each, _)) => empty(),
            Some((Step::Query(query), rest)) if query.all && !matches!(rest, [Step::Each]) => empty(),
            Some((Step::Query(query), rest)) => self.matching(query, rest, &mut items)?,
            Some((Step::Name(name), rest)) => match name.parse::<usize>() {
                Ok(at) => self.item(at, rest, &mut items)?,
                Err(_) => None,
            },
            Some((Step::Pattern(_), _)) => None,
        };
        // The rest is decoded too: a response is valid or not, whatever its beginning says.
        count(&mut items)?;
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let Some((step, rest)) = self.steps.split_first() else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Some(Value::Object(serde_json::Map::new())));
        };
        let mut found = None;
        // The name that a pattern has found; later members of that name replace its value.
        let mut chosen: Option<String> = None;
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            let is_it = match (step, &chosen) {
                (Step::Name(wanted), _) => *wanted == *name,
                (Step::Pattern(_), Some(chosen)) => *chosen == *name,
                (Step::Pattern(pattern), None) => {
                    fits(pattern.as_bytes(), name.as_bytes(), self.work).map_err(A::Error::custom)?
                }
                (Step::Each | Step::Query(_), _) => false,
            };
            if is_it {
                if matches!(step, Step::Pattern(_)) && chosen.is_none() {
                    chosen = Some(name.into_owned());
                }
                found = members.next_value_seed(PathSeed { steps: rest, ..self })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

impl PathSeed<'_> {
    /// The item at an index.
    fn item<'de, A: SeqAccess<'de>>(
        self,
        at: usize,
        rest: &[Step],
        items: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        for _ in 0..at {
            if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let item = PathSeed { steps: rest, work: self.work, too_large: self.too_large };
        Ok(items.next_element_seed(item)?.flatten())
    }

    /// The end of the path in the first item that matches, or the number of items that match. One item is a tree at a time.
    fn matching<'de, A: SeqAccess<'de>>(
        self,
        query: &ItemCondition,
        rest: &[Step],
        items: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        let mut matching = 0_usize;
        loop {
            let one = TreeBudget::default();
            let item = items.next_element_seed(BoundedTree(&one));
            self.too_large.set(one.is_exhausted());
            let Some(item) = item? else { break };
            if query.matches(&item, self.work).map_err(A::Error::custom)? {
                if !query.all {
                    let found = follow(item, rest, self.work).map_err(A::Error::custom)?;
                    return Ok(found.as_ref().map(leaf));
                }
                matching += 1;
            }
        }
        Ok(query.all.then(|| leaf(&matching.into())))
    }
}

fn count<'de, A: SeqAccess<'de>>(items: &mut A) -> Result<usize, A::Error> {
    let mut count = 0;
    while items.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_tree(body: &str, path: &str) -> Result<Option<Value>, String> {
        let stages = stages(path).map_err(|error| error.to_string())?;
        let tree: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let work = WorkBudget::new(body.len());
        let found = pipeline::apply(tree, &stages, &work, &TreeBudget::default());
        found.map(|found| found.as_ref().map(leaf)).map_err(|error| error.to_string())
    }

    #[test]
    fn many_values_need_no_tree() {
        let body = format!("{{\"a\":[1{}],\"b\":7}}", ",1".repeat(600_000));
        assert_eq!(find(body.as_bytes(), "b").unwrap(), Some(7.into()));
        assert_eq!(find(body.as_bytes(), "a.#").unwrap(), Some(600_001.into()));
        assert_eq!(find(body.as_bytes(), "a.599999").unwrap(), Some(1.into()));
        assert_eq!(find(body.as_bytes(), "a.#(>1)#.#").unwrap(), Some(0.into()));
        // An item that is itself too large is an error, not memory.
        let body = format!("[{body}]");
        let error = find(body.as_bytes(), "#(b==7).b").unwrap_err();
        assert!(matches!(error, FindError::TooLarge(_)), "{error}");
    }

    #[test]
    fn patterns_have_a_budget() {
        let body = format!("{{\"{}\":1,\"b\":2}}", "a".repeat(1 << 20));
        let path = format!("*{}b", "a".repeat(4_000));
        let error = find(body.as_bytes(), &path).unwrap_err();
        assert!(matches!(error, FindError::Work { .. }), "{error}");
        let strings = format!("[\"{}\"]", "a".repeat(1 << 20));
        let error = find(strings.as_bytes(), &format!("#(%\"{path}\")#.#")).unwrap_err();
        assert!(matches!(error, FindError::Work { .. }), "{error}");
        // Usual patterns stay far below it, also with long names.
        assert_eq!(find(body.as_bytes(), "*b").unwrap(), Some(2.into()));
        assert_eq!(find(body.as_bytes(), "*a?*a").unwrap(), Some(1.into()));
        assert_eq!(find(body.as_bytes(), "?").unwrap(), Some(2.into()));
        assert!(matches!(find(b"{}", &"a".repeat(20_000)).unwrap_err(), FindError::Path { .. }));
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        for (body, path, found) in [
            (r#"{"a":1,"a":2}"#, "a", Some(2)),
            (r#"{"a":{"b":1},"a":{}}"#, "a.b", None),
            (r#"{"ab":1,"ac":2,"ab":3}"#, "a*", Some(3)),
            (r#"{"b":[{"k":1,"k":2}]}"#, "b.#(k==2).k", Some(2)),
        ] {
            assert_eq!(find(body.as_bytes(), path).unwrap(), found.map(Value::from), "{body} {path}");
            assert_eq!(by_tree(body, path), Ok(found.map(Value::from)), "{body} {path}");
        }
    }

    #[test]
    fn what_follows_the_value_must_be_json_too() {
        for body in ["{\"a\":1", "{\"a\":1} x", "{\"a\":1,}", "{\"a\":1,\"b\":[}", "{\"a\":1,\"a\":tru}"] {
            assert!(matches!(find(body.as_bytes(), "a"), Err(FindError::Json(_))), "{body}");
        }
    }

    /// JSON of a few names and small values.
    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (-3..3_i64).prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec(("[abc]{1,2}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn path() -> impl Strategy<Value = String> {
        let step = prop_oneof![
            "[abc]{1,2}",
            "[0-3]",
            "[abc]?[*?][abc]?",
            Just("#".to_owned()),
            "#\\([ab]?(==|!=|<|<=|>|>=|%|!%|)[ab0-2*]{0,2}\\)#?",
        ];
        prop::collection::vec(step, 0..4).prop_map(|steps| steps.join("."))
    }

    proptest! {
        #[test]
        fn a_stream_finds_what_a_tree_has(tree in tree(), path in path()) {
            let body = tree.to_string();
            let find = |path: &str| {
                find(body.as_bytes(), path).map_err(|error| match error {
                    FindError::Path { reason, .. } => reason.to_string(),
                    other => other.to_string(),
                })
            };
            let found = find(&path);
            prop_assert_eq!(&found, &by_tree(&body, &path));
            // Stages that change nothing before it.
            prop_assert_eq!(&found, &find(&format!("@this|{path}")));
            prop_assert_eq!(&found, &find(&format!("@reverse|@reverse|{path}")));
            prop_assert_eq!(&found, &find(&format!("[@this].0|@tostr.@fromstr|{path}")));
        }
    }
}
