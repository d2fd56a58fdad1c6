//! Each rule on what it is to see, and on what is like it and nothing.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    surface::{OpenaiChat, RequiredFormat, Surface, Tool},
    trajectory::{Verdict, WatchSign},
};

fn says(step: u32, agent: &str, said: &str) -> WatchedStep {
    WatchedStep { step, agent: agent.to_owned(), reply: said.to_owned(), ..WatchedStep::default() }
}

fn call(id: &str, tool: &str, arguments: &str) -> WatchedCall {
    WatchedCall { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() }
}

fn result(id: &str, text: &str) -> WatchedResult {
    WatchedResult { id: id.to_owned(), call: None, text: text.to_owned() }
}

fn tool(name: &str) -> Tool {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": false});
    Tool { name: name.to_owned(), parameters, ..Tool::default() }
}

/// What all rules but those on numbers see in these steps, as `rule@step`.
fn seen(steps: Vec<WatchedStep>) -> Vec<String> {
    seen_with(steps, |settings| settings)
}

fn seen_with(steps: Vec<WatchedStep>, with: impl Fn(WatchSettings) -> WatchSettings) -> Vec<String> {
    let names: Vec<String> =
        RULES.iter().map(|rule| rule.name.to_owned()).filter(|name| name != "new-number").collect();
    let mut watching = Watching::new(Arc::new(with(WatchSettings::new(&names, &[]).expect("rules"))));
    let signs = steps.into_iter().flat_map(|step| watching.see(step)).collect::<Vec<_>>();
    signs.iter().map(|sign| format!("{}@{}", sign.rule, sign.step)).collect()
}

const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
                    eighteen nineteen twenty";

#[test]
fn what_is_said_again() {
    let other = LONG.replace("twenty", "twentyone");
    let upper = LONG.to_uppercase();
    for (steps, expected) in [
        (vec![says(0, "a", LONG), says(1, "b", "x"), says(2, "a", &upper)], vec!["repetition@2"]),
        (vec![says(0, "a", LONG), says(1, "b", LONG)], vec![]),
        (vec![says(0, "a", LONG), says(1, "a", &other)], vec![]),
        (vec![says(0, "a", "short words"), says(1, "a", "short words")], vec![]),
        // Once an agent, however often it comes.
        (vec![says(0, "a", LONG), says(1, "a", LONG), says(2, "a", LONG)], vec!["repetition@1"]),
    ] {
        assert_eq!(seen(steps.clone()), expected, "{steps:?}");
    }
    let talk =
        |words: &[(&str, &str)]| (0..).zip(words).map(|(at, (who, said))| says(at, who, said)).collect::<Vec<_>>();
    let pair = [("a", "over to you"), ("b", "no, you")];
    assert_eq!(seen(talk(&pair.repeat(3))), ["cycle@5"]);
    assert_eq!(seen(talk(&pair.repeat(2))), [] as [&str; 0]);
    let four = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    assert_eq!(seen(talk(&four.repeat(3))), ["cycle@11"]);
    assert_eq!(seen(talk(&[("a", "yes")].repeat(9))), [] as [&str; 0], "one turn is no cycle");
    let broken = [&pair.repeat(2)[..], &[("a", "over to you"), ("b", "well then")]].concat();
    assert_eq!(seen(talk(&broken)), [] as [&str; 0]);
}

#[test]
fn what_is_called_again() {
    let calling = |step, id: &str, arguments: &str| WatchedStep {
        calls: vec![call(id, "find", arguments)],
        ..says(step, "a", "")
    };
    let told = |step: WatchedStep, id: &str, text: &str| WatchedStep { results: vec![result(id, text)], ..step };
    for (steps, expected) in [
        (
            vec![
                calling(0, "1", r#"{"q": "x", "n": 1}"#),
                calling(1, "2", r#"{"n":1,"q":"x"}"#),
                calling(2, "3", r#"{"q":"x","n":1}"#),
            ],
            vec!["same-call@2"],
        ),
        (
            vec![calling(0, "1", r#"{"q":"x"}"#), calling(1, "2", r#"{"q":"y"}"#), calling(2, "3", r#"{"q":"z"}"#)],
            vec![],
        ),
        // After an error, unchanged, at once or later.
        (
            vec![calling(0, "1", r#"{"q":"x"}"#), told(calling(1, "2", r#"{"q":"x"}"#), "1", "Error: no such city")],
            vec!["retried-call@1"],
        ),
        (
            vec![calling(0, "1", r#"{"q":"x"}"#), told(calling(1, "2", r#"{"q":"y"}"#), "1", "Error: no such city")],
            vec![],
        ),
        (
            vec![
                calling(0, "1", r#"{"q":"x"}"#),
                told(calling(1, "2", r#"{"q":"x"}"#), "1", "Error: timed out, try again"),
            ],
            vec![],
        ),
        (vec![calling(0, "1", r#"{"q":"x"}"#), told(calling(1, "2", r#"{"q":"x"}"#), "1", "the city is x")], vec![]),
    ] {
        assert_eq!(seen(steps.clone()), expected, "{steps:?}");
    }
    let twice = WatchedStep {
        calls: vec![call("1", "find", "{}"), call("2", "find", "{}"), call("3", "find", "{}")],
        ..says(0, "a", "")
    };
    assert_eq!(seen(vec![twice]), ["same-call@0"], "within one reply");
}

#[test]
fn tools_and_their_errors() {
    let offered = |said: WatchedStep, calls: &[WatchedCall]| WatchedStep {
        tools: Some(vec![tool("find")]),
        calls: calls.to_vec(),
        ..said
    };
    let told = |said: &str, results: &[&str]| WatchedStep {
        results: results.iter().map(|text| result("1", text)).collect(),
        ..says(0, "a", said)
    };
    for (step, expected) in [
        (offered(says(0, "a", ""), &[call("1", "find", r#"{"q":"x"}"#)]), vec![]),
        (offered(says(0, "a", ""), &[call("1", "fnid", r#"{"q":"x"}"#)]), vec!["unknown-tool@0"]),
        (offered(says(0, "a", ""), &[call("1", "find", r#"{"q":7}"#)]), vec!["bad-arguments@0"]),
        (offered(says(0, "a", ""), &[call("1", "find", r#"{"q":"x","more":1}"#)]), vec!["bad-arguments@0"]),
        (offered(says(0, "a", ""), &[call("1", "find", "{")]), vec!["bad-arguments@0"]),
        (offered(says(0, "a", ""), &[call("1", "find", "")]), vec![]),
        (told("The capital is Paris.", &["Error: no such file"]), vec!["ignored-error@0"]),
        (told("The capital is Paris.", &[r#"{"error": "no such file"}"#]), vec!["ignored-error@0"]),
        (told("I could not find it.", &["Error: no such file"]), vec![]),
        (told("The capital is Paris.", &["Error: no such file", "Paris"]), vec![]),
        (told("The capital is Paris.", &["Errors are rare in this town."]), vec![]),
        (told("The capital is Paris.", &[r#"{"error": null, "city": "Paris"}"#]), vec![]),
    ] {
        assert_eq!(seen(vec![step.clone()]), expected, "{step:?}");
    }
    let failing = |step, bad: bool| WatchedStep {
        results: vec![result("1", if bad { "Error: no" } else { "fine" })],
        calls: vec![call("1", "find", &format!("{{\"q\":\"{step}\"}}"))],
        ..says(step, "a", "")
    };
    let steps = |bad: [bool; 6]| (0..).zip(bad).map(|(at, bad)| failing(at, bad)).collect::<Vec<_>>();
    assert_eq!(seen(steps([false, true, false, true, false, true])), ["tool-errors@5"]);
    assert_eq!(seen(steps([false, true, false, true, false, false])), [] as [&str; 0]);
}

#[test]
fn the_form_of_a_reply() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let wants = |said: &str, format: RequiredFormat| WatchedStep { format, ..says(0, "a", said) };
    let by_schema = || RequiredFormat::JsonSchema { name: "v".to_owned(), schema: schema.clone() };
    for (step, expected) in [
        (says(0, "a", " "), vec!["no-answer@0"]),
        (WatchedStep { says_more: true, ..says(0, "a", "") }, vec![]),
        (WatchedStep { calls: vec![call("1", "f", "{}")], ..says(0, "a", "") }, vec![]),
        (WatchedStep { status: Some(503), ..says(0, "a", "") }, vec!["no-answer@0"]),
        (WatchedStep { finish: Some("length".to_owned()), ..says(0, "a", "and then") }, vec!["cut@0"]),
        (WatchedStep { finish: Some("stop".to_owned()), ..says(0, "a", "and then") }, vec![]),
        (says(0, "a", "I’m sorry, but I can’t help with that"), vec!["refusal@0"]),
        (says(0, "a", "Sorry for the delay: it is 4"), vec![]),
        (wants("{\"ok\": true}", RequiredFormat::JsonObject), vec![]),
        (wants("```json\n{}\n```", RequiredFormat::JsonObject), vec!["broken-json@0"]),
        (wants("[1]", RequiredFormat::JsonObject), vec!["broken-json@0"]),
        (wants("{\"ok\": true}", by_schema()), vec![]),
        (wants("{\"ok\": \"yes\"}", by_schema()), vec!["broken-json@0"]),
        (says(0, "a", "my mistake: it is four"), vec!["error-shown@0"]),
        (says(0, "a", "6 * 7 = 43"), vec!["calculation@0"]),
        (says(0, "a", "96 - 12 = 84. ANSWER: 94"), vec!["other-result@0"]),
        (says(0, "a", "96 - 12 = 84. ANSWER: 84"), vec![]),
        (says(0, "a", "It takes 9 + 45 = 10:15"), vec![]),
        (says(0, "a", "100 / 30 = 3 remainder 10"), vec![]),
    ] {
        assert_eq!(seen(vec![step.clone()]), expected, "{step:?}");
    }
}

#[test]
fn what_an_agent_is_told_of_the_run() {
    let asked = |step, history: &[u64], given: &str| WatchedStep {
        history: Some(history.to_vec()),
        given: given.to_owned(),
        ..says(step, "a", &format!("reply {step}"))
    };
    for (before, earlier, now, given, expected) in [
        // Grows, as conversations do.
        (&[1, 2][..], &[1, 2, 3][..], &[1, 2, 3, 4][..], "", vec![]),
        // A message from the middle, and the oldest ones, are gone.
        (&[1][..], &[1, 2, 3], &[1, 3, 4], "", vec!["lost-history@2"]),
        (&[1][..], &[1, 2, 3], &[2, 3, 4], "", vec!["lost-history@2"]),
        (&[1][..], &[1, 2, 3], &[2, 3, 4], "Summary of the talk: it began", vec![]),
        // It starts over, as that of a tool does.
        (&[1, 2][..], &[1, 2, 3], &[1, 9], "", vec![]),
        (&[1, 2][..], &[1, 2, 3], &[7], "", vec![]),
    ] {
        let steps = vec![asked(0, before, ""), asked(1, earlier, ""), asked(2, now, given)];
        assert_eq!(seen(steps), expected, "{before:?} {earlier:?} {now:?}");
    }
}

#[test]
fn the_end_and_the_room_that_is_left() {
    let end = |settings: WatchSettings| {
        settings.with_end(Some(crate::trajectory::Pattern::new("^ANSWER:").expect("a pattern")))
    };
    let window = |settings: WatchSettings| settings.with_window(Some(1000));
    assert_eq!(
        seen(vec![says(0, "a", "Done. TERMINATE"), says(1, "b", "what?"), says(2, "c", "x")]),
        ["after-end@1", "after-end@2"]
    );
    assert_eq!(seen(vec![says(0, "a", "Say TERMINATE when done."), says(1, "b", "so")]), [] as [&str; 0]);
    assert_eq!(seen_with(vec![says(0, "a", "ANSWER: 4"), says(1, "b", "so")], end), ["after-end@1"]);
    let asks = |tokens| WatchedStep { input_tokens: Some(tokens), ..says(0, "a", "so") };
    assert_eq!(seen_with(vec![asks(810)], window), ["context-full@0"]);
    assert_eq!(seen_with(vec![asks(800)], window), [] as [&str; 0]);
    assert_eq!(seen(vec![asks(1_000_000)]), [] as [&str; 0], "nobody said how many the model takes");
    let refused = |words: &str| WatchedStep { refused: Some(words.to_owned()), ..says(0, "a", "") };
    assert_eq!(seen(vec![refused("This model's maximum context length is 8192 tokens")]), ["context-full@0"]);
    assert_eq!(seen(vec![refused("no such model")]), [] as [&str; 0]);
    for (roster, expected) in [(vec!["planner", "critic"], 1), (vec!["planner", "a"], 0), (vec![], 0)] {
        let mut watching = Watching::new(Arc::new(WatchSettings::new(&[], &[]).expect("rules")));
        watching.see(says(0, "a", "so"));
        let roster: Vec<String> = roster.into_iter().map(str::to_owned).collect();
        let signs = watching.end(&roster);
        assert_eq!(signs.iter().filter(|sign| sign.rule == "no-verifier").count(), expected, "{roster:?}");
    }
}

fn observe(watching: &mut Watching, step: u32, messages: serde_json::Value, said: &str) -> Vec<WatchSign> {
    let asked = json!({"model": "m", "messages": messages}).to_string();
    let reply = json!({"id": "x", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}]});
    let reply = OpenaiChat.read_reply(reply.to_string().as_bytes()).expect("a reply");
    watching.observe(&WireExchange {
        step,
        agent: "a",
        instance: 0,
        surface: &OpenaiChat,
        request: asked.as_bytes(),
        answered: WireAnswer::Reply(&reply),
    })
}

#[test]
fn what_passes_on_the_wire_is_what_rules_see() {
    let mut watching =
        Watching::new(Arc::new(WatchSettings::new(&["all".to_owned()], &["lost-history".to_owned()]).expect("rules")));
    let user = |text: &str| json!({"role": "user", "content": text});
    let own = |text: &str| json!({"role": "assistant", "content": text});
    assert_eq!(observe(&mut watching, 0, json!([{"role": "system", "content": "You are a"}, user("go")]), "first"), []);
    let full = json!([{"role": "system", "content": "You are a"}, user("go"), own("first"), user("and then")]);
    assert_eq!(observe(&mut watching, 1, full, "second"), []);
    let lost =
        json!([{"role": "system", "content": "You are a"}, user("go"), user("and then"), own("second"), user("next")]);
    let signs = observe(&mut watching, 2, lost, "third");
    assert_eq!(signs.iter().map(|sign| (sign.rule.as_str(), sign.stops)).collect::<Vec<_>>(), [("lost-history", true)]);
    assert!(signs[0].seen.contains("1 of 3") && signs[0].quote == "second next", "{signs:?}");
    // A body that nothing reads, and one that asks for no words, are nobody's sign.
    let exchange = |asked: &'static [u8]| WireExchange {
        step: 3,
        agent: "a",
        instance: 0,
        surface: &OpenaiChat,
        request: asked,
        answered: WireAnswer::Refused(b"maximum context length"),
    };
    assert_eq!(watching.observe(&exchange(b"{")), []);
}

#[test]
fn names_are_words_and_nearest_ones_are_told() {
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    let set: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(set.len(), names.len());
    for rule in RULES {
        assert!(rule.mode.is_empty() || crate::trajectory::FailureMode::parse(rule.mode).is_ok(), "{}", rule.name);
        assert!((0.0..=1.0).contains(&rule.weight) && !rule.says.is_empty());
    }
    let error = WatchSettings::new(&["repetiton".to_owned()], &[]).expect_err("no rule");
    assert_eq!(error.to_string(), "there is no rule `repetiton`; did you mean `repetition`?");
    let error = WatchSettings::new(&[], &["no-verifier".to_owned()]).expect_err("too late");
    assert!(error.to_string().contains("no call left"));
    let named = WatchSettings::new(&["cut".to_owned()], &["refusal".to_owned()]).expect("rules");
    assert_eq!(named.names().collect::<Vec<_>>(), ["cut", "refusal"], "in the order of the list");
}

/// However long a run is, what is kept of it is bounded.
#[test]
fn a_long_run_takes_no_more_room() {
    let mut watching = Watching::new(Arc::new(WatchSettings::every()));
    for step in 0..20_000_u32 {
        watching.see(says(step, &format!("agent-{}", step % 2_000), &format!("{LONG} {step}")));
    }
    let kept = format!("{watching:?}").len();
    assert!(kept < 20 << 20, "{kept} bytes of it, printed");
}

#[test]
fn rates_are_shares_of_the_runs_in_which_an_agent_spoke() {
    let run = |is_after, outcome, found: &[(&'static str, &str, &str)]| RatedRun {
        is_after,
        outcome,
        agents: ["a", "b"].map(str::to_owned).into(),
        found: found.iter().map(|(kind, agent, rule)| (*kind, (*agent).to_owned(), (*rule).to_owned())).collect(),
    };
    let (good, bad) = (Verdict::Success, Verdict::Failure);
    let before = (0..20).map(|_| run(false, good, &[]));
    let after = (0..20)
        .map(|at| if at < 15 { run(true, bad, &[("watch", "a", "cut")]) } else { run(true, Verdict::Unknown, &[]) });
    let rates = rates(&before.chain(after).collect::<Vec<_>>());
    assert_eq!((rates.before, rates.after, rates.unjudged), (20, 20, 5));
    let row = |at: usize| rates.rows.get(at).expect("a row");
    assert_eq!((row(0).rule.as_str(), row(0).before.runs, row(0).after.runs, row(0).after.of), ("failure", 0, 15, 15));
    assert_eq!((row(1).rule.as_str(), row(1).after.runs, row(1).after.of), ("cut", 15, 20));
    assert!(row(1).has_changed() && row(1).change == Some(0.75));
    let one_sided = super::rates(&[run(true, bad, &[("watch", "b", "cut")])]);
    assert!(one_sided.rows.iter().all(|row| row.change.is_none() && !row.has_changed()));
}
