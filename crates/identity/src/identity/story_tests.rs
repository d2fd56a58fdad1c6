//! Stories of small programs, told request by request: who is told, in which run, on what evidence; and what the late
//! pass says when all has ended.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::*;
use crate::surface::{OpenaiChat, Surface};

mod voices;
mod waiting;

/// A server without named runs.
struct Story {
    identity: Identity,
    runs: HashMap<RunId, (Speakers, u32)>,
    next: u32,
    /// Runs that were forgotten to make room for others.
    forgotten: Vec<RunId>,
}

/// A request under way.
struct PendingCall {
    run: RunId,
    source: RunSource,
    step: u32,
    attribution: Attribution,
    track: Track,
    number: LedgerNumber,
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn called(id: &str, tool: &str, arguments: &str) -> Value {
    let call = json!({"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

impl Story {
    fn new() -> Self {
        let identity = Identity { lineage: Some(Arc::new(Mutex::new(Lineage::default()))), ..Identity::default() };
        Self { identity, runs: HashMap::new(), next: 0, forgotten: Vec::new() }
    }

    fn ask(&mut self, messages: &[Value], tools: &[&str]) -> PendingCall {
        let tools: Vec<Value> =
            tools.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect();
        let mut body = json!({"model": "m", "messages": messages});
        if !tools.is_empty() {
            body["tools"] = tools.into();
        }
        self.arrive(&OpenaiChat, &body)
    }

    fn arrive(&mut self, surface: &dyn Surface, body: &Value) -> PendingCall {
        let body = body.to_string();
        let hash = twox_hash::XxHash3_128::oneshot(body.as_bytes());
        let outline = surface.outline(body.as_bytes()).expect("a request");
        let next = &mut self.next;
        let new_run = || {
            *next += 1;
            RunId::parse(&format!("run{next}")).expect("an id")
        };
        let (placed, track) = self.identity.place(Some(&outline), hash, new_run).expect("lineage is on");
        let Placed { run, source, forgotten, .. } = placed;
        self.forgotten.extend(forgotten);
        let (speakers, steps) = self.runs.entry(run.clone()).or_default();
        let AttributedCall { attribution: told, number, .. } =
            speakers.attribute(&self.identity, Some(&outline), None, &LedgerRequest::from_hash(hash));
        let step = *steps;
        *steps += u32::from(source != RunSource::Retry);
        track.opened(step, u32::from(source == RunSource::Retry), &told);
        PendingCall { run, source, step, attribution: told, track, number }
    }

    fn answer(&mut self, asked: &PendingCall, message: &Value) {
        let body =
            json!({"id": format!("reply-{}-{}", asked.run, asked.step), "choices": [{"index": 0, "message": message}]});
        let reply = OpenaiChat.read_reply(body.to_string().as_bytes()).expect("a reply");
        self.end(asked, Some(&reply), false);
    }

    fn end(&mut self, asked: &PendingCall, reply: Option<&Reply>, failed: bool) {
        let ended = EndedCall { number: asked.number, reply, failed, at_us: 0 };
        self.runs.get_mut(&asked.run).expect("known").0.ended(&asked.attribution, &ended);
        asked.track.ended(reply, failed);
    }

    /// One request and its answer; run, source, agent and instance.
    fn turn(&mut self, messages: &[Value], answer: &Value) -> String {
        let asked = self.ask(messages, &[]);
        self.answer(&asked, answer);
        asked.line()
    }

    fn late(&mut self) -> BTreeMap<RunId, Vec<LateStep>> {
        let ids: Vec<RunId> = self.runs.keys().cloned().collect();
        self.identity.late_names(&ids)
    }
}

impl PendingCall {
    fn line(&self) -> String {
        format!("{} {}", self.run, self.source.name())
    }

    fn who(&self) -> String {
        let Attribution { agent, instance, ambiguous, .. } = &self.attribution;
        format!("{agent}#{instance}{}", if *ambiguous { "?" } else { "" })
    }
}

const TIDES: &str = "Write a short text about tides.";
const FIRST: &str = "Tides rise and fall twice a day because of the moon.";
const SECOND: &str = "The claim about the moon holds, the sun helps a little.";

#[test]
fn a_program_stays_one_run_by_what_it_quotes() {
    let mut story = Story::new();
    let (writer, critic) = (system("You write."), system("You criticise."));
    assert_eq!(story.turn(&[writer.clone(), user(TIDES)], &assistant(FIRST)), "run1 new");
    assert_eq!(story.turn(&[critic.clone(), user(TIDES), user(FIRST)], &assistant(SECOND)), "run1 quotes");
    assert_eq!(
        story.turn(&[writer.clone(), user(TIDES), assistant(FIRST), user(SECOND)], &assistant("Done then.")),
        "run1 quotes"
    );
    // Another task beside it, then the first one again, word for word: its run has left it behind.
    assert_eq!(
        story.turn(&[writer.clone(), user("Explain how bees navigate home.")], &assistant("By the sun.")),
        "run2 new"
    );
    assert_eq!(story.turn(&[critic, user("Explain how bees navigate home.")], &assistant("Fine.")), "run2 opening");
    assert_eq!(story.turn(&[writer, user(TIDES)], &assistant("Again: water moves.")), "run3 new");
    assert!(story.late().is_empty(), "nothing is seen otherwise late");
}

#[test]
fn siblings_in_flight_do_not_link_to_each_other() {
    let mut story = Story::new();
    let prompt = |of: &str| system(&format!("You review for {of}."));
    let a = story.ask(&[prompt("speed"), user(TIDES)], &[]);
    let b = story.ask(&[prompt("cost"), user(TIDES)], &[]);
    assert_eq!((a.line().as_str(), b.line().as_str()), ("run1 new", "run1 opening"));
    assert_ne!(a.attribution.agent, b.attribution.agent, "one word apart is another agent");
    story.answer(&a, &assistant(FIRST));
    story.answer(&b, &assistant(FIRST));
    let merged = story.ask(&[system("You merge."), user(FIRST)], &[]);
    assert_eq!(merged.line(), "run1 quotes", "the same words twice in one run are still that run's");
}

#[test]
fn two_runs_of_one_task_at_once_are_parted_late() {
    let mut story = Story::new();
    let (writer, critic) = (system("You write."), system("You criticise."));
    let answers = [FIRST, "Water is drawn by the moon and comes back each half day."];
    let openings = [(); 2].map(|()| story.ask(&[writer.clone(), user(TIDES)], &[]));
    // On arrival nothing tells them apart: the second is taken for an equal agent of the same run.
    assert_eq!((openings[1].line().as_str(), openings[1].attribution.instance), ("run1 opening", 1));
    for (opening, answer) in openings.iter().zip(answers) {
        story.answer(opening, &assistant(answer));
    }
    for answer in answers {
        assert_eq!(
            story.turn(&[critic.clone(), user(TIDES), user(answer)], &assistant(&format!("Noted: {answer}"))),
            "run1 quotes"
        );
    }
    let late = story.late();
    let late = &late[&openings[0].run];
    let moved: Vec<(u32, Option<u32>)> =
        late.iter().filter(|step| step.run.is_some()).map(|s| (s.step, s.instance)).collect();
    assert_eq!(moved, [(1, Some(0)), (3, None)], "the second opening and what followed it are another run's: {late:?}");
    assert_eq!(late[0].run, late[1].run);
}

#[test]
fn what_prompts_told_apart_no_late_look_joins() {
    let mut story = Story::new();
    let about = |topic: &str| system(&format!("You write. Be brief. Topic: {topic}"));
    let first = story.ask(&[about("tides"), user("Write now about the sea please.")], &[]);
    story.answer(&first, &assistant(FIRST));
    let second = story.ask(&[about("bees"), user("Write now about the hive please.")], &[]);
    story.answer(&second, &assistant(SECOND));
    assert_ne!(first.attribution.agent, second.attribution.agent, "on arrival only the request tells");
    assert!(story.late().is_empty(), "what two prompts share is as likely their house's boilerplate");
}

#[test]
fn vectors_stay_with_their_agent_whatever_it_is_called_late() {
    let mut story = Story::new();
    let about = |topic: &str, place: &str| {
        user(&format!("Task: look for the {place} please.\nYou search.\nBe brief and say where.\nTopic: {topic}"))
    };
    let first = story.ask(&[about("tides", "sea")], &[]);
    story.answer(&first, &assistant(FIRST));
    let reader = story.ask(&[user(&format!("Read this.\n{FIRST}"))], &[]);
    story.answer(&reader, &assistant("Read with care."));
    let second = story.ask(&[user("Where do wild bees live in the spring?")], &[]);
    story.answer(&second, &assistant("In hives and hollow trees, mostly."));
    let search = story.ask(&[about("bees", "hive"), user("In hives and hollow trees, mostly.")], &[]);
    let query = "how the wild bees find home in spring";
    story.answer(&search, &called("q1", "search", &json!({ "query": query }).to_string()));
    let vectors = story.arrive(&crate::surface::OpenaiEmbeddings, &json!({"model": "v", "input": [query]}));
    story.end(&vectors, None, false);
    assert_eq!(vectors.attribution.agent.as_str(), format!("{}/embedding", search.attribution.agent));
    let late = story.late();
    let of = |asked: &PendingCall| late.get(&asked.run)?.iter().find(|step| step.step == asked.step)?.agent.clone();
    let renamed = of(&search).expect("its frame has been heard before");
    assert_eq!(of(&vectors).expect("it goes with it").as_str(), format!("{renamed}/embedding"));
}

#[test]
fn equal_debaters_are_told_by_their_own_answers() {
    let mut story = Story::new();
    let debater = system("You debate.");
    let asked: Vec<PendingCall> = (0..3).map(|_| story.ask(&[debater.clone(), user(TIDES)], &[])).collect();
    let words = ["I say the moon does it all.", "I say the sun does it all.", "I say the wind does it all."];
    for (asked, words) in asked.iter().zip(words) {
        story.answer(asked, &assistant(words));
    }
    assert_eq!(asked.iter().map(|asked| asked.attribution.instance).collect::<Vec<_>>(), [0, 1, 2]);
    for number in [2_usize, 0, 1] {
        let history = [debater.clone(), user(TIDES), assistant(words[number]), user("What do you say now?")];
        let asked = story.ask(&history, &[]);
        assert_eq!((asked.attribution.instance as usize, asked.attribution.ambiguous), (number, false));
        story.answer(&asked, &assistant(&format!("Still: {}", words[number])));
    }
    let anew = story.ask(&[debater, user(&format!("One of you all: is this true? {}", words[0]))], &[]);
    assert!(anew.attribution.ambiguous && !anew.attribution.is_certain(), "no history: the wire cannot tell which");
}

#[test]
fn without_a_prompt_the_own_answer_or_the_frame_tells() {
    let mut story = Story::new();
    let solver = story.ask(&[user(TIDES)], &[]);
    story.answer(&solver, &assistant(FIRST));
    let judge = story.ask(&[user(&format!("Judge this answer.\n{TIDES}\n{FIRST}"))], &[]);
    story.answer(&judge, &assistant("It is right."));
    assert_ne!(solver.attribution.agent, judge.attribution.agent);
    assert_eq!(judge.attribution.source, Source::Frame);
    let again = story.ask(&[user(TIDES), assistant(FIRST), user("Are you sure?")], &[]);
    assert_eq!((&again.attribution.agent, again.attribution.source), (&solver.attribution.agent, Source::Continuation));
}

#[test]
fn the_last_word_of_a_tool_loop_without_tools_is_the_same_agents() {
    let mut story = Story::new();
    let checker = system("You check facts.");
    let first = story.ask(&[checker.clone(), user(TIDES)], &["look_up"]);
    story.answer(&first, &called("c9", "look_up", "{\"what\": \"tides\"}"));
    let last = [checker, user(TIDES), called("c9", "look_up", "{}"), result("c9", "They rise.")];
    assert_eq!(story.ask(&last, &[]).attribution.agent, first.attribution.agent);
    // Who answers for another prompt is not.
    let other = [system("You plan."), user(TIDES), called("c9", "look_up", "{}"), result("c9", "They rise.")];
    assert_ne!(story.ask(&other, &[]).attribution.agent, first.attribution.agent);
}

#[test]
fn vectors_are_asked_for_on_somebodys_behalf() {
    let mut speakers = Speakers::default();
    let rules = Identity::default();
    let outline = |text: &str| Outline {
        vectors: true,
        messages: vec![(&crate::surface::Message::text_of(crate::surface::Role::User, text)).into()],
        ..Outline::default()
    };
    let body = json!({"model": "m", "messages": [system("You search."), user("law?")]}).to_string();
    let asker = speakers
        .attribute(&rules, Some(&OpenaiChat.outline(body.as_bytes()).expect("it")), None, &LedgerRequest::from_hash(1))
        .attribution;
    let reply =
        json!({"choices": [{"index": 0, "message": called("c", "search", "{\"query\": \"the law of the sea\"}")}]});
    let reply = OpenaiChat.read_reply(reply.to_string().as_bytes()).expect("it");
    speakers.ended(&asker, &EndedCall { number: 0, reply: Some(&reply), failed: false, at_us: 0 });
    let told = speakers
        .attribute(&rules, Some(&outline("the law of the sea")), None, &LedgerRequest::from_hash(2))
        .attribution;
    assert_eq!(told.agent.as_str(), format!("{}/embedding", asker.agent));
    assert_eq!(helper_role(&told.agent), Some("embedding"));
    let nobody =
        speakers.attribute(&rules, Some(&outline("some document")), None, &LedgerRequest::from_hash(3)).attribution;
    assert_eq!((nobody.source, nobody.confidence), (Source::Fallback, 0.0));
}

#[test]
fn ten_thousand_steps_take_bounded_memory() {
    let mut story = Story::new();
    let words = |step: u32| {
        let word = |at: u32| format!("w{}", (step * 31 + at * 7919) % 100_003);
        (0..12).map(word).collect::<Vec<_>>().join(" ")
    };
    let mut last = "go on with the first task now".to_owned();
    for step in 0..10_000 {
        let asked = story.ask(&[system("You go on."), user(&last)], &[]);
        last = words(step);
        story.answer(&asked, &assistant(&last));
    }
    assert_eq!(story.runs.len(), 1, "it stays one run by what it quotes");
    let (speakers, steps) = story.runs.values().next().expect("it");
    assert_eq!(*steps, 10_000);
    let (held, most) = speakers.size();
    assert!(held <= most, "{held} of {most}");
    let lineage = story.identity.lineage.clone().expect("on");
    let (held, most) = locked(&lineage).size();
    assert!(held <= most, "{held} of {most}");
    story.late();
    assert_eq!(locked(&lineage).size().0, 0, "forgotten with the run");
}

#[test]
fn the_run_that_was_used_longest_ago_makes_room() {
    let mut story = Story::new();
    let task = |number: u32| user(&format!("Task {number}: weigh stone {} against stone {}.", number * 7, number * 11));
    for number in 1..=1024 {
        let source =
            story.turn(&[task(number)], &assistant(&format!("Stone {number} is heavier by {} grams.", number * 13)));
        assert_eq!(source, format!("run{number} new"));
    }
    assert!(story.forgotten.is_empty(), "there was room for all");
    let goes_on = [task(1), assistant("Stone 1 is heavier by 13 grams."), user("Are you sure?")];
    assert_eq!(story.turn(&goes_on, &assistant("Yes, by the scales.")), "run1 quotes");
    assert_eq!(story.turn(&[task(5000)], &assistant("Neither of them.")), "run1025 new");
    assert_eq!(story.forgotten.iter().map(RunId::as_str).collect::<Vec<_>>(), ["run2"], "the first one was used since");
    let too_late = [task(2), assistant("Stone 2 is heavier by 26 grams."), user("Are you sure?")];
    assert_eq!(story.turn(&too_late, &assistant("No.")), "run1026 new", "what is forgotten gets nothing more");
}

#[test]
fn a_run_that_is_about_to_end_gets_nothing_more_and_is_still_looked_at() {
    let mut story = Story::new();
    assert_eq!(story.turn(&[system("You write."), user(TIDES)], &assistant(FIRST)), "run1 new");
    assert_eq!(story.turn(&[system("You criticise."), user(FIRST)], &assistant(SECOND)), "run1 quotes");
    let run1 = RunId::parse("run1").expect("an id");
    story.identity.leave(std::slice::from_ref(&run1));
    assert_eq!(story.turn(&[system("You edit."), user(SECOND)], &assistant("Good.")), "run2 new");
    let late = story.late();
    let of_run1 = |step: &LateStep| step.run.as_ref() == Some(&run1);
    assert!(late.get(&RunId::parse("run2").expect("an id")).is_some_and(|steps| steps.iter().all(of_run1)), "{late:?}");
}

#[test]
fn many_agents_and_long_prompts_are_told_apart() {
    let mut speakers = Speakers::default();
    let rules = Identity::default();
    let long = "Follow this rule to the letter, always. ".repeat(26_000);
    let mut names = std::collections::HashSet::new();
    for number in 0..10_000_u128 {
        let outline = Outline {
            prompts: vec![
                format!("You are worker {}.", "x".repeat(usize::try_from(number % 97).expect("small") + 1)).into(),
                format!(
                    "Room {}",
                    char::from_u32(0x4e00 + u32::try_from(number / 97).expect("small")).expect("a letter")
                )
                .into(),
            ],
            ..Outline::default()
        };
        names.insert(
            speakers.attribute(&rules, Some(&outline), None, &LedgerRequest::from_hash(number)).attribution.agent,
        );
    }
    assert_eq!(names.len(), 10_000);
    let (held, most) = speakers.size();
    assert!(held <= most);
    let mut told = |text: String| {
        speakers
            .attribute(
                &rules,
                Some(&Outline { prompts: vec![text.into()], ..Outline::default() }),
                None,
                &LedgerRequest::from_hash(1),
            )
            .attribution
    };
    assert!(long.len() > 1_000_000);
    assert_eq!(told(long.clone()).agent, told(long.clone()).agent);
    assert_ne!(told(format!("You judge. {long}")).agent, told(format!("You plan. {long}")).agent);
}
