//! Manipulator × surface × {whole, stream}: every example of the catalogue, played on every surface of the list. What
//! cannot apply says why; `matrix.md` holds the table.

use std::collections::BTreeMap;

use super::{Injection, Operator, PlanCheck, parse};
use crate::{
    manipulator::{Adaptive, Context},
    plan::{Operation, catalogue},
    surface::{self, Answer, Conversation, Message, Reply, Role, Surface, SurfaceError, Tool, ToolCall},
    trajectory::{Side, Usage},
};

/// What an edit says, in terms that every surface has.
type EditSummary = Vec<(String, Vec<(String, String)>)>;

/// Plays an example on a surface: nothing where it works whole and streamed alike, otherwise why it cannot.
fn play(surface: &dyn Surface, injection: &Injection, check: &PlanCheck) -> Result<(), String> {
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let tools = check.tools.iter().map(|name| Tool { name: name.clone(), ..Tool::default() }).collect();
    let asked = Conversation { messages: check.messages.clone(), tools, ..blank.clone() };
    let body = surface.write_request(surface.blank_request(), &blank, &asked).map_err(|error| reason(&error))?;
    let asked = surface.read_request(&body).expect("what was written can be read");
    // Who carries a name has spoken before: a surface without names knows agents by their earlier answers.
    let spoken = check.messages.iter().filter_map(|message| Some((message.name.clone()?, message.text())));
    let earlier: Vec<_> = check.earlier.iter().cloned().chain(spoken).collect();
    let context = Context {
        agent: &check.agent,
        conversation: &asked,
        earlier: &earlier,
        draw: 7,
        adaptive: Adaptive::default(),
    };
    match (&injection.operator, &check.answer) {
        (Operator::Manipulator { side: Side::Request, .. }, _) => {
            let after = check.with_answer(&mut Vec::new(), |adaptive| {
                injection.edit_request(&asked, &Context { adaptive, ..context })
            })?;
            let written = surface.write_request(&body, &asked, &after).map_err(|error| reason(&error))?;
            let read = surface.read_request(&written).expect("still a request");
            assert_eq!(asked_for(surface, &read), asked_for(surface, &after), "{surface:?} {}", injection.name);
            assert_ne!(written, body);
            Ok(())
        }
        (Operator::Manipulator { side: Side::Response, .. }, Some(answer)) => {
            reply(surface, injection, check, answer, &context)
        }
        _ => unreachable!("{} is a manipulator with an example", injection.name),
    }
}

fn reply(
    surface: &dyn Surface,
    injection: &Injection,
    check: &PlanCheck,
    answer: &Answer,
    context: &Context<'_>,
) -> Result<(), String> {
    let edit = |said: &Reply| {
        check.with_answer(&mut Vec::new(), |adaptive| injection.edit_reply(said, &Context { adaptive, ..*context }))
    };
    let usage = Some(Usage { input: 9, output: 9 });
    let said = Reply { id: "chatcmpl-1".to_owned(), answers: vec![answer.clone()], usage, ..Reply::default() };
    let whole = surface.compose(&said, 1);
    let stream = surface.compose_stream(&said, 1, false).concat();
    let read = surface.read_reply(&whole).map_err(|error| error.to_string())?;
    let after = edit(&read)?;
    let written = surface.write_reply(&whole, &read, &after).map_err(|error| reason(&error))?;
    let streamed = surface.read_stream(&stream).expect("a stream");
    let after_streamed = edit(&streamed).expect("what applies whole applies streamed");
    let written_stream = surface.write_stream(&stream, &streamed, &after_streamed).expect("the same place");
    let (whole_says, stream_says) = (surface.read_reply(&written), surface.read_stream(&written_stream));
    let (whole_says, stream_says) = (whole_says.expect("still a reply"), stream_says.expect("still a stream"));
    assert_eq!(answered(&whole_says), answered(&after), "{surface:?} {} whole", injection.name);
    assert_eq!(answered(&stream_says), answered(&after), "{surface:?} {} streamed", injection.name);
    assert_eq!(finish(&whole_says), finish(&stream_says), "{surface:?} {}", injection.name);
    Ok(())
}

/// What a request asks, as far as the surface can say it: who says what, which tools are on offer, the parameters.
fn asked_for(surface: &dyn Surface, conversation: &Conversation) -> impl PartialEq + std::fmt::Debug {
    let said = |m: &Message| (m.role, m.text(), calls(&m.tool_calls));
    let mut messages: Vec<_> = conversation.messages.iter().map(said).collect();
    if surface.name() == "openai_completions" {
        // There is one prompt: what an edit adds is joined to it.
        let texts: Vec<_> = conversation.messages.iter().map(Message::text).collect();
        messages = vec![(Role::User, texts.join("\n\n"), Vec::new())];
    }
    let tools: Vec<_> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    let Conversation { model, max_tokens, stop, sampling, tool_choice, .. } = conversation.clone();
    (messages, tools, tool_choice, (model, max_tokens, stop, sampling))
}

fn answered(reply: &Reply) -> EditSummary {
    reply.answers.iter().map(|answer| (answer.message.text(), calls(&answer.message.tool_calls))).collect()
}

fn finish(reply: &Reply) -> Vec<Option<String>> {
    reply.answers.iter().map(|answer| answer.finish_reason.clone()).collect()
}

fn calls(calls: &[ToolCall]) -> Vec<(String, String)> {
    calls.iter().map(|call| (call.name.clone(), call.arguments.split_whitespace().collect())).collect()
}

fn reason(error: &SurfaceError) -> String {
    match error {
        SurfaceError::NoPlace(why) => why.clone(),
        other @ SurfaceError::Unreadable { .. } => panic!("{other}"),
    }
}

/// The table as the page holds it: a mark, or the number of a reason.
fn table() -> String {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut order = Vec::new();
    let names: Vec<_> = surface::ALL.iter().map(|surface| format!("`{}`", surface.name())).collect();
    let mut rows =
        vec![format!("| manipulator | {} |", names.join(" | ")), format!("|---|{}", "---|".repeat(names.len()))];
    for entry in catalogue().into_iter().filter(|entry| entry.operation != Operation::Fault) {
        let plan = parse(&entry.example, entry.name).expect("an example");
        let injection = plan.injections.iter().find(|injection| injection.name == entry.name).expect("of its own");
        let plain = |check: &&PlanCheck| !check.expect.contains(&super::check::Expect::Changed(false));
        let check = plan.checks.iter().find(plain).expect("a check that changes something");
        let cell = |surface: &&'static dyn Surface| match play(*surface, injection, check) {
            Ok(()) => "yes".to_owned(),
            Err(why) => {
                let next = reasons.len() + 1;
                let number = *reasons.entry(why.clone()).or_insert_with(|| {
                    order.push(why);
                    next
                });
                format!("no ({number})")
            }
        };
        let cells: Vec<_> = surface::ALL.iter().map(cell).collect();
        rows.push(format!("| `{}` | {} |", entry.name, cells.join(" | ")));
    }
    rows.push(String::new());
    rows.extend(order.iter().enumerate().map(|(at, why)| format!("{}. {why}", at + 1)));
    rows.join("\n") + "\n"
}

#[test]
fn every_manipulator_works_on_every_surface_or_says_why_not() {
    let page = include_str!("matrix.md");
    let table = table();
    assert!(page.contains(&table), "matrix.md is to hold:\n\n{table}");
    for surface in ["openai_chat", "openai_responses", "anthropic_messages"] {
        let column = surface::ALL.iter().position(|known| known.name() == surface).expect("listed") + 2;
        let mut cells =
            table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(column));
        assert!(cells.all(|cell| cell.trim() == "yes"), "{surface} has a place for all:\n{table}");
    }
}
