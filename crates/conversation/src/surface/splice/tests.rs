//! Edits move nothing but what they edit.

use super::*;

/// Replaces the value under a path of keys and indices.
fn set(source: &str, path: &[&str], with: &str) -> String {
    let mut node = Node::parse(source.as_bytes()).expect("parses");
    for step in path {
        node = match step.parse::<usize>() {
            Ok(index) => node.elements()[index],
            Err(_) => node.get(step).expect("member"),
        };
    }
    let mut splices = Splices::default();
    splices.replace(node.span(), with);
    String::from_utf8(splices.apply(source.as_bytes()).to_vec()).expect("utf-8")
}

#[test]
fn an_edit_moves_nothing_else() {
    let odd =
        r#"{ "a" : 1e5, "big":12345678901234567890123, "s":"\/é\u00e9\ud800", "a":[ 0.1000 , {"x":-0} ] , "e":1E400}"#;
    assert_eq!(set(odd, &["a", "1", "x"], "7"), odd.replace("-0", "7"));
    assert_eq!(set(odd, &["s"], "\"\""), odd.replace(r#""\/é\u00e9\ud800""#, "\"\""));
    let deep = format!("{}1{}", "[".repeat(3000), "]".repeat(3000));
    assert!(Node::parse(deep.as_bytes()).is_ok(), "depth is no obstacle");
}

#[test]
fn members_are_the_same_whether_or_not_a_list_is_visited() {
    let text = r#" { "a" : [1, "]"] ,"m":[ {"m":[]} , "x\"]" ], "b":{"m":[2]},"m":7, "m" : [] ,"c":null}"#;
    let root = Node::parse(text.as_bytes()).expect("parses");
    let mut seen = Vec::new();
    let visiting = root.members_visiting("m", |list| {
        let (listed, after) = root.listed_at(list)?;
        seen.push((listed.array.raw(), listed.elements.iter().map(Node::raw).collect::<Vec<_>>()));
        Some(after)
    });
    let spans = |members: Vec<Member<'_>>| members.iter().map(|member| member.value.span()).collect::<Vec<_>>();
    assert_eq!(spans(visiting), spans(root.members()));
    let first = (r#"[ {"m":[]} , "x\"]" ]"#, vec![r#"{"m":[]}"#, r#""x\"]""#]);
    assert_eq!(seen, [first, ("[]", vec![])]);
}

#[test]
fn arrays_keep_what_keeps_its_place() {
    let source = r#"{"m":[ "a", "b","c" ],"z":1}"#;
    for (after, expected) in [
        (vec![Some(0), Some(1), Some(2)], source),
        (vec![Some(0), Some(2)], r#"{"m":[ "a", "c" ],"z":1}"#),
        (vec![Some(2)], r#"{"m":[ "c" ],"z":1}"#),
        (vec![Some(0)], r#"{"m":[ "a" ],"z":1}"#),
        (vec![], r#"{"m":[  ],"z":1}"#),
        (vec![None, Some(0), Some(1), Some(2)], r#"{"m":[ "N", "a", "b","c" ],"z":1}"#),
        (vec![Some(0), None, Some(1), Some(2)], r#"{"m":[ "a", "N", "b","c" ],"z":1}"#),
        (vec![Some(0), Some(1), Some(2), None], r#"{"m":[ "a", "b","c", "N" ],"z":1}"#),
        (vec![Some(1), Some(0), Some(2)], r#"{"m":[ "b", "a", "c" ],"z":1}"#),
        (vec![Some(0), Some(1), Some(1), Some(2)], r#"{"m":[ "a", "b", "b", "c" ],"z":1}"#),
    ] {
        let array = Node::parse(source.as_bytes()).expect("parses").get("m").expect("m");
        let mut splices = Splices::default();
        splices.write_array(source, &array.listed(), &after, |_, _, _| {}, |_| "\"N\"".to_owned());
        let edited = String::from_utf8(splices.apply(source.as_bytes()).to_vec()).expect("utf-8");
        assert_eq!(edited, expected, "{after:?}");
        assert!(Node::parse(edited.as_bytes()).is_ok(), "{edited}");
    }
}

#[test]
fn empty_arrays_take_elements() {
    let source = r#"{"m":[]}"#;
    let array = Node::parse(source.as_bytes()).expect("parses").get("m").expect("m");
    let mut splices = Splices::default();
    splices.write_array(source, &array.listed(), &[None, None], |_, _, _| {}, |i| i.to_string());
    assert_eq!(&splices.apply(source.as_bytes())[..], br#"{"m":[0,1]}"#);
}

#[test]
fn members_are_put_into_whatever_stands_there() {
    for (source, expected) in [
        (r#"{"a":{"x":1}}"#, r#"{"a":{"c":3,"b":2,"x":1}}"#),
        (r#"{"a":{}}"#, r#"{"a":{"c":3,"b":2}}"#),
        (r#"{"a": null }"#, r#"{"a": {"c":3,"b":2} }"#),
        (r#"{"a":"é"}"#, r#"{"a":{"c":3,"b":2}}"#),
    ] {
        let place = Node::parse(source.as_bytes()).expect("JSON").get("a").expect("a member");
        let mut splices = Splices::default();
        splices.insert_member(&place, "b", "2");
        splices.insert_member(&place, "c", "3");
        assert_eq!(splices.apply(source.as_bytes()), expected);
    }
}
