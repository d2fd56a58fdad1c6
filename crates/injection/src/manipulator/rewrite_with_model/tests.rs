//! Tests of [`super`]: what is asked, what answers are taken, what is refused.

use serde_json::json;

use super::*;
use crate::manipulator::testing::{call, context, reply, request};
use crate::manipulator::{Adaptive, edited_reply, edited_request};
use crate::surface::{RequiredFormat, Reply, Tool, ToolCall};
use crate::trajectory::FailureMode;

const MODE: FailureMode = FailureMode::ReasoningActionMismatch;

/// Runs an edit of a reply; the model says these things, one after the other.
fn run(edit: &RewriteWithModel, before: &Reply, conversation: &Conversation, says: &[&str]) -> Result<Reply, ManipulatorError> {
    let mut answers: Vec<(Question, String)> = Vec::new();
    let mut says = says.iter();
    loop {
        let adaptive = Adaptive { failure_mode: Some(MODE), answers: &answers, ..Adaptive::default() };
        match edited_reply(edit, before, None, &Context { adaptive, ..context(conversation) }) {
            Err(ManipulatorError::Ask(question)) => {
                answers.push((*question, (*says.next().expect("the model is asked once too often")).to_owned()));
            }
            other => return other,
        }
    }
}

fn says(text: &str) -> String {
    json!({"does_not_apply": null, "edited_text": text, "how_it_is_the_mode": "r"}).to_string()
}

/// What one answer of the model makes of a text, or why it is refused.
fn one(text: &str, format: &RequiredFormat, said: &str) -> Result<String, String> {
    by("mast", text, format, said)
}

/// The same by an instruction.
fn by(instruction: &str, text: &str, format: &RequiredFormat, said: &str) -> Result<String, String> {
    let conversation = Conversation { format: format.clone(), ..request("system: You solve.|user: What is 12 + 30?") };
    let instruction = instruction.to_owned();
    let once = RewriteWithModel { instruction, tries: NonZeroU32::MIN, ..RewriteWithModel::default() };
    match run(&once, &reply(text), &conversation, &[said]) {
        Ok(reply) => Ok(reply.answers.first().expect("one").message.text()),
        Err(ManipulatorError::Unusable { tries: 1, why }) => Err(why),
        Err(other) => panic!("{other}"),
    }
}

const BEFORE: &str = "12 + 30 = 42. I am sure of it.\nANSWER: 42";

#[test]
fn a_usable_answer_takes_the_place_of_the_text() {
    let after = BEFORE.replace("ANSWER: 42", "ANSWER: 24");
    let fenced = format!("```json\n{}\n```", says(&after));
    for said in [says(&after), fenced] {
        assert_eq!(one(BEFORE, &RequiredFormat::Text, &said), Ok(after.clone()), "{said}");
    }
}

#[test]
fn hostile_answers_are_refused_with_the_reason() {
    let template = Templates::shipped().find(MODE, Side::Response).expect("a template");
    let leaked = format!("12 + 30 = 42. {}", template.order.split(". ").nth(1).expect("a second sentence"));
    for (said, expected) in [
        ("I'm sorry, but I can't help with that.".to_owned(), "it is a refusal"),
        (says("I’m sorry, I cannot assist with rewriting this."), "`edited_text` is a refusal"),
        (says("As an AI language model I do not do this."), "is a refusal"),
        (says(BEFORE), "nothing differs"),
        (says("12 + 30 = **42**.  I am sure of it. ANSWER: 42"), "nothing differs"),
        ("{\"edited_text\": \"12 + 30".to_owned(), "not the JSON"),
        ("ANSWER: 24".to_owned(), "not the JSON"),
        (json!({"text": "x"}).to_string(), "not the JSON"),
        (String::new(), "not the JSON"),
        (says(""), "is empty"),
        (says("x"), "expected at least"),
        (says(&"24 ".repeat(2000)), "expected at most"),
        (says("12 + 30 = 42, so (FM-2.6) ANSWER: 24"), "“fm-2.”"),
        (says("The answer is now deliberately another: 24"), "gives the edit away"),
        (says("This shows a reasoning-action mismatch: 24"), "reasoning-action mismatch"),
        (says(&leaked), "repeats the instruction"),
        // What a small model makes of the question: its form, copied well or badly.
        (says("12 + 30 = 24\n=== 00000000000000ff ==="), "=== 00000000000000ff"),
        (says("==1c79fec8f87b1a9 12 + 30 = 24"), "no part of the message"),
        (says("## How it is to show\n12 + 30 = 24"), "how it is to show"),
        (says("What the agent answered: 12 + 30 = 24"), "what the agent answered"),
    ] {
        let why = one(BEFORE, &RequiredFormat::Text, &said).expect_err(&said);
        assert!(why.contains(expected), "{said}: {why}");
    }
    // What the agent itself was told is no secret of ours.
    let before = "Write about injection attacks.\nANSWER: a";
    assert!(one(before, &RequiredFormat::Text, &says("Write about injection attacks.\nANSWER: b")).is_ok());
}

#[test]
fn a_required_shape_is_kept() {
    let schema = RequiredFormat::JsonSchema {
        name: "v".to_owned(),
        schema: json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}),
    };
    for (before, format, after, expected) in [
        (r#"{"ok": true}"#, &schema, r#"{"ok": false}"#, Ok(())),
        (r#"{"ok": true}"#, &schema, r#"{"ok": "no"}"#, Err("does not fit the schema")),
        (r#"{"ok": true}"#, &schema, "not ok at all", Err("must be JSON")),
        (r#"{"ok": true}"#, &RequiredFormat::JsonObject, "[1, 2, 3]", Err("must be a JSON object")),
        (r#"{"ok": true}"#, &RequiredFormat::Text, r#"{"ok": false}"#, Ok(())),
        (r#"{"ok": true}"#, &RequiredFormat::Text, r#"{"fine": false}"#, Err("lost the key `ok`")),
        (r#"{"ok": true}"#, &RequiredFormat::Text, "it is not ok", Err("JSON of the same shape")),
        ("[1, 2, 3]", &RequiredFormat::Text, "[1, 2, 4]", Ok(())),
    ] {
        let edited = by("Err somewhere.", before, format, &says(after));
        match expected {
            Ok(()) => assert_eq!(edited.as_deref(), Ok(after)),
            Err(expected) => assert!(edited.as_ref().is_err_and(|why| why.contains(expected)), "{after}: {edited:?}"),
        }
    }
}

fn calling(arguments: &str) -> (Reply, Conversation) {
    let mut before = reply("");
    let answer = before.answers.first_mut().expect("one");
    answer.message.parts.clear();
    answer.message.tool_calls = vec![call("add", arguments), call("say", "{}")];
    answer.finish_reason = Some("tool_calls".to_owned());
    let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let tool = |name: &str, parameters: serde_json::Value| Tool { name: name.to_owned(), parameters, ..Tool::default() };
    let tools = vec![tool("add", parameters), tool("say", json!({})), tool("stop", json!({}))];
    (before, Conversation { tools, ..request("user: add") })
}

#[test]
fn tool_calls_keep_ids_and_fit_their_tools() {
    let (before, conversation) = calling("{\"a\": 1}");
    let instruction = "Err in a call.".to_owned();
    let once = RewriteWithModel { instruction, tries: NonZeroU32::MIN, ..RewriteWithModel::default() };
    let edit = |text: &str, calls: serde_json::Value| {
        let said = json!({"edited_text": text, "calls": calls, "how_it_is_the_mode": "r"}).to_string();
        run(&once, &before, &conversation, &[&said]).map(|mut reply| reply.answers.remove(0))
    };
    let made = |id: &str, name: &str, arguments: &str| json!({"id": id, "name": name, "arguments": arguments});
    let kept = made("id-say", "say", "{}");
    let answer = edit("", json!([made("id-add", "add", "{\"a\": 2}"), kept])).expect("usable");
    let calls: Vec<(&str, &str)> =
        answer.message.tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("id-add", "{\"a\": 2}"), ("id-say", "{}")]);
    assert!(answer.message.parts.is_empty() && answer.finish_reason.as_deref() == Some("tool_calls"));
    let ended = edit("That will do.", json!([])).expect("usable");
    assert_eq!((ended.message.text().as_str(), ended.finish_reason.as_deref()), ("That will do.", Some("stop")));
    for (calls, expected) in [
        (json!([made("id-add", "add", "{\"a\": 1}"), kept]), "nothing differs"),
        (json!([made("id-x", "add", "{\"a\": 2}")]), "no tool call has the id"),
        (json!([made("id-add", "subtract", "{\"a\": 2}")]), "no tool on offer"),
        (json!([made("id-add", "add", "{a: 2}")]), "are not JSON"),
        (json!([made("id-add", "add", "{\"a\": \"two\"}")]), "do not fit the tool"),
        (json!([kept, kept]), "occurs twice"),
        (json!([]), "is empty"),
        (json!(null), "`calls` is missing"),
    ] {
        match edit("", calls.clone()) {
            Err(ManipulatorError::Unusable { why, .. }) => assert!(why.contains(expected), "{calls}: {why}"),
            other => panic!("{calls}: {other:?}"),
        }
    }
    let unchanged: Vec<ToolCall> = before.answers.first().expect("one").message.tool_calls.clone();
    assert_eq!(unchanged.len(), 2);
}

#[test]
fn a_model_may_say_that_the_mode_does_not_apply() {
    let conversation = request("user: What is 12 + 30?");
    let says = |field: serde_json::Value| {
        json!({"does_not_apply": field, "edited_text": BEFORE.replace("ANSWER: 42", "ANSWER: 24"), "how_it_is_the_mode": "r"}).to_string()
    };
    let edit = RewriteWithModel { tries: NonZeroU32::MIN, ..RewriteWithModel::default() };
    for (field, declined) in [
        (json!("there is nothing to act on"), Some("there is nothing to act on")),
        (json!(true), Some("no reason given")),
        (json!("No."), None),
        (json!("n/a"), None),
        (json!(""), None),
        (json!(false), None),
        (json!(null), None),
    ] {
        let edited = run(&edit, &reply(BEFORE), &conversation, &[&says(field.clone())]);
        match (declined, edited) {
            (None, Ok(_)) => {}
            (Some(reason), Err(error @ ManipulatorError::Declined { .. })) => {
                assert!(error.is_nothing() && error.to_string().ends_with(reason), "{error}");
            }
            (_, other) => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn no_model_is_asked_where_the_mode_cannot_be() {
    let conversation = request("system: You solve.|user: What is 12 + 30?");
    for (mode, text, missing) in [
        (FailureMode::LossOfConversationHistory, BEFORE, "nothing that was said"),
        (FailureMode::IgnoredInput, BEFORE, "no words of another agent"),
        (FailureMode::IncorrectVerification, "12 + 30 = 42", "gives no verdict"),
        (FailureMode::TaskDerailment, "```sh\nls\n```", "is no text"),
    ] {
        let adaptive = Adaptive { failure_mode: Some(mode), ..Adaptive::default() };
        let edited =
            edited_reply(&RewriteWithModel::default(), &reply(text), None, &Context { adaptive, ..context(&conversation) });
        assert!(matches!(&edited, Err(ManipulatorError::NotApplicable(why)) if why.contains(missing)), "{edited:?}");
        let own = RewriteWithModel { instruction: "Err.".to_owned(), ..RewriteWithModel::default() };
        let edited = edited_reply(&own, &reply(text), None, &Context { adaptive, ..context(&conversation) });
        assert!(matches!(edited, Err(ManipulatorError::Ask(_))), "an instruction of one's own: {edited:?}");
    }
}

#[test]
fn calls_are_left_alone_under_modes_that_are_not_about_them() {
    let (mut before, conversation) = calling("{\"a\": 1}");
    before.answers.first_mut().expect("one").message.set_text("I add what is asked.");
    let adaptive = |answers| Adaptive { failure_mode: Some(FailureMode::TaskDerailment), answers, ..Adaptive::default() };
    let edit = RewriteWithModel::default();
    let asked = edited_reply(&edit, &before, None, &Context { adaptive: adaptive(&[]), ..context(&conversation) });
    let Err(ManipulatorError::Ask(question)) = asked else { panic!("a model must be asked: {asked:?}") };
    assert!(question.schema.pointer("/properties/calls").is_none());
    let answers = [(*question, says("I would rather look at the history of sums."))];
    let edited = edited_reply(&edit, &before, None, &Context { adaptive: adaptive(&answers), ..context(&conversation) });
    let edited = edited.expect("usable").answers.remove(0).message;
    assert!(edited.text().contains("history"));
    assert_eq!(edited.tool_calls, before.answers.first().expect("one").message.tool_calls);
}

#[test]
fn what_a_tool_said_is_not_rewritten() {
    let mut conversation = request("user: What is 12 + 30?|user: 42");
    conversation.messages.get_mut(1).expect("a message").role = Role::Tool;
    let adaptive = Adaptive { failure_mode: Some(FailureMode::TaskDerailment), ..Adaptive::default() };
    let asked = edited_request(&RewriteWithModel::default(), &conversation, &Context { adaptive, ..context(&conversation) });
    let Err(ManipulatorError::Ask(question)) = asked else { panic!("a model must be asked: {asked:?}") };
    assert!(question.user.trim_end().rsplit_once("What is 12 + 30?").is_some_and(|(_, rest)| !rest.contains("42")));
}

#[test]
fn it_asks_again_with_the_reason_and_gives_up_after_its_tries() {
    let conversation = request("user: What is 12 + 30?");
    let good = says("12 + 30 = 42. I am sure of it.\nANSWER: 24");
    let edit = RewriteWithModel::default();
    let edited = run(&edit, &reply(BEFORE), &conversation, &["{", &says(BEFORE), &good]).expect("the third is usable");
    assert!(edited.answers.first().expect("one").message.text().ends_with("24"));
    let failed = run(&edit, &reply(BEFORE), &conversation, &["{", "{", &says(BEFORE)]);
    assert!(matches!(&failed, Err(ManipulatorError::Unusable { tries: 3, why }) if why.contains("nothing differs")));
    let question = Question {
        template: String::new(),
        system: "s".to_owned(),
        user: "u".to_owned(),
        refused: vec![("{".to_owned(), "it is not JSON".to_owned())],
        schema: json!({}),
        max_tokens: 1,
    };
    let asked = question.conversation();
    let texts: Vec<String> = asked.messages.iter().map(Message::text).collect();
    assert_eq!(texts.get(..3).map(<[String]>::concat), Some("su{".to_owned()));
    assert!(texts.last().is_some_and(|text| text.contains("it is not JSON")));
}

#[test]
fn the_question_holds_the_real_agent() {
    let mut conversation = request("system: You are Sol, a careful solver.|user: A first task.|user: What is 12 + 30?");
    conversation.messages.get_mut(1).expect("a message").name = Some("planner".to_owned());
    let edit = RewriteWithModel::default();
    let adaptive = Adaptive { failure_mode: Some(MODE), task: Some("Add 12 and 30; how many is it?"), ..Adaptive::default() };
    let context = Context { adaptive, ..context(&conversation) };
    let Err(ManipulatorError::Ask(question)) = edited_reply(&edit, &reply(BEFORE), None, &context) else {
        panic!("a model must be asked");
    };
    for part in [
        "FM-2.6 reasoning-action mismatch (MAST-2503.13657v2): acts against its own reasoning.",
        "You are Sol, a careful solver.",
        "user (planner): A first task.",
        "Add 12 and 30; how many is it?",
        "Kind of task: maths",
        "Keep every line of the calculation",
        BEFORE,
        "what the agent answered",
    ] {
        assert!(question.user.contains(part), "{part}: {}", question.user);
    }
    assert_eq!(question.template, "FM-2.6 response maths v1");
    let Err(ManipulatorError::Ask(question)) = edited_request(&edit, &conversation, &context) else {
        panic!("a model must be asked");
    };
    assert!(question.user.contains("about to be asked") && question.template.contains("request maths"));
    let own = RewriteWithModel { instruction: "Be curt.".to_owned(), wrong_answer: true, ..edit };
    let Err(ManipulatorError::Ask(question)) = edited_reply(&own, &reply(BEFORE), None, &context) else {
        panic!("a model must be asked");
    };
    assert!(question.user.contains("Be curt.\nThe final answer") && question.template == "own");
}

#[test]
fn content_that_is_no_text_stays() {
    let mut conversation = request("user: What is 12 + 30, as in the picture?");
    let message = conversation.messages.first_mut().expect("one");
    message.parts.push(crate::surface::Part::Opaque("image_url".to_owned()));
    let edit = RewriteWithModel::default();
    let run = |answers: &[(Question, String)]| {
        let adaptive = Adaptive { failure_mode: Some(MODE), answers, ..Adaptive::default() };
        edited_request(&edit, &conversation, &Context { adaptive, ..context(&conversation) })
    };
    let Err(ManipulatorError::Ask(question)) = run(&[]) else { panic!("a model must be asked") };
    let edited = run(&[(*question, says("What is 12 + 31, as in the picture?"))]).expect("usable");
    let parts = &edited.messages.first().expect("one").parts;
    assert_eq!(parts.len(), 2);
    assert_eq!(parts.first().and_then(crate::surface::Part::as_text), Some("What is 12 + 31, as in the picture?"));
}

#[test]
fn templates_can_be_replaced_and_a_mode_is_needed() {
    let shipped = include_str!("../../../../../plans/mast/templates/fm-2.6.toml");
    let own = Templates::parse(&shipped.replace("version = 1", "version = 9")).expect("reads");
    let conversation = request("user: q");
    let edit = RewriteWithModel::default();
    let adaptive = Adaptive { failure_mode: Some(MODE), templates: Some(&own), ..Adaptive::default() };
    match edited_reply(&edit, &reply(BEFORE), None, &Context { adaptive, ..context(&conversation) }) {
        Err(ManipulatorError::Ask(question)) => assert_eq!(question.template, "FM-2.6 response general v9"),
        other => panic!("{other:?}"),
    }
    let without = edited_reply(&edit, &reply(BEFORE), None, &context(&conversation));
    assert!(matches!(without, Err(ManipulatorError::NotApplicable(why)) if why.contains("failure mode")));
    let silent = edited_reply(&edit, &reply(" "), None, &context(&conversation));
    assert!(matches!(silent, Err(ManipulatorError::NotApplicable(why)) if why.contains("no text")));
}

#[test]
fn parameters_are_checked() {
    let base = RewriteWithModel::default;
    for (edit, side, expected) in [
        (RewriteWithModel { instruction: " ".to_owned(), ..base() }, Side::Response, Some("`instruction` is empty")),
        (RewriteWithModel { tries: NonZeroU32::MAX, ..base() }, Side::Response, Some("expected 1 to 10")),
        (RewriteWithModel { message: InstructionTarget::System, ..base() }, Side::Response, Some("leave it out")),
        (RewriteWithModel { message: InstructionTarget::System, ..base() }, Side::Request, None),
        (base(), Side::Response, None),
    ] {
        assert_eq!(edit.check(side).err().map(|why| why.contains(expected.unwrap_or("?"))), expected.map(|_| true));
    }
}
