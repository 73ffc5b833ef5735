use serde_json::json;

use super::*;
use crate::tree::MAX_TREE_BYTES;

fn found(tree: &Value, path: &str) -> Option<Value> {
    let stages = stages(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    apply(tree.clone(), &stages, &WorkBudget::new(1_000), &TreeBudget::default()).unwrap()
}

#[test]
fn stages_apply_to_the_whole_result() {
    let tree = json!({
        "list": [{"n": 1, "k": "x"}, {"n": 5, "k": "y"}, {"k": "z"}, {"n": 7, "k": "y"}],
        "nested": [[1, [2]], 3, []],
        "columns": {"id": [1, 2], "v": ["a"], "other": 0},
        "text": "{\"n\": [4]}",
        "@type": 6,
        "o": {"a": 1, "b": {"c": 2}},
    });
    for (path, wanted) in [
        ("list.#.n", json!([1, 5, 7])),
        ("list.#.n|0", json!(1)),
        ("list.#.n|#", json!(3)),
        ("list|0|n", json!(1)),
        ("list.#(k==y)#.n", json!([5, 7])),
        ("list.#(k==y)#|1.n", json!(7)),
        ("list.#(k==y)#|#", json!(2)),
        ("list.#(k==y)#.0", json!([])),
        ("list.#(k==y)|n", json!(5)),
        ("list.@reverse.0.n", json!(7)),
        ("list|@reverse|#.n|0", json!(7)),
        ("o|@reverse|@keys", json!(["b", "a"])),
        ("@this.o.a", json!(1)),
        ("@this|o|@ugly|@valid|@pretty:{\"indent\":\"\"}|a", json!(1)),
        ("nested.@flatten", json!([1, [2], 3])),
        ("nested|@flatten:{\"deep\":true}|1", json!(2)),
        ("o.@keys.1", json!("b")),
        ("o.@values.0", json!(1)),
        ("o.b.@values|0", json!(2)),
        ("nested.@values.#", json!(3)),
        ("nested|@keys|#", json!(3)),
        ("o.a.@keys.#", json!(1)),
        ("list|@join|n", json!(7)),
        ("columns|@group|0.id", json!(1)),
        ("columns|@group", json!([{"id": 1, "v": "a"}, {"id": 2}])),
        ("text|@fromstr|n.0", json!(4)),
        ("o.@tostr", json!("{\"a\":1,\"b\":{\"c\":2}}")),
        ("o|@tostr|@fromstr|b.c", json!(2)),
        ("o.a.@tostr", json!("1")),
        ("@type", json!(6)),
        ("[o.a,nope,o.b.c]", json!([1, 2])),
        ("[list,nested].@flatten|#", json!(7)),
        ("{o.a,\"x\":o.b.c,list.#}", json!({"a": 1, "x": 2, "_": 4})),
        ("o.{a,\"s\":[a,b.c]}.s.1", json!(2)),
        ("[]", json!([])),
    ] {
        assert_eq!(found(&tree, path), Some(wanted), "{path}");
    }
    for path in ["list.#(k==y)#|n", "o.a.@group", "o.a|b", "text.@fromstr.x", "o.@this.z", "list|@join|m"] {
        assert_eq!(found(&tree, path), None, "{path}");
    }
}

#[test]
fn paths_that_make_no_sense_are_errors() {
    let many = "@this|".repeat(MAX_STAGES) + "a";
    let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    for bad in [
        "!5",
        "a.!\"x\"",
        "[a",
        "{\"x\"a}",
        "{\"x:a}",
        "[a]b",
        "@dig:n",
        "@join:{\"preserve\":true}",
        "@flatten:{deep}",
        "list.#.@reverse",
        "list.#(n>1)#.[a,b]",
        "#(a",
        &many,
        &deep,
    ] {
        assert!(stages(bad).is_err(), "{bad}");
    }
}

#[test]
fn copies_are_bounded() {
    let many = format!("[{}]", vec!["@this"; 60].join(","));
    for (item, stage, count) in [
        (Value::Null, "[@this,@this]", 20),
        (Value::Null, "@tostr", 60),
        (json!({}), &*many, 1),
        (json!([]), &*many, 1),
    ] {
        let tree = Value::Array(vec![item; 1_000]);
        let path = vec![stage; count].join("|");
        let stages = stages(&path).unwrap();
        // One MiB is left.
        let memory = TreeBudget::default();
        memory.item(31 << 20).unwrap();
        let applied = apply(tree, &stages, &WorkBudget::new(1_000), &memory);
        assert!(matches!(applied, Err(StageError::TooLarge(_))), "{path}");
    }
}

#[test]
fn several_paths_copy_only_what_they_find() {
    let tree = json!({
        "large": vec![0; 10_000],
        "a": 1,
        "list": [{"n": 1, "text": "x".repeat(10_000)}, {"n": 2}],
    });
    let apply_with_little_memory = |path: &str| {
        let memory = TreeBudget::default();
        memory.item(MAX_TREE_BYTES - 2_048).unwrap();
        apply(tree.clone(), &stages(path).unwrap(), &WorkBudget::new(1_000), &memory)
    };
    let found = apply_with_little_memory(r#"[a,@this.a,list.#.n,list.#(n==2).n,{"b":large.#},l*t.#]"#);
    assert_eq!(found.unwrap(), Some(json!([1, 1, [1, 2], 2, {"b": 10_000}, 2])));
    for path in ["[large,a]", "[list.#.text,a]", "[list.0]", "[@reverse]"] {
        assert!(matches!(apply_with_little_memory(path), Err(StageError::TooLarge(_))), "{path}");
    }
}

#[test]
fn counts_that_several_paths_find_are_bounded() {
    let tree = json!({"list": vec![json!({"x": []}); 1_000]});
    let memory = TreeBudget::default();
    // One MiB is left.
    memory.item(31 << 20).unwrap();
    let path = format!("[{}]", vec!["list.#.x.#"; 60].join(","));
    let applied = apply(tree, &stages(&path).unwrap(), &WorkBudget::new(1 << 20), &memory);
    assert!(matches!(applied, Err(StageError::TooLarge(_))), "{applied:?}");
}

#[test]
fn work_of_several_paths_is_bounded_together() {
    let tree = json!({"list": vec![json!({"n": {"m": 1}}); 1_000]});
    let path = format!("[{}]", vec!["list.#.n.m"; 60].join(","));
    // Each path takes two steps for each item, and the budget of a short response is 65,536 steps.
    let applied = apply(tree, &stages(&path).unwrap(), &WorkBudget::new(1_000), &TreeBudget::default());
    assert!(matches!(applied, Err(StageError::Work(_))), "{applied:?}");
}
