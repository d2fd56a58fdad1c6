//! An edit costs what its text is long: ten times the items, choices, parts, calls, messages, digits or frames cost about ten
//! times the work, not a hundred.

mod bodies;
mod callers;

use std::time::Duration;

use aegis::{
    manipulator::{Adaptive, Context},
    plan::{self, Injection},
    surface::{Conversation, door, recounted, written},
};
use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};

use self::bodies::{Grown, replies, requests};

/// What the larger body has of what the smaller one has once.
const TIMES: usize = 10;
/// How many times as much work ten times the body may be.
const WORK_MAX: f64 = 15.0;
/// How many times a body that seems too dear is measured again.
const TRIES: usize = 4;

/// Edits of replies that change one part, each part, sections, a call, and all.
const REPLY_EDITS: &str = r#"
format = 1
seed = 7
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
manipulator.corrupt_number = { which = "last", by = 10 }
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
manipulator.corrupt_number = { which = "all", by = 10 }
[[injection]]
agent = "a"
failure_mode = "FM-2.4"
when.always = true
manipulator.drop_section = { which = "last" }
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
manipulator.edit_tool_call = { set = { "/n" = 5 } }
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
manipulator.edit_tool_call = { drop = true }
[[injection]]
agent = "a"
failure_mode = "FM-3.1"
when.always = true
manipulator.end_early = { text = "All is done." }
"#;

/// Edits of requests that add a message, take one away, change all, and change what is on offer.
const REQUEST_EDITS: &str = r#"
format = 1
seed = 7
[[injection]]
agent = "a"
failure_mode = "FM-1.1"
when.always = true
manipulator.append_instruction = { text = "Be brief." }
[[injection]]
agent = "a"
failure_mode = "FM-1.4"
when.always = true
manipulator.drop_history = { keep_last = 2 }
[[injection]]
agent = "a"
failure_mode = "FM-1.4"
when.always = true
manipulator.reorder_history = {}
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
side = "request"
manipulator.replace_text = { find = "is", with = "was" }
[[injection]]
agent = "a"
failure_mode = "FM-2.6"
when.always = true
manipulator.drop_tools = {}
"#;

/// Processor time of this thread, whatever else the machine does.
fn worked() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"))
}

fn context(conversation: &Conversation) -> Context<'_> {
    Context { agent: "a", conversation, earlier: &[], draw: 7, adaptive: Adaptive::default() }
}

/// What the proxy does of an edited reply; `None` where this edit has nothing to do with it.
fn edit_reply(injection: &Injection, grown: &Grown, body: &Bytes) -> Option<Result<(), String>> {
    let (surface, streamed) = (grown.surface, grown.streamed);
    let before = door::reading(surface, body, streamed).unwrap_or_else(|error| panic!("{}: {error}", grown.what)).view;
    let conversation = Conversation::default();
    let after = injection.edit_reply(&before, &context(&conversation)).ok()?;
    let written = door::write_reply(surface, body, streamed, &before, &after).map_err(|error| error.to_string());
    Some(written.and_then(|written| {
        let written = recounted(written, streamed, &before, &after);
        written::reply(surface, &written, streamed, &before, &after).map(drop)
    }))
}

/// The same of an edited request.
fn edit_request(injection: &Injection, grown: &Grown, body: &Bytes) -> Option<Result<(), String>> {
    let outline = door::outline(grown.surface, body).unwrap_or_else(|error| panic!("{}: {error}", grown.what));
    assert!(!outline.messages.is_empty());
    let before = door::request(grown.surface, body).unwrap_or_else(|error| panic!("{}: {error}", grown.what));
    let after = injection.edit_request(&before, &context(&before)).ok()?;
    let written = door::write_request(grown.surface, body, &before, &after).map_err(|error| error.to_string());
    Some(written.and_then(|written| written::request(grown.surface, body, &written, &after)))
}

type Edit = fn(&Injection, &Grown, &Bytes) -> Option<Result<(), String>>;

/// How many times as much work the larger one is than the smaller one: the least of several looks at each, where the first are too
/// dear. `None` where `work` has nothing to do with it.
fn times<T>(sizes: &[T; 2], mut work: impl FnMut(&T) -> Option<()>) -> Option<f64> {
    let mut least = [Duration::MAX; 2];
    for _ in 0..TRIES {
        for (least, size) in least.iter_mut().zip(sizes) {
            let start = worked();
            work(size)?;
            *least = (*least).min(worked().saturating_sub(start));
        }
        if least[1].as_secs_f64() / least[0].as_secs_f64() <= WORK_MAX {
            break;
        }
    }
    Some(least[1].as_secs_f64() / least[0].as_secs_f64())
}

/// The same of an edit.
fn growth(injection: &Injection, grown: &Grown, edit: Edit) -> Option<f64> {
    let bodies = [grown.size, grown.size * TIMES].map(|size| (grown.body)(grown.surface, size));
    times(&bodies, |body| {
        let outcome = edit(injection, grown, body)?;
        assert_eq!(outcome, Ok(()), "{} of {} by {}", grown.what, grown.surface.name(), injection.name);
        Some(())
    })
}

fn grows(plan: &str, bodies: &[Grown], edit: Edit) {
    let plan = plan::parse(plan, "growth.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let (mut dear, mut measured) = (Vec::new(), 0);
    for grown in bodies {
        let mut met = 0;
        for (number, injection) in plan.injections.iter().enumerate() {
            let Some(times) = growth(injection, grown, edit) else { continue };
            met += 1;
            if times > WORK_MAX {
                let (what, surface, by) = (grown.what, grown.surface.name(), &injection.name);
                dear.push(format!("{what} of {surface} by {by} ({number}): {times:.0}"));
            }
        }
        assert!(met > 0, "no edit meets {} of {}", grown.what, grown.surface.name());
        measured += met;
    }
    assert!(dear.is_empty(), "{} of {measured} cost more than they are long:\n{}", dear.len(), dear.join("\n"));
}

#[test]
fn edits_of_replies_cost_what_the_replies_are_long() {
    grows(REPLY_EDITS, &replies(), edit_reply);
}

#[test]
fn edits_of_requests_cost_what_the_requests_are_long() {
    grows(REQUEST_EDITS, &requests(), edit_request);
}
