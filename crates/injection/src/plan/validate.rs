//! What types cannot say: names that exist, sides that a manipulator has, conditions that can hold. Every problem of
//! the file is collected.

use std::ops::Range;

use toml::Spanned;

use super::agents::{AgentPattern, Agents};
use super::error::{Problem, line_of};
use super::file::{CheckEntry, InjectionEntry, Lines, OneOrMany, WhenEntry};
use super::read::{PlanDocument, Read};
use super::{Expect, Injection, Operator, Plan, PlanCheck, When, dialogue};
use crate::surface::{Answer, Message, Role};
use crate::trajectory::{FailureMode, PEERS, Side, TOOLS, nearest};
use crate::{fault, manipulator};

/// The plan that a document means.
///
/// # Errors
/// Every problem of the document, those of its types included.
pub(super) fn validate(document: PlanDocument) -> Result<Plan, Vec<Problem>> {
    let PlanDocument { text, head, injections, checks, mut problems } = document;
    let injections: Vec<_> = injections.iter().filter_map(|entry| injection(entry, &mut problems)).collect();
    let checks: Vec<_> = checks.iter().filter_map(|entry| check(&text, entry, &mut problems)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let seed = head.seed.map(Spanned::into_inner).unwrap_or_default();
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    Ok(Plan {
        seed,
        draws_of: None,
        settled: None,
        left_out: None,
        without_faults: false,
        injections,
        checks,
        text,
        digest,
    })
}

fn injection(entry: &Read<InjectionEntry>, problems: &mut Vec<Problem>) -> Option<Injection> {
    let target = target_key(entry);
    for key in [target, "when"].into_iter().filter(|key| !entry.has(key)) {
        let problem = Problem::new(entry.span.clone(), format!("the injection has no `{key}`"));
        problems.push(if key == "when" { problem.hint(super::read::WHEN_FORMS) } else { problem });
    }
    let targets = [("agent", &entry.value.agent), ("tool", &entry.value.tool), ("peer", &entry.value.peer)];
    for (key, other) in targets.iter().filter(|(key, _)| *key != target && entry.has(key)) {
        let span = other.as_ref().map_or(entry.span.clone(), Spanned::span);
        let problem = Problem::new(span, format!("the injection has both a `{target}` and a `{key}`"));
        problems.push(problem.hint("write two injections: each aims at one kind"));
    }
    let named = targets.iter().find(|(key, _)| *key == target).and_then(|(_, named)| named.as_ref());
    let agents = named.and_then(|named| agents(named, target, problems));
    let place = entry.value.when.as_ref().map_or(entry.span.clone(), Spanned::span);
    let when = entry.value.when.as_ref().map(|when| condition(when, entry.is_broken("when"), problems));
    let named = operator(entry, problems);
    let failure_mode = failure_mode(entry, problems);
    let choice = entry.value.choice.as_ref();
    if let (Some(choice), Some((_, Operator::Fault(_) | Operator::Manipulator { side: Side::Request, .. }))) =
        (choice, &named)
    {
        let message = "`choice` is one of the answers of a reply, and this injection edits none";
        problems.push(Problem::new(choice.span(), message));
    }
    let retell = entry.value.retell.as_ref();
    if let (Some(retell), Some((_, Operator::Fault(_) | Operator::Manipulator { side: Side::Request, .. }))) =
        (retell, &named)
    {
        let message = "`retell` is about an edited reply, and this injection edits none";
        problems.push(Problem::new(retell.span(), message));
    }
    let (name, operator) = named?;
    let choice = choice.map(|choice| *choice.get_ref());
    let instance = entry.value.instance.as_ref().map(|instance| *instance.get_ref());
    let (retell, name) = (retell.is_some_and(|retell| *retell.get_ref()), name.to_owned());
    Some(Injection { agents: agents?, instance, failure_mode, when: when?, choice, retell, name, operator, place })
}

/// The key that says at what an injection aims.
fn target_key(entry: &Read<InjectionEntry>) -> &'static str {
    ["tool", "peer"].into_iter().find(|key| entry.has(key)).unwrap_or("agent")
}

fn agents(entry: &Spanned<OneOrMany<String>>, key: &str, problems: &mut Vec<Problem>) -> Option<Agents> {
    if entry.get_ref().0.is_empty() {
        problems.push(Problem::new(entry.span(), format!("`{key}` is empty: expected a name")));
    }
    let parse = match key {
        "tool" => AgentPattern::of_tool,
        "peer" => AgentPattern::of_peer,
        _ => AgentPattern::parse,
    };
    let parsed: Result<Vec<_>, _> = entry.get_ref().0.iter().map(|text| parse(text)).collect();
    parsed.map(Agents).map_err(|error| problems.push(Problem::new(entry.span(), error.to_string()))).ok()
}

fn failure_mode(entry: &Read<InjectionEntry>, problems: &mut Vec<Problem>) -> Option<FailureMode> {
    let Some(code) = &entry.value.failure_mode else {
        if entry.has("manipulator") && !entry.has("failure_mode") && target_key(entry) == "agent" {
            let problem = Problem::new(entry.span.clone(), "the injection has no `failure_mode`");
            problems.push(problem.hint("say which error it plants: FM-1.1 to FM-3.3, for example `FM-2.6`"));
        }
        return None;
    };
    let no_agents = match (target_key(entry), entry.has("fault") && !entry.has("manipulator")) {
        ("tool", _) => Some("a tool has no `failure_mode`"),
        ("peer", _) => Some("a peer has no `failure_mode`"),
        (_, true) => Some("a fault has no `failure_mode`"),
        (_, false) => None,
    };
    if let Some(what) = no_agents {
        let problem = Problem::new(code.span(), format!("{what}: it is no error of an agent"));
        problems.push(problem.hint("leave it out"));
    }
    match FailureMode::parse(code.get_ref()) {
        Ok(mode) => Some(mode),
        Err(unknown) => {
            let problem = Problem::new(code.span(), format!("unknown failure mode `{}`", unknown.code));
            // Of a mode that its family does not have, a neighbour is no guess.
            let family =
                unknown.code.rsplit_once('.').filter(|(_, number)| number.len() == 1).map(|(family, _)| family);
            problems.push(match unknown.nearest {
                Some(_) if family == Some("FM-1") => problem.hint("expected one of FM-1.1 to FM-1.5"),
                Some(_) if family == Some("FM-2") => problem.hint("expected one of FM-2.1 to FM-2.6"),
                Some(_) if family == Some("FM-3") => problem.hint("expected one of FM-3.1 to FM-3.3"),
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint("expected one of FM-1.1 to FM-1.5, FM-2.1 to FM-2.6, FM-3.1 to FM-3.3"),
            });
            None
        }
    }
}

fn operator(entry: &Read<InjectionEntry>, problems: &mut Vec<Problem>) -> Option<(&'static str, Operator)> {
    match (&entry.value.manipulator, &entry.value.fault) {
        _ if entry.has("manipulator") && entry.has("fault") => {
            let span = entry.value.fault.as_ref().map_or(entry.span.clone(), Spanned::span);
            problems.push(
                Problem::new(span, "the injection has both a `manipulator` and a `fault`")
                    .hint("write two injections: each does one thing"),
            );
            None
        }
        (Some(manipulator), _) => manipulator_of(entry, manipulator, problems),
        (None, Some(fault)) => {
            if let Some(side) = &entry.value.side {
                problems.push(Problem::new(side.span(), "a fault has no `side`").hint("leave it out"));
            }
            let name = fault.get_ref().name();
            let operator = fault.get_ref().clone().into_dyn();
            // Parameters that could not be read are missed by no second problem.
            if let (Err(message), false) = (operator.check(), entry.is_broken("fault")) {
                problems.push(Problem::new(fault.span(), format!("`{name}`: {message}")));
            }
            Some((name, Operator::Fault(operator)))
        }
        (None, None) => {
            if !entry.has("manipulator") && !entry.has("fault") {
                let problem = Problem::new(entry.span.clone(), "the injection has no `manipulator` and no `fault`");
                problems.push(problem.hint("`aegis plan list` lists all of them"));
            }
            None
        }
    }
}

/// What edits the arguments of a call; anything else edits texts.
const EDITS_CALLS: [&str; 2] = ["edit_tool_call", "rewrite_with_model"];

fn manipulator_of(
    entry: &Read<InjectionEntry>,
    listed: &Spanned<manipulator::ListedManipulator>,
    problems: &mut Vec<Problem>,
) -> Option<(&'static str, Operator)> {
    let (name, sides) = (listed.get_ref().name(), listed.get_ref().sides());
    let both = [Side::Response, Side::Request];
    let target = target_key(entry);
    let is_of_agent = target == "agent";
    let asks_to_edit_call = entry.value.side.as_ref().is_some_and(|side| *side.get_ref() == Side::Request);
    let sides = match (!is_of_agent, sides.contains(&Side::Response)) {
        (false, _) => sides,
        (true, true) if target == "tool" && asks_to_edit_call && !EDITS_CALLS.contains(&name) => {
            let message = format!("`{name}` edits texts, and a call of a tool has arguments alone");
            let problem = Problem::new(listed.span(), message);
            problems.push(problem.hint("`manipulator.edit_tool_call = { set = { \"/b\" = 31 } }` edits arguments; without `side` the result is edited"));
            return None;
        }
        // What edits an answer edits a message to a server, too.
        (true, true) => &both[..],
        (true, false) => {
            let message = format!("`{name}` edits what a model is asked, and no model is asked here");
            problems.push(Problem::new(listed.span(), message));
            return None;
        }
    };
    let word = |side: &Side| if *side == Side::Request { "request" } else { "response" };
    let side = match (&entry.value.side, sides) {
        (Some(side), _) if !sides.contains(side.get_ref()) => {
            let only: Vec<&str> = sides.iter().map(word).collect();
            problems.push(Problem::new(side.span(), format!("`{name}` edits the {} only", only.join(" and "))));
            return None;
        }
        (Some(side), _) => *side.get_ref(),
        (None, [side]) => *side,
        (None, [side, ..]) if !is_of_agent => *side,
        (None, _) if entry.has("side") => return None,
        (None, _) => {
            let problem = Problem::new(listed.span(), format!("`{name}` edits either side, and `side` is not given"));
            problems.push(problem.hint("add `side = \"request\"` or `side = \"response\"`"));
            return None;
        }
    };
    let manipulator = listed.get_ref().clone().into_dyn();
    if let (Err(message), false) = (manipulator.check(side), entry.is_broken("manipulator")) {
        problems.push(Problem::new(listed.span(), format!("`{name}`: {message}")));
    }
    Some((name, Operator::Manipulator { side, manipulator }))
}

/// The conditions; of a `broken` entry some are not there, and their absence is no news.
fn condition(entry: &Spanned<WhenEntry>, broken: bool, problems: &mut Vec<Problem>) -> When {
    let at = entry.span();
    let entry = entry.get_ref();
    let mut refuse = |span: Range<usize>, message: String| problems.push(Problem::new(span, message));
    for (name, list) in [("call", &entry.call), ("step", &entry.step)] {
        if let Some(list) = list.as_ref().filter(|list| list.get_ref().0.is_empty()) {
            refuse(list.span(), format!("`{name}` is empty, so the injection never fires: expected a number"));
        }
    }
    let counts =
        [("every", &entry.every), ("first", &entry.first), ("last_n", &entry.last_n), ("max_times", &entry.max_times)];
    for (name, count) in counts {
        if let Some(count) = count.as_ref().filter(|count| *count.get_ref() == 0) {
            refuse(count.span(), format!("`{name}` is 0: expected a whole number from 1"));
        }
    }
    if let Some(probability) = entry.probability.as_ref().filter(|chance| !(0.0..=1.0).contains(chance.get_ref())) {
        refuse(
            probability.span(),
            format!("`probability` is {}: expected a number from 0 to 1", probability.get_ref()),
        );
    }
    if let Some(probability) = entry.probability.as_ref().filter(|chance| *chance.get_ref() == 0.0) {
        refuse(probability.span(), "`probability` is 0, so the injection never fires".to_owned());
    }
    if let Some(always) = entry.always.as_ref().filter(|always| !*always.get_ref()) {
        refuse(always.span(), "`always` is false, so the injection never fires: expected `true`".to_owned());
    }
    if let Some(tool) = entry.tool.as_ref().filter(|tool| tool.get_ref().trim().is_empty()) {
        refuse(tool.span(), "`tool` is empty: expected the name of a tool".to_owned());
    }
    let number = |count: &Option<Spanned<u32>>| count.as_ref().map(|count| *count.get_ref());
    let numbers = |list: &Option<Spanned<OneOrMany<u32>>>| list.as_ref().map(|list| list.get_ref().0.clone());
    let when = When {
        call: numbers(&entry.call),
        step: numbers(&entry.step),
        every: number(&entry.every),
        first: number(&entry.first),
        last_n: number(&entry.last_n),
        contains: entry.contains.clone(),
        tool: entry.tool.as_ref().map(|tool| tool.get_ref().clone()),
        probability: entry.probability.as_ref().map(|probability| *probability.get_ref()),
        max_times: number(&entry.max_times),
        targets: None,
        recorded: None,
    };
    let nothing = when.call.is_none() && when.step.is_none() && when.probability.is_none() && entry.always.is_none();
    let counted = when.every.or(when.first).or(when.last_n).or(when.max_times).is_some();
    if !broken && nothing && !counted && when.contains.is_none() && when.tool.is_none() {
        let problem = Problem::new(at, "`when` holds no condition");
        problems.push(problem.hint("for every call of the agent write `when.always = true`"));
    } else if when
        .call
        .as_ref()
        .is_some_and(|calls| !calls.is_empty() && !calls.iter().any(|call| when.allows_call(*call)))
    {
        problems.push(Problem::new(at, "the injection never fires: no `call` satisfies `every` and `first`"));
    }
    when
}

fn check(text: &str, entry: &Read<CheckEntry>, problems: &mut Vec<Problem>) -> Option<PlanCheck> {
    let target = ["tool", "peer"].into_iter().find(|key| entry.has(key)).unwrap_or("agent");
    for key in [target, "messages"].into_iter().filter(|key| !entry.has(key)) {
        problems.push(Problem::new(entry.span.clone(), format!("the check has no `{key}`")));
    }
    let asked = entry.present.iter().any(|key| key.starts_with("expect"));
    if !asked {
        let problem = Problem::new(entry.span.clone(), "the check expects nothing");
        problems.push(problem.hint(
            "give `expect`, `expect_contains`, `expect_calls`, `expect_changed`, `expect_tools`, `expect_question` or `expect_fault`",
        ));
    }
    let CheckEntry { agent, tool, peer, messages, reply, .. } = &entry.value;
    let named = [("", agent), (TOOLS, tool), (PEERS, peer)];
    let caller = named.iter().rev().find_map(|(of, name)| Some(format!("{of}{}", name.as_ref()?.get_ref())));
    let messages = messages.as_ref().and_then(|list| conversation(list.get_ref(), problems));
    let calls = calls(&entry.value.reply_calls, problems);
    let finish = if calls.is_empty() { Answer::STOPPED } else { Answer::CALLS };
    let answer = (reply.is_some() || !calls.is_empty()).then(|| Answer {
        index: 0,
        message: Message { tool_calls: calls, ..Message::text_of(Role::Assistant, reply.clone().unwrap_or_default()) },
        finish_reason: Some(finish.to_owned()),
    });
    let mut earlier = Vec::new();
    for line in &entry.value.earlier {
        match line.get_ref().split_once(':') {
            Some((agent, text)) => earlier.push((agent.trim().to_owned(), text.trim_start().to_owned())),
            None => problems.push(Problem::new(line.span(), "expected `agent: text`")),
        }
    }
    let expect = expectations(&entry.value, answer.is_some(), problems);
    let rewrite_calls = self::calls(&entry.value.rewrite_calls, problems);
    let rewrites = entry.value.rewrite.is_some() || !rewrite_calls.is_empty();
    let rewrite = rewrites.then(|| (entry.value.rewrite.clone().unwrap_or_default(), rewrite_calls));
    Some(PlanCheck {
        agent: caller?,
        instance: entry.value.instance,
        call: entry.value.call,
        step: entry.value.step,
        messages: messages?,
        earlier,
        tools: entry.value.tools.clone(),
        json: entry.value.json,
        answer,
        rewrite,
        expect,
        line: line_of(text, entry.span.start),
    })
}

fn conversation(lines: &[Spanned<String>], problems: &mut Vec<Problem>) -> Option<Vec<Message>> {
    let mut messages = Vec::new();
    for line in lines {
        if let Err(message) = dialogue::push(&mut messages, line.get_ref()) {
            problems.push(Problem::new(line.span(), message));
            return None;
        }
    }
    Some(messages)
}

fn calls(lines: &[Spanned<String>], problems: &mut Vec<Problem>) -> Vec<crate::surface::ToolCall> {
    let mut calls = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        match dialogue::read_call(line.get_ref(), number) {
            Ok(call) => calls.push(call),
            Err(message) => problems.push(Problem::new(line.span(), message)),
        }
    }
    calls
}

fn expectations(entry: &CheckEntry, replied: bool, problems: &mut Vec<Problem>) -> Vec<Expect> {
    let mut expect = Vec::new();
    match entry.expect.as_ref().map(Spanned::get_ref) {
        Some(Lines::Text(text)) => expect.push(Expect::Reply(text.clone())),
        Some(Lines::List(lines)) => {
            expect.extend(conversation(lines, problems).map(|messages| Expect::Messages(dialogue::lines(&messages))));
        }
        None => {}
    }
    if let (Some(text), false) = (entry.expect.as_ref(), replied)
        && matches!(text.get_ref(), Lines::Text(_))
    {
        let problem = Problem::new(text.span(), "an answer is expected, and the check has no `reply`");
        problems.push(problem.hint("to expect messages, write a list: `expect = [\"user: …\"]`"));
    }
    if let Some(lines) = &entry.expect_calls {
        expect.push(Expect::Calls(calls(lines, problems).iter().map(dialogue::written).collect()));
    }
    if let Some(texts) = &entry.expect_contains {
        expect.extend(texts.0.iter().cloned().map(Expect::Contains));
    }
    expect.extend(entry.expect_tools.clone().map(Expect::Tools));
    if let Some(texts) = &entry.expect_question {
        expect.extend(texts.0.iter().cloned().map(Expect::Question));
    }
    expect.extend(entry.expect_changed.map(Expect::Changed));
    if let Some(name) = &entry.expect_fault {
        let known: Vec<&str> = fault::listed().iter().map(|(name, _)| *name).collect();
        if !known.contains(&name.get_ref().as_str()) {
            let problem = Problem::new(name.span(), format!("unknown fault `{}`", name.get_ref()));
            problems.push(match nearest(name.get_ref(), known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("expected one of {}", known.join(", "))),
            });
        }
        expect.push(Expect::Fault(name.get_ref().clone()));
    }
    expect
}
