//! Proposals for small programs: what is fixed makes a rule, what is guessed a comment, and no rule is two agents'
//! without a word.

use serde_json::{Value, json};

use super::*;
use crate::{
    identity::{
        AttributedCall, EndedCall, Identity, LedgerRequest, ObservedStep, Roster, RosterRule, Speakers, propose,
    },
    surface::{OpenaiChat, Surface},
};

/// One call: prompt, user text, answer. A prompt `@name text` has the name beside it; `-` is none.
type Call<'a> = (&'a str, &'a str, &'a str);

fn body((prompt, user, _): &Call<'_>) -> Value {
    let (name, text) = match prompt.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
        Some((name, text)) => (Some(name), text),
        None => (None, *prompt),
    };
    let mut system = json!({"role": "system", "content": text});
    if let Some(name) = name {
        system["name"] = name.into();
    }
    let user = json!({"role": "user", "content": user});
    let messages: Vec<Value> = if text == "-" { vec![user] } else { vec![system, user] };
    json!({"model": "m", "messages": messages})
}

/// Runs as they would have been recorded.
fn observed(runs: &[&[Call<'_>]]) -> Vec<ObservedRun<'static>> {
    let step = |speakers: &mut Speakers, call: &Call<'_>| {
        let asked: &'static [u8] = Box::leak(body(call).to_string().into_bytes().into());
        let outline = OpenaiChat.outline(asked).expect("a request");
        let hash = twox_hash::XxHash3_128::oneshot(asked);
        let request = LedgerRequest::from_hash(hash);
        let asked: &'static AttributedCall =
            Box::leak(Box::new(speakers.attribute(&Identity::default(), Some(&outline), None, &request)));
        let told = &asked.attribution;
        let answer = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": call.2}}]});
        let reply = OpenaiChat.read_reply(answer.to_string().as_bytes()).ok();
        speakers.ended(told, &EndedCall { number: asked.number, reply: reply.as_ref(), failed: false, at_us: 0 });
        (ObservedStep { agent: &told.agent, outline, reply }, told)
    };
    let run = |calls: &&[Call<'_>]| {
        let mut speakers = Speakers::default();
        let (steps, told) = calls.iter().map(|call| step(&mut speakers, call)).unzip();
        ObservedRun { steps, recorded: told }
    };
    runs.iter().map(run).collect()
}

/// The proposed roster, and the name that it gives each call.
fn proposed(runs: &[&[Call<'_>]]) -> (String, Vec<String>) {
    let heard = observed(runs);
    let names = heard.iter().flat_map(|run| propose(&run.steps)).collect();
    let suggestions = Suggestions::for_runs(&heard, &names);
    (suggestions.to_toml(), suggestions.of_steps(&heard).concat())
}

/// Who makes a call, by the rules of a proposed roster: their number from 1; none where none or several fit.
fn matched_rule(roster: &str, call: &Call<'_>) -> Option<usize> {
    #[derive(serde::Deserialize)]
    struct File {
        agent: Vec<RosterRule>,
    }
    let rules = toml::from_str::<File>(roster).expect("a configuration").agent;
    let rules = rules.into_iter().enumerate().map(|(at, rule)| RosterRule { name: Some(at.to_string()), ..rule });
    let text = body(call).to_string();
    let outline = OpenaiChat.outline(text.as_bytes()).expect("a request");
    let key = crate::identity::RequestLooks::read(&outline, &std::collections::HashSet::new()).key;
    let told = Roster::new(rules.collect()).expect("rules").identify(&outline, key)?;
    Some(told.agent.as_str().parse::<usize>().expect("a number") + 1).filter(|_| !told.ambiguous)
}

const ANSWERS: [&str; 4] = [
    "Tides rise and fall twice a day here.",
    "The claim about the moon does hold.",
    "Bees find their home by the sun.",
    "The claim about the sun does hold.",
];

#[test]
fn a_prompt_under_which_several_agents_ask_again_gets_no_rule() {
    let [a, b, c, d] = ANSWERS;
    let again = "Answer in JSON only.";
    let run = [("You sort things.", "tea", a), (again, "tea", b), ("You check what was sorted.", b, c), (again, b, d)];
    let (roster, _) = proposed(&[&run, &run]);
    assert!(roster.contains("NOT SURE: asked the same as several"), "{roster}");
    assert_eq!(run.map(|call| matched_rule(&roster, &call).is_some()), [true, false, true, false], "{roster}");
    // Reviewers who all read the same are agents.
    let run = [("You plan.", "tea", a), ("You look for bugs.", a, b), ("You look for style.", a, c)];
    let (roster, _) = proposed(&[&run, &run]);
    assert_eq!(run.map(|call| matched_rule(&roster, &call).is_some()), [true, true, true], "{roster}");
}

#[test]
fn a_roster_of_some_tasks_names_the_agents_of_others() {
    let [a, b, c, d] = ANSWERS;
    for (first, second, other) in [
        // The task stands in the prompt.
        (
            [("Your task is to plan the following: tea.", "go", a), ("You write on tea. Be brief.", a, b)],
            [("Your task is to plan the following: ships.", "go", c), ("You write on ships. Be brief.", c, d)],
            [("Your task is to plan the following: old maps.", "go", a), ("You write on old maps. Be brief.", a, b)],
        ),
        // Where it runs, and when.
        (
            [("You dig in /home/ann/work today, 2026-11-20.", "go", a), ("You check what was dug.", a, b)],
            [("You dig in /home/ann/work today, 2026-11-20.", "on", c), ("You check what was dug.", c, d)],
            [("You dig in /srv/bo/x today, 2027-01-02.", "go", a), ("You check what was dug.", a, b)],
        ),
        // A name that two prompts share is two agents' until a rule parts them.
        (
            [("@Clerk You write letters by hand.", "tea", a), ("@Clerk You check letters twice.", a, b)],
            [("@Clerk You write letters by hand.", "ships", c), ("@Clerk You check letters twice.", c, d)],
            [("@Clerk You write letters by hand.", "maps", a), ("@Clerk You check letters twice.", a, b)],
        ),
        // One prompt for all; the user text names them.
        (
            [
                ("You manage tools well.", "You're an agent named 'digger'.\nTask: tea", a),
                ("You manage tools well.", "You're an agent named 'judge'.\nTask: tea", b),
            ],
            [
                ("You manage tools well.", "You're an agent named 'digger'.\nTask: ships", c),
                ("You manage tools well.", "You're an agent named 'judge'.\nTask: ships", d),
            ],
            [
                ("You manage tools well.", "You're an agent named 'digger'.\nTask: maps", a),
                ("You manage tools well.", "You're an agent named 'judge'.\nTask: maps", b),
            ],
        ),
        // One prompt for all; the last line of the user text says who speaks.
        (
            [
                ("You are part of a team.", "tea\nNow act as PLANNER.", a),
                ("You are part of a team.", "tea\nNow act as EXECUTOR.", b),
            ],
            [
                ("You are part of a team.", "ships\nNow act as PLANNER.", c),
                ("You are part of a team.", "ships\nNow act as EXECUTOR.", d),
            ],
            [
                ("You are part of a team.", "maps\nNow act as PLANNER.", a),
                ("You are part of a team.", "maps\nNow act as EXECUTOR.", b),
            ],
        ),
        // The same without a prompt.
        (
            [("-", "tea\nIt is Ann's turn.", a), ("-", "tea\nIt is Ben's turn.", b)],
            [("-", "ships\nIt is Ann's turn.", c), ("-", "ships\nIt is Ben's turn.", d)],
            [("-", "maps\nIt is Ann's turn.", a), ("-", "maps\nIt is Ben's turn.", b)],
        ),
        // A memory in the prompt quotes the others.
        (
            [
                ("You are the finder of facts.\nMemory:\n(nothing yet)", "tea", a),
                ("You are the judge of facts.\nMemory:\n- finder: Tides rise and fall twice a day here.", "tea", b),
            ],
            [
                ("You are the finder of facts.\nMemory:\n(nothing yet)", "ships", c),
                ("You are the judge of facts.\nMemory:\n- finder: Bees find their home by the sun.", "ships", d),
            ],
            [
                ("You are the finder of facts.\nMemory:\n(nothing yet)", "maps", a),
                ("You are the judge of facts.\nMemory:\n- finder: Maps of the old town hang in the hall.", "maps", b),
            ],
        ),
    ] {
        let (roster, names) = proposed(&[&first, &second]);
        assert_eq!((&names[0], &names[1]), (&names[2], &names[3]), "{roster}");
        assert_ne!(names[0], names[1], "{roster}");
        let told: Vec<Option<usize>> = other.iter().map(|call| matched_rule(&roster, call)).collect();
        assert!(told.iter().all(Option::is_some) && told[0] != told[1], "{told:?}\n{roster}");
    }
}

#[test]
fn no_rule_takes_a_prompt_that_quotes_another_agents() {
    let [a, b, c, d] = ANSWERS;
    let planner = "You are the planner. You cut the work into parts.";
    let (roster, _) = proposed(&[
        &[(planner, "tea", a), ("You are the writer. You write it down.", a, b)],
        &[(planner, "ships", c), ("You are the writer. You write it down.", c, d)],
    ]);
    assert!(matched_rule(&roster, &(planner, "maps", a)).is_some(), "{roster}");
    for child in [
        format!("You help another agent. It was told: \"{planner}\" Do its first part."),
        format!("You help another agent.\n> {planner}\n"),
        format!("You help another agent. Its instructions:\n{planner}"),
        format!("{planner}\n\nYou are now its helper number 1."),
    ] {
        assert_eq!(matched_rule(&roster, &(&child, "maps", a)), None, "{child}\n{roster}");
    }
}

#[test]
fn what_one_run_alone_holds_joins_nobody() {
    let [a, b, c, d] = ANSWERS;
    // Two programs, never in one run, whose writers are called the same.
    let (roster, names) = proposed(&[
        &[("You are the writer. You write the code of a commit.", "x", a)],
        &[("You are the writer. You write a column of news.", "y", b)],
        &[("You are the writer. You write the code of a commit.", "z", c)],
        &[("You are the writer. You write a column of news.", "u", d)],
    ]);
    assert_eq!((&names[0], &names[1]), (&names[2], &names[3]), "{roster}");
    assert_ne!(names[0], names[1], "{roster}");
}

#[test]
fn no_rule_is_two_agents() {
    let [a, b, c, _] = ANSWERS;
    for run in [
        [("You are player 1. Be brief.", "Speak", a), ("You are player 2. Be brief.", "Speak", b), ("x", "y", c)],
        [
            ("You review for cost.", "Go", a),
            ("You review for speed.", "Go", b),
            ("You review for cost and speed.", "Go", c),
        ],
        [("You help.", "Go", a), ("You help. You judge.", "Go", b), ("You help. You judge. You edit.", "Go", c)],
        [
            ("-", "Solve this: 2 + 2. Think step by step.", a),
            ("-", "Solve this: 2 + 2. Answer in one word.", b),
            ("You help.", "Go", c),
        ],
    ] {
        let (roster, names) = proposed(&[&run]);
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), 3, "{roster}");
        let told: Vec<Option<usize>> = run[..2].iter().map(|call| matched_rule(&roster, call)).collect();
        assert!(told[0].is_some() && told[1].is_some() && told[0] != told[1], "{told:?}\n{roster}");
    }
}

#[test]
fn what_is_guessed_is_a_comment() {
    let [a, b, c, d] = ANSWERS;
    let draft = format!("Review this.\nDraft: {a}");
    let (roster, names) = proposed(&[&[("You write.", "tea", a), ("You are the reviewer.", &draft, b)]]);
    assert!(roster.contains("# ") && roster.contains("perhaps `Draft`, a guess"), "{roster}");
    assert!(roster.contains("its prompt calls it: reviewer") && !roster.contains("name = \"Draft\""), "{roster}");
    assert!(names.iter().all(|name| name.starts_with("agent-")), "{names:?}");
    // Two speakers make a transcript.
    let talk = format!("So far\nAnn: {a}\nBo says: {b}");
    let run = [("You write.", "tea", a), ("You check.", "that", b), ("You sum up.", &talk, c), ("You end.", "x", d)];
    let (roster, names) = proposed(&[&run]);
    assert_eq!((names[0].as_str(), names[1].as_str()), ("Ann", "Bo"), "{roster}");
}

#[test]
fn what_a_rule_covers_and_what_differs_is_said() {
    let [a, b, c, d] = ANSWERS;
    let titles: Vec<String> = ["tea", "old ships", "maps"].iter().map(|of| format!("Give a title to: {of}")).collect();
    let run: Vec<Call<'_>> = titles.iter().zip([a, b, c]).map(|(text, answer)| ("-", text.as_str(), answer)).collect();
    let (roster, names) = proposed(&[&[run.as_slice(), &[("You judge titles.", a, d)]].concat()]);
    assert!(names[0] == names[1] && names[1] == names[2], "{roster}");
    assert!(
        roster.contains("covers 3 user texts") && roster.contains("\"tea\" | \"old ships\" | \"maps\""),
        "{roster}"
    );
    assert!(roster.contains("first_user_contains = \"Give a title to:\""), "{roster}");
    let house = "You are part of a team that works with care and speed for all of its clients. ";
    let (ann, bo) = (format!("{house}You write letters."), format!("{house}You judge letters."));
    let (roster, _) = proposed(&[&[(&ann, "tea", a), (&bo, a, b)]]);
    assert!(roster.contains("prompt: …") && roster.contains("You judge letters."), "{roster}");
    // One look for two models.
    let mut heard = observed(&[&[("You act.", "tea", a), ("You act.", "ships", b)]]);
    heard[0].steps[1].outline.model = "other".into();
    let names = BTreeMap::new();
    let roster = Suggestions::for_runs(&heard, &names).to_toml();
    assert!(roster.contains("NOT SURE: one look, 2 models (m, other)"), "{roster}");
}
