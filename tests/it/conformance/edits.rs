//! What each manipulator makes of each shape: exactly what was meant, or nothing and a reason.

use std::{fs, path::Path};

use aegis::{
    manipulator::{Adaptive, Context},
    plan::{Injection, Plan},
    recording::{ManipulatorFailure, Recording},
    surface::{Answer, Conversation, Reply},
    trajectory::Step,
};

use super::{
    reading::read,
    shapes::{Ending, Meant, Shape},
    upstream::PEER,
};

/// Edits whose words come of a draw or of a model: they change the answer, and nothing more is known of them here.
const DRAWN: &[&str] = &["garble", "rewrite_with_model", "neutral_change"];

/// Words of the shapes that are looked for where an edit took them away.
const OLD_WORDS: &[&str] = &["twice", "approve", "Oslo", "Bergen", "get_weather", "get_time"];

/// A plan of `tests/shapes`, and the agents that it aims at, one an injection.
pub fn plan(file: &str) -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let plan: toml::Table = text.parse().expect("TOML");
    let agent = |injection: &toml::Value| injection["agent"].as_str().expect("an agent").to_owned();
    let agents = plan["injection"].as_array().expect("injections").iter().map(agent).collect();
    (text, agents)
}

/// What came of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The agent got what was meant.
    Delivered,
    /// The agent got the original, and the recording says why.
    Left(String),
    /// Neither.
    Wrong(String),
}

/// Judges one edit by what the client got.
pub fn judge(shape: &Shape, plan: &Plan, number: usize, recording: &Recording, step: &Step, got: &[u8]) -> Outcome {
    let injection = &plan.injections[number];
    let failure = recording.manipulator_failures.iter().find(|failure| failure.step == step.step);
    let outcome = if got == shape.bytes() {
        left(shape, injection, failure)
    } else if failure.is_some() {
        Err("the recording says that it failed, and other bytes were delivered".to_owned())
    } else {
        delivered(shape, injection, got).map(|()| Outcome::Delivered)
    };
    outcome.unwrap_or_else(Outcome::Wrong)
}

fn left(shape: &Shape, injection: &Injection, failure: Option<&ManipulatorFailure>) -> Result<Outcome, String> {
    let failure = failure.ok_or("the original was delivered, and nothing says why")?;
    let original = read(shape.surface(), shape.plain().as_bytes(), shape.is_stream());
    let original = original.ok().filter(|read| said(read) == shape.meant()).unwrap_or_else(|| reply_of(&shape.meant()));
    let could = !injection.asks_model() && edited(injection, &original).is_ok();
    let is_answer = shape.ending == Ending::Answered;
    if failure.nothing && could && is_answer && shape.unplaced.is_none() {
        return Err(format!("there is something to edit, and it says: {}", failure.why));
    }
    Ok(Outcome::Left(failure.why.clone()))
}

fn delivered(shape: &Shape, injection: &Injection, got: &[u8]) -> Result<(), String> {
    if let Some(what) = &shape.unplaced {
        return Err(format!("it was edited, though {what}"));
    }
    let original = read(shape.surface(), shape.plain().as_bytes(), shape.is_stream())?;
    if said(&original) != shape.meant() {
        return Err("it was edited, and the original was not read as it was meant".to_owned());
    }
    let now = read(shape.surface(), got, shape.is_stream())
        .map_err(|error| format!("what was delivered cannot be read: {error}"))?;
    let now = said(&now);
    if DRAWN.contains(&injection.name.as_str()) {
        let changed = now.iter().zip(shape.meant()).all(|(now, old)| now.text != old.text || now.calls != old.calls);
        return if changed { Ok(()) } else { Err("it says what the original said".to_owned()) };
    }
    let expected = edited(injection, &original).map(|reply| said(&reply)).map_err(|why| format!("no edit: {why}"))?;
    let (now, expected) = comparable(shape, now, expected);
    if now != expected {
        return Err(format!("it says {now:?}, and {expected:?} was meant"));
    }
    let words = |answers: &[Meant]| format!("{answers:?}");
    let (old, new, body) = (words(&shape.meant()), words(&expected), String::from_utf8_lossy(got));
    match OLD_WORDS.iter().find(|word| old.contains(**word) && !new.contains(**word) && body.contains(**word)) {
        Some(word) => Err(format!("`{word}` of the old answer still stands in it")),
        None => Ok(()),
    }
}

/// The two without what is not meant: the id of a call that an edit added is drawn, and a reply that says no reason to stop, or
/// that it failed, goes on to say so.
fn comparable(shape: &Shape, mut now: Vec<Meant>, mut expected: Vec<Meant>) -> (Vec<Meant>, Vec<Meant>) {
    for answers in [&mut now, &mut expected] {
        for (answer, old) in answers.iter_mut().zip(shape.meant()) {
            answer.calls.iter_mut().skip(old.calls.len()).for_each(|[id, ..]| id.clear());
            if old.finish.is_none() || shape.ending != Ending::Answered {
                answer.finish = None;
            }
        }
    }
    (now, expected)
}

fn edited(injection: &Injection, reply: &Reply) -> Result<Reply, String> {
    let conversation = Conversation::default();
    let earlier = [("peer".to_owned(), PEER.to_owned())];
    let context = Context {
        agent: "solver",
        conversation: &conversation,
        earlier: &earlier,
        draw: 7,
        adaptive: Adaptive::default(),
    };
    injection.edit_reply(reply, &context).map_err(|error| error.to_string())
}

/// What a reply says, in the terms of the list.
pub fn said(reply: &Reply) -> Vec<Meant> {
    let answer = |answer: &Answer| Meant {
        text: answer.message.text(),
        calls: answer.message.tool_calls.iter().map(|c| [c.id.clone(), c.name.clone(), c.arguments.clone()]).collect(),
        finish: answer.finish_reason.clone().filter(|finish| !finish.is_empty()),
        ..Meant::default()
    };
    reply.answers.iter().map(answer).collect()
}

/// A reply that means this.
fn reply_of(meant: &[Meant]) -> Reply {
    use aegis::surface::{Message, Part, Role, ToolCall};
    let call = |(origin, [id, name, arguments]): (usize, &[String; 3])| ToolCall {
        id: id.clone(),
        name: name.clone(),
        arguments: arguments.clone(),
        origin: Some(origin),
    };
    let answer = |(index, meant): (u32, &Meant)| {
        let parts = (!meant.text.is_empty()).then(|| Part::Text(meant.text.clone())).into_iter().collect();
        let tool_calls = meant.calls.iter().enumerate().map(call).collect();
        let message = Message { parts, tool_calls, origin: Some(0), ..Message::text_of(Role::Assistant, "") };
        Answer { index, message, finish_reason: meant.finish.clone() }
    };
    Reply { answers: (0..).zip(meant).map(answer).collect(), ..Reply::default() }
}
