//! Tests of [`super`]: what an error and a status are written as, and who ended a step.

use super::*;
use crate::trajectory::sample::{DONE, edited_request, fault, planted, step};

#[test]
fn the_upstream_s_own_failure_is_not_the_planted_one() {
    for (injected, expected) in
        [(vec![], true), (vec![fault(0)], false), (vec![fault(1)], true), (vec![edited_request()], true)]
    {
        let step = step(&injected, &[(DONE, 503)]);
        assert_eq!(ended_by_upstream(&step), expected, "{injected:?}");
    }
    assert!(!ended_by_upstream(&step(&[], &[])) && !ended_by_upstream(&step(&[], &[(DONE, 200)])));
}

#[test]
fn a_fault_acts_on_a_reply_and_plants_no_mode() {
    let of_tool = |operator: &str| InjectedError {
        agent: AgentName::parse("mcp/web/search").expect("a name"),
        failure_mode: None,
        operator: operator.to_owned(),
        ..planted()
    };
    for (error, expected) in [
        // Both change bytes of a tool's reply.
        (of_tool("malformed_chunk"), true),
        (of_tool("empty_body"), true),
        (of_tool("empty"), false),
        (planted(), false),
        (edited_request(), false),
        (fault(0), true),
        (InjectedError { failure_mode: None, ..edited_request() }, false),
    ] {
        assert_eq!(error.is_fault(), expected, "{error:?}");
    }
}

#[test]
fn a_standing_becomes_the_status_of_its_name() {
    for (standing, status) in [
        (Standing::Verified, LabelStatus::Verified),
        (Standing::Contradicted, LabelStatus::Contradicted),
        (Standing::Unproven, LabelStatus::Unproven),
        (Standing::Void, LabelStatus::Void),
    ] {
        assert_eq!(LabelStatus::from(standing), status);
        let words = |value: serde_json::Result<String>| value.expect("serialises");
        assert_eq!(words(serde_json::to_string(&status)), words(serde_json::to_string(&standing)));
    }
}

#[test]
fn an_error_is_written_without_what_is_usual_and_read_in_its_former_words() {
    let text = |error: &InjectedError| serde_json::to_value(error).expect("serialises");
    assert_eq!(text(&planted()).get("attempt"), None);
    let again = InjectedError { attempt: 2, ..planted() };
    assert_eq!(text(&again).get("attempt"), Some(&2.into()));
    for error in [planted(), again] {
        let mut former = text(&error);
        let fields = former.as_object_mut().expect("an object");
        for (name, was) in [("before_bytes", "before"), ("after_bytes", "after")] {
            let value = fields.remove(name).expect(name);
            fields.insert(was.to_owned(), value);
        }
        for value in [text(&error), former] {
            assert_eq!(serde_json::from_value::<InjectedError>(value).expect("reads"), error);
        }
    }
}
