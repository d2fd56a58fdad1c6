//! A strict replay answers no other question: one word of a recorded request is another, and the record is not served for it
//! unless the replay says that the answer is not exact.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    replay::{Cassette, Replayed},
    simulator::Simulator,
    surface::{self, Message, Role},
    trajectory::RunId,
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

use crate::{
    lab::{Lab, Setup},
    replay::Tripwire,
};

/// What agents are told and asked: with numbers, dates, times, ids, hashes, paths, versions, names.
const TASKS: [(&str, &str); 12] = [
    ("You are a planner in a team of 3. Plan the work.", "How many days lie between 2026-01-01 and 2026-02-01?"),
    ("You are a solver.\nEnd with a line `ANSWER: <number>`.", "Tom has 12 apples and buys 5 more. How many has he?"),
    ("You look records up.", "Which user owns 3f2b8c1e-7a54-4c1d-9e0f-5b6a7c8d9e01 since 1 March 2026, HH:MM:30?"),
    (
        "You review changes.",
        "Commit 9e107d9d372bb6826bd81d3542a419d6 in /home/anna/project breaks the build of release 4.12.3",
    ),
    ("You translate into French. Today is a holiday.", "The meeting is on 3 May 2026 at 14:30 in room B-204"),
    ("You are a critic of plans.", "Ticket OPS-1482 asks for 200 GB on host db7.example.org, port 5432, before Friday"),
    ("You write SQL.", "select name from users where id = 8842 and created > '2025-12-24T18:00:00Z' limit 20"),
    (
        "You route mail.",
        "From: anna@example.org To: berta@example.com Subject: invoice INV-2026-0042 over 1,299.50 EUR",
    ),
    ("You are a nurse's assistant.", "The patient took 2.5 mg at 08:00 and 5 mg at 20:00; temperature 38.4"),
    ("You count.", "Run 17 of 20 took 4.25 s and wrote /tmp/tmp8f3a91/out.csv with 31,556 rows"),
    ("You check flights.", "LH 400 from FRA to JFK on 2026-07-14, seat 23A, booking XK7Q2P, 640 euros"),
    ("You know the law.", "Does article 13 of regulation 2016/679 apply to a firm of 49 people since 25.05.2018?"),
];

/// Changes that are tried.
const CHANGES: usize = 1_000;

/// A recorded request.
struct RecordedRequest {
    path: String,
    body: String,
}

/// The tasks, with a time of the day that no clock of the test can show: half an hour from now in every time zone.
fn tasks() -> Vec<(&'static str, String)> {
    let minute = jiff::Timestamp::now().as_second() / 60;
    let time = format!("09:{:02}", (minute + 30).rem_euclid(60));
    TASKS.iter().map(|(prompt, task)| (*prompt, task.replace("HH:MM", &time))).collect()
}

fn recorded_requests(tasks: &[(&str, String)]) -> Vec<RecordedRequest> {
    let talks = ["openai_chat", "openai_responses", "anthropic_messages", "gemini_generate", "gemini_interactions"];
    let surfaces: Vec<_> = surface::ALL.iter().filter(|surface| talks.contains(&surface.name())).collect();
    assert_eq!(surfaces.len(), talks.len());
    let each = tasks.iter().enumerate().map(|(number, (prompt, task))| {
        let surface = surfaces[number % surfaces.len()];
        let blank = surface.read_request(surface.blank_request()).expect("a request");
        let mut talk = blank.clone();
        talk.messages = vec![Message::text_of(Role::System, *prompt), Message::text_of(Role::User, task.as_str())];
        let body = surface.write_request(surface.blank_request(), &blank, &talk).expect("written");
        let body = String::from_utf8(body.to_vec()).expect("text");
        RecordedRequest { path: format!("/a/agent{number}{}", surface.path()), body }
    });
    each.collect()
}

/// The record of all requests, as the only upstream.
async fn replaying(cassette: &Arc<Cassette>) -> (Lab, Arc<Replayed>) {
    let replayed = Arc::new(Replayed::new(Arc::clone(cassette)));
    let lab = Lab::over(Arc::new(Tripwire::default()), Setup::default()).await;
    let id = RunId::parse("r0").expect("an id");
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    lab.proxy.runs.open(&id, RunSetup { upstream, ..RunSetup::default() }).await.expect("opens");
    (lab, replayed)
}

/// The text with one letter or digit of one of its words replaced by another one; what it was, and what it is.
fn changed(text: &str, draw: &mut ChaCha8Rng) -> (String, String, String) {
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_alphanumeric())).collect();
    let word = words[draw.random_range(..words.len())];
    let places: Vec<usize> = word.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    let at = places[draw.random_range(..places.len())];
    let old = char::from(word.as_bytes()[at]);
    let kind = match old {
        '0'..='9' => '0'..='9',
        'A'..='Z' => 'A'..='Z',
        _ => 'a'..='z',
    };
    let others: Vec<char> = kind.filter(|other| *other != old).collect();
    let mut new = word.to_owned();
    new.replace_range(at..=at, &others[draw.random_range(..others.len())].to_string());
    (text.replacen(word, &new, 1), word.to_owned(), new)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_replay_answers_none_of_a_thousand_changed_requests_as_if_it_were_the_recorded_one() {
    let tasks = tasks();
    let requests = recorded_requests(&tasks);
    let mut recorded = Lab::over(Arc::new(Simulator::new(7)), Setup::default()).await;
    for RecordedRequest { path, body } in &requests {
        assert_eq!(recorded.post(path, body.as_bytes()).await.status, 200, "{body}");
    }
    recorded.sealed("r0").await;
    let cassette = Arc::new(Cassette::open(&recorded.logs.join("r0")).expect("a cassette"));
    let (mut lab, mut replayed) = replaying(&cassette).await;
    let mut draw = ChaCha8Rng::seed_from_u64(2026);
    let (mut refused, mut not_exact, mut wrong) = (0, Vec::new(), Vec::new());
    for change in 0..CHANGES {
        let number = change % requests.len();
        let (prompt, task) = (tasks[number].0, tasks[number].1.as_str());
        let text = if draw.random_bool(0.3) { prompt } else { task };
        let (new, was, is) = changed(text, &mut draw);
        let in_json = |text: &str| serde_json::to_string(text).expect("JSON").trim_matches('"').to_owned();
        let body = requests[number].body.replacen(&in_json(text), &in_json(&new), 1);
        assert_ne!(body, requests[number].body, "{text}");
        let reply = lab.post(&requests[number].path, body.as_bytes()).await;
        if reply.status == 409 {
            refused += 1;
            continue;
        }
        let report = replayed.report();
        let said = format!("{was} → {is} in \"{text}\"");
        if report.other_values.is_empty() && report.unsure.is_empty() { &mut wrong } else { &mut not_exact }.push(said);
        (lab, replayed) = replaying(&cassette).await;
    }
    println!(
        "{CHANGES} changes: {refused} refused, {} served as not exact, {} as if equal",
        not_exact.len(),
        wrong.len()
    );
    for served in &wrong {
        println!("as if equal: {served}");
    }
    assert!(wrong.is_empty());
    assert!(refused > CHANGES / 2 && !not_exact.is_empty(), "{not_exact:?}");
}
