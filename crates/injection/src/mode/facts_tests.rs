//! Tests of [`super`]: the mistakes that were found in labels of real teams, and what is possible beside them.

use super::*;
use crate::surface::ToolCall;

fn request(lines: &[&str]) -> Conversation {
    let message = |line: &&str| {
        let (who, text) = line.split_once(": ").expect("role: text");
        let (role, name) = who.split_once('(').unwrap_or((who, ""));
        let role = match role {
            "system" => Role::System,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::User,
        };
        let name = name.strip_suffix(')').map(str::to_owned);
        Message { name, ..Message::text_of(role, text) }
    };
    Conversation { messages: lines.iter().map(message).collect(), ..Conversation::default() }
}

fn answer(text: &str, calls: usize) -> Answer {
    let call =
        ToolCall { name: "lookup".to_owned(), arguments: "{\"item\":\"clock\"}".to_owned(), ..ToolCall::default() };
    let message = Message { tool_calls: vec![call; calls], ..Message::text_of(Role::Assistant, text) };
    Answer { index: 0, message, finish_reason: None }
}

/// A call of a team of four: intake, pricer with tools, auditor, writer.
struct Case {
    agent: &'static str,
    request: Conversation,
    answer: Answer,
    earlier: Vec<(String, String)>,
    later: Vec<String>,
}

fn earlier(replies: &[(&str, &str)]) -> Vec<(String, String)> {
    replies.iter().map(|(agent, text)| ((*agent).to_owned(), (*text).to_owned())).collect()
}

const ITEMS: &str = "ITEMS: 2 clock; 3 chair; 3 mug";
const SUBTOTAL: &str = "2 x 12 = 24 and 3 x 33 = 99.\nSubtotal: 123";

fn intake() -> Case {
    Case {
        agent: "intake",
        request: request(&[
            "system: You are the intake. List the items of the order.",
            "user: Two clocks, three chairs.",
        ]),
        answer: answer(ITEMS, 0),
        earlier: Vec::new(),
        later: vec!["pricer".to_owned(), "auditor".to_owned(), "writer".to_owned()],
    }
}

fn pricer_calls() -> Case {
    let told = format!("user: Price these.\n{ITEMS}");
    Case {
        agent: "pricer",
        request: request(&["system: You are the pricer. Look each price up.", &told]),
        answer: answer("", 1),
        earlier: earlier(&[("intake", ITEMS)]),
        later: vec!["pricer".to_owned(), "auditor".to_owned()],
    }
}

fn auditor() -> Case {
    let told = format!("user: {SUBTOTAL}");
    Case {
        agent: "auditor",
        request: request(&["system: You are the auditor. Check the sum; say APPROVE or REVISE.", &told]),
        answer: answer("APPROVE. I recomputed the sum.", 0),
        earlier: earlier(&[("intake", ITEMS), ("pricer", SUBTOTAL)]),
        later: vec!["writer".to_owned()],
    }
}

fn writer() -> Case {
    let told = format!("user: Approved.\n{SUBTOTAL}");
    Case {
        agent: "writer",
        request: request(&["system: You are the writer. End with a line `TOTAL: <number>`.", &told]),
        answer: answer("The order comes to 123.\nTOTAL: 123", 0),
        earlier: earlier(&[("intake", ITEMS), ("pricer", SUBTOTAL), ("auditor", "APPROVE. I recomputed the sum.")]),
        later: Vec::new(),
    }
}

impl Case {
    fn observed(&self) -> ObservedCall<'_> {
        ObservedCall {
            agent: self.agent,
            request: Some(&self.request),
            answer: Some(&self.answer),
            earlier: &self.earlier,
            later: Some(&self.later),
        }
    }

    /// The modes that cannot be at the call, by code.
    fn impossible(&self, side: Side) -> String {
        let cannot = FailureMode::ALL.iter().filter(|mode| unmet(**mode, side, &self.observed()).is_some());
        cannot.map(|mode| mode.code().trim_start_matches("FM-")).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn each_call_of_a_team_with_tools_can_be_of_what_it_can_be_of() {
    for (case, request, response) in [
        // Who speaks first has heard nobody and checks nothing, and says nothing of an end.
        (intake(), "1.3 1.4 1.5 2.1 2.5 2.6 3.2 3.3", "1.3 1.4 1.5 2.1 2.5 2.6 3.2 3.3"),
        // A bare tool call is no words; it can repeat a step.
        (pricer_calls(), "1.5 2.6 3.2 3.3", "1.1 1.2 1.4 1.5 2.1 2.2 2.3 2.4 2.5 2.6 3.1 3.2 3.3"),
        (auditor(), "1.5", ""),
        // Who speaks last keeps nothing from anybody, and nothing was left to do.
        (writer(), "2.4 3.1 3.2 3.3", "2.4 3.1 3.2 3.3"),
    ] {
        let agent = case.agent;
        assert_eq!(case.impossible(Side::Request), request, "{agent}, request");
        assert_eq!(case.impossible(Side::Response), response, "{agent}, response");
    }
}

#[test]
fn what_is_not_known_forbids_nothing() {
    let nothing = ObservedCall { agent: "a", request: None, answer: None, earlier: &[], later: None };
    for mode in FailureMode::ALL {
        for side in [Side::Request, Side::Response] {
            assert_eq!(unmet(*mode, side, &nothing), None, "{} {side:?}", mode.code());
        }
    }
}

#[test]
fn words_of_another_are_known_by_name_or_as_a_quotation() {
    for (lines, said, expected) in [
        (&["user(planner): Add 12 and 30."][..], &[][..], true),
        (&["user(user): Add 12 and 30."], &[], false),
        (&["user(solver): I add."], &[], false),
        (&["user: Add."], &[("planner", "1. Take twelve.\n2. Add thirty.")], false),
        (
            &["user: Plan:\n1. Take twelve.\n2. Add thirty.\nGo."],
            &[("planner", "1. Take twelve.\n2. Add thirty.")],
            true,
        ),
        (&["user: Your own: 1. Take twelve."], &[("solver", "1. Take twelve.")], false),
        (&["user: The sum of 42 boxes"], &[("planner", "42")], false),
        (&["user: planner says: 42"], &[("planner", "42")], true),
        (
            &["user: Take twelve boxes."],
            &[("planner", "Take twelve boxes.\nThen do what follows from it, in order.")],
            false,
        ),
    ] {
        let conversation = request(lines);
        let replies = earlier(said);
        let call = ObservedCall {
            agent: "solver",
            request: Some(&conversation),
            answer: None,
            earlier: &replies,
            later: None,
        };
        assert_eq!(call.holds(Precondition::PeerInput, Side::Request), Some(expected), "{lines:?} {said:?}");
    }
}

#[test]
fn an_agents_own_turn_is_history_and_a_step_that_it_can_repeat() {
    let conversation = request(&["user: Add.", "assistant: 42", "user: Again."]);
    let call = ObservedCall { agent: "a", request: Some(&conversation), answer: None, earlier: &[], later: None };
    assert_eq!(call.holds(Precondition::History, Side::Request), Some(true));
    let own = earlier(&[("a", "42")]);
    let fresh = request(&["user: Add."]);
    let call = ObservedCall { agent: "a", request: Some(&fresh), answer: None, earlier: &own, later: None };
    assert_eq!(call.holds(Precondition::History, Side::Request), Some(false), "it was not told of it");
    assert_eq!(call.holds(Precondition::CompletedStep, Side::Request), Some(true));
}

#[test]
fn what_a_request_says_of_words_roles_and_checks_is_told_from_it_alone() {
    use Precondition::{Checking, Prose, Role};
    for (lines, prose, role) in [
        (&["system: Add two numbers.", "user: 1 and 2"][..], true, true),
        (&["user: You are the solver. Add."], true, true),
        (&["user: Add."], true, false),
        (&["user: ```python\nprint(1)\n```", "assistant: I add."], false, false),
    ] {
        let conversation = request(lines);
        let call = ObservedCall { agent: "a", request: Some(&conversation), answer: None, earlier: &[], later: None };
        let holds = [Prose, Role].map(|one| call.holds(one, Side::Request));
        assert_eq!(holds, [Some(prose), Some(role)], "{lines:?}");
        assert_eq!(call.holds(Prose, Side::Response), None, "{lines:?}: no reply is known");
    }
    let conversation = request(&["system: You are the solver.", "user: Add."]);
    for (text, expected) in [("I recomputed it.", true), ("APPROVE", true), ("It is 3.", false)] {
        let answer = answer(text, 0);
        let call =
            ObservedCall { agent: "a", request: Some(&conversation), answer: Some(&answer), earlier: &[], later: None };
        assert_eq!(call.holds(Checking, Side::Response), Some(expected), "{text}");
    }
}

#[test]
fn a_quotation_is_the_larger_part_of_what_was_said() {
    for (text, said, expected) in [
        ("They say: 42", "42", true),
        ("They say 142", "42", false),
        ("42 it is", "42", false),
        ("anything", "", false),
        ("Take twelve.\nAdd it all.", "Take twelve.\nAdd it all.\nNo.", true),
        ("Take twelve.", "Take twelve.\nTake thirteen.", false),
        ("Take thirteen.", "Take twelve.\nTake thirteen.", true),
        ("Take twelve.", "Take twelve.\nAdd thirty.", true),
        ("1234567", "12345678", false),
        ("x 1234567 y", "1234567", false),
        ("x 12345678 y", "12345678", true),
    ] {
        assert_eq!(quotes(text, said), expected, "{text:?} {said:?}");
    }
}

/// A recorded call of one agent, with what it was asked and answered.
fn recorded(number: u32, agent: &str, asked: &str, answered: &str) -> Step {
    use crate::trajectory::{AgentName, sample};
    let mut step = sample::step(&[], &[(sample::DONE, 200)]);
    (step.step, step.attribution.agent) = (number, AgentName::parse(agent).expect("a name"));
    step.request =
        serde_json::json!({"model": "m", "messages": [{"role": "user", "content": asked}]}).to_string().into();
    let message = serde_json::json!({"role": "assistant", "content": answered});
    step.attempts[0].reply = serde_json::json!({"choices": [{"index": 0, "message": message}]}).to_string().into();
    step
}

#[test]
fn what_is_so_in_a_recorded_run_is_read_from_its_calls() {
    use Precondition::{LaterCall, LaterPeer, PeerInput, ReasonedAction};
    let plan = "Take twelve of them first.";
    let mut steps = vec![
        recorded(0, "planner", "Plan.", plan),
        recorded(1, "solver", &format!("Carry out:\n{plan}"), "12 + 30 = 42\nANSWER: 42"),
        recorded(2, "solver", "Again.", "42"),
    ];
    let of =
        |steps: &[Step], reference: &[Step], place, needed, side| of_run(steps, reference).holds(place, needed, side);
    let request = |place, needed| of(&steps, &[], place, needed, Side::Request);
    assert_eq!([0, 1].map(|place| request(place, PeerInput)), [Some(false), Some(true)]);
    assert_eq!([0, 1, 2].map(|place| request(place, LaterPeer)), [Some(true), Some(false), Some(false)]);
    assert_eq!([1, 2].map(|place| request(place, LaterCall)), [Some(true), Some(false)]);
    // A run that an error ended has the calls of its reference after it.
    let reference = [recorded(2, "critic", "Check.", "Fine."), recorded(3, "critic", "Check.", "Fine.")];
    let ended = |place, needed| of(&steps[..3], &reference, place, needed, Side::Request);
    assert_eq!([ended(2, LaterCall), ended(1, LaterPeer)], [Some(true), Some(true)]);
    let none_after = of(&steps, &reference[..1], 2, LaterCall, Side::Request);
    assert_eq!(none_after, Some(false), "its own step is none that comes after it");
    let facts = of_run(&steps, &[]);
    assert_eq!(facts.unmet(0, FailureMode::IgnoredInput, Side::Request), Some(PeerInput));
    assert_eq!(facts.unmet(1, FailureMode::IgnoredInput, Side::Request), None);
    assert_eq!(facts.unmet(9, FailureMode::IgnoredInput, Side::Request), None, "no such step");
    // What was answered to an edited request is no answer to what the agent asked.
    let reasons = |steps: &[Step], side| of(steps, &[], 1, ReasonedAction, side);
    assert_eq!(reasons(&steps, Side::Request), Some(true));
    steps[1].request_sent = Some(steps[1].request.clone());
    assert_eq!([Side::Request, Side::Response].map(|side| reasons(&steps, side)), [None, Some(true)]);
    // Peers hear what was delivered.
    steps[0].attempts[0].reply_delivered = Some(steps[2].attempts[0].reply.clone());
    assert_eq!(of(&steps, &[], 1, PeerInput, Side::Request), Some(false));
}
