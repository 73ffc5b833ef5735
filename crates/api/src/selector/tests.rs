use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn canonical_texts() {
    let cases = [
        ("", ""),
        (" \t", ""),
        ("b=1,a=2", "a=2,b=1"),
        ("a == b , !c", "a==b,!c"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("x notin(,a)", "x notin (,a)"),
        ("x in ()", "x in ()"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a=,b", "a=,b"),
        ("n>5,n<10", "n>5,n<10"),
        ("a!=b", "a!=b"),
    ];
    for (text, canonical) in cases {
        assert_eq!(Selector::parse(text).unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn error_texts() {
    let cases = [
        (
            "cheddar cheese",
            "unable to parse requirement: found 'cheese', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a=!", "unable to parse requirement: found '!', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be \
             an integer",
        ),
        ("/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty"),
    ];
    for (text, error) in cases {
        assert_eq!(Selector::parse(text).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn selectors_match_labels_as_in_kubernetes() {
    let web = labels(&[("app", "web"), ("n", "7")]);
    let cases = [
        ("app=web", true),
        ("app!=web", false),
        ("missing!=web", true),
        ("app in (db,web)", true),
        ("app notin (db)", true),
        ("missing notin (db)", true),
        ("missing in (db)", false),
        ("app", true),
        ("!app", false),
        ("n>6,n<8", true),
        ("n>7", false),
        ("app>1", false),
        ("missing<1", false),
        ("", true),
    ];
    for (text, expected) in cases {
        assert_eq!(Selector::parse(text).unwrap().matches_map(&web), expected, "{text}");
    }
    assert!(!Selector::nothing().matches_map(&web));
}

#[test]
fn label_selectors_are_converted_and_printed() {
    let object: LabelSelector = serde_json::from_str(
        r#"{"matchLabels":{"b":"1","a":"2"},
            "matchExpressions":[{"key":"t","operator":"NotIn","values":["y","x"]},{"key":"s","operator":"Exists"}]}"#,
    )
    .unwrap();
    let selector = object.to_selector().unwrap();
    assert_eq!(selector.to_string(), "a=2,b=1,s,t notin (x,y)");
    assert_eq!(
        object.go_string(),
        "&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},MatchExpressions:[]LabelSelectorRequirement{\
         LabelSelectorRequirement{Key:t,Operator:NotIn,Values:[y x],},\
         LabelSelectorRequirement{Key:s,Operator:Exists,Values:[],},},}"
    );
    assert_eq!(LabelSelector::display(None), "<none>");
    assert_eq!(LabelSelector::display(Some(&LabelSelector::default())), "<none>");
    let odd: LabelSelector =
        serde_json::from_str(r#"{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"Equals"}]}"#)
            .unwrap();
    assert_eq!(
        odd.to_selector().unwrap_err().to_string(),
        "\"Equals\" is not a valid label selector operator"
    );
    assert_eq!(LabelSelector::display(Some(&odd)), "<error>");
    let text = |text: &str| Selector::parse(text).unwrap().to_label_selector();
    assert_eq!(text("a>1").unwrap_err().to_string(), "\"gt\" isn't supported in label selectors");
    assert_eq!(text("a!=1").unwrap_err().to_string(), "\"!=\" is not a valid label selector operator");
}

#[test]
fn field_selectors() {
    let parse = FieldSelector::parse;
    assert_eq!(
        parse("metadata.name==b,metadata.name!=a,=").unwrap().to_string(),
        "metadata.name!=a,metadata.name=b"
    );
    assert_eq!(parse(r"a=b\,c\=d\\").unwrap().exact("a"), Some(r"b,c=d\"));
    assert_eq!(parse(r"a=b\,c\=d\\").unwrap().to_string(), r"a=b\,c\=d\\");
    assert_eq!(parse("x,a").unwrap_err().to_string(), "invalid selector: 'x,a'; can't understand 'a'");
    assert_eq!(
        parse("a=b=c").unwrap_err().to_string(),
        "invalid field selector: unescaped character in value: 61"
    );
    assert_eq!(
        parse(r"a=\x").unwrap_err().to_string(),
        r"invalid field selector: invalid escape sequence: \x"
    );
    assert_eq!(
        parse("spec.x=1").unwrap().restricted_to(&["metadata.name"]).unwrap_err().to_string(),
        "\"spec.x\" is not a known field selector: only \"metadata.name\""
    );
    let both = parse("metadata.name=web,metadata.namespace!=a").unwrap();
    assert!(both.matches(|field| if field == "metadata.name" { "web" } else { "" }));
    assert!(!both.matches(|field| if field == "metadata.name" { "web" } else { "a" }));
}

/// Texts dense in what the grammar reacts to.
fn selector_like() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("in"),
        Just("notin"),
        Just("("),
        Just(")"),
        Just(","),
        Just("="),
        Just("=="),
        Just("!="),
        Just("!"),
        Just(">"),
        Just("<"),
        Just(" "),
        Just("\0"),
        Just("a"),
        Just("k8s.io/b"),
        Just("5"),
        Just("é"),
        Just("-"),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in ".*") {
        let _ = Selector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }

    #[test]
    fn canonical_text_reads_back_the_same(text in selector_like()) {
        if let Ok(selector) = Selector::parse(&text) {
            let canonical = selector.to_string();
            prop_assert_eq!(&Selector::parse(&canonical).unwrap(), &selector, "{}", canonical);
            if let Ok(object) = selector.to_label_selector() {
                prop_assert!(object.to_selector().is_ok());
            }
        }
    }

    #[test]
    fn field_text_reads_back_the_same(text in "[a-c,=!\\\\ ]{0,12}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            let again = FieldSelector::parse(&selector.to_string()).unwrap();
            prop_assert_eq!(again.terms().len(), selector.terms().len());
        }
    }
}
