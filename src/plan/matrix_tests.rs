//! Manipulator × surface × {whole, stream}: every example of the catalogue, played on every surface of the list. What
//! cannot apply says why; `docs/surfaces.md` holds the table.

use std::collections::BTreeMap;

use super::{Check, Injection, Operator, parse};
use crate::{
    manipulator::{Adaptive, Context},
    plan::{Operation, catalogue},
    surface::{self, Answer, Conversation, Reply, Surface, SurfaceError, ToolCall},
    trajectory::{Side, Usage},
};

/// What an edit says, in terms that every surface has.
type Said = Vec<(String, Vec<(String, String)>)>;

/// Plays an example on a surface: nothing where it works whole and streamed alike, otherwise why it cannot.
fn play(surface: &dyn Surface, injection: &Injection, check: &Check) -> Result<(), String> {
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let asked = Conversation { messages: check.messages.clone(), ..blank.clone() };
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
            let after = injection.edit_request(&asked, &context).map_err(|error| error.to_string())?;
            let written = surface.write_request(&body, &asked, &after).map_err(|error| reason(&error))?;
            let read = surface.read_request(&written).expect("still a request");
            assert_eq!(asked_for(&read), asked_for(&after), "{surface:?} {}", injection.name);
            assert_ne!(written, body);
            Ok(())
        }
        (Operator::Manipulator { side: Side::Response, .. }, Some(answer)) => {
            reply(surface, injection, answer, &context)
        }
        _ => unreachable!("{} is a manipulator with an example", injection.name),
    }
}

fn reply(surface: &dyn Surface, injection: &Injection, answer: &Answer, context: &Context<'_>) -> Result<(), String> {
    let usage = Some(Usage { input: 9, output: 9 });
    let said = Reply { id: "chatcmpl-1".to_owned(), answers: vec![answer.clone()], usage, ..Reply::default() };
    let whole = surface.compose(&said, 1);
    let stream = surface.compose_stream(&said, 1, false).concat();
    let read = surface.read_reply(&whole).map_err(|error| error.to_string())?;
    let after = injection.edit_reply(&read, context).map_err(|error| error.to_string())?;
    let written = surface.write_reply(&whole, &read, &after).map_err(|error| reason(&error))?;
    let streamed = surface.read_stream(&stream).expect("a stream");
    let after_streamed = injection.edit_reply(&streamed, context).expect("what applies whole applies streamed");
    let written_stream = surface.write_stream(&stream, &streamed, &after_streamed).expect("the same place");
    let (whole_says, stream_says) = (surface.read_reply(&written), surface.read_stream(&written_stream));
    let (whole_says, stream_says) = (whole_says.expect("still a reply"), stream_says.expect("still a stream"));
    assert_eq!(answered(&whole_says), answered(&after), "{surface:?} {} whole", injection.name);
    assert_eq!(answered(&stream_says), answered(&after), "{surface:?} {} streamed", injection.name);
    assert_eq!(finish(&whole_says), finish(&stream_says), "{surface:?} {}", injection.name);
    Ok(())
}

fn asked_for(conversation: &Conversation) -> Said {
    conversation.messages.iter().map(|m| (m.text(), calls(&m.tool_calls))).collect()
}

fn answered(reply: &Reply) -> Said {
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
        let plain = |check: &&Check| !check.expect.contains(&super::check::Expect::Changed(false));
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
    let page = include_str!("../../docs/surfaces.md");
    let table = table();
    assert!(page.contains(&table), "docs/surfaces.md is to hold:\n\n{table}");
    for surface in ["openai_chat", "openai_responses", "anthropic_messages"] {
        let column = surface::ALL.iter().position(|known| known.name() == surface).expect("listed") + 2;
        let mut cells =
            table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(column));
        assert!(cells.all(|cell| cell.trim() == "yes"), "{surface} has a place for all:\n{table}");
    }
}
