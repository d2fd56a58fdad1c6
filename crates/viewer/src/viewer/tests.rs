//! What the page is told of texts that mean harm, of long ones, and of what an agent has seen before.

use std::{io::Read, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::recording::{AnnotatedStep, Annotation, annotate};

/// Texts that mean harm to a page, a terminal or a reader.
fn hostile() -> Vec<String> {
    let markup =
        ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--<script>", "]]>", "{{7*7}}"];
    let steering = ["\u{1b}[2J\u{1b}]0;owned\u{7}", "a\rb", "\u{202e}gnp.exe", "\u{2028}\u{2029}", "\u{0}", "\u{feff}"];
    let mut texts: Vec<String> = markup.iter().chain(&steering).map(|text| (*text).to_owned()).collect();
    texts.push("x".repeat(300 << 10));
    texts.push("\u{1f469}\u{200d}\u{1f4bb}é".repeat(1000));
    texts
}

/// A run of a growing conversation: each step is asked all that was said before.
fn conversation(logs: &Path, said: &[String]) {
    let recorder = recorded::recorder(logs);
    let mut messages = vec![json!({"role": "system", "content": "You solve."})];
    for (step, said) in (0..).zip(said) {
        messages.push(json!({"role": "user", "content": said}));
        let request = Bytes::from(json!({"model": "m", "messages": messages}).to_string());
        let answer = json!({"role": "assistant", "content": format!("I read: {said}")});
        let choice = json!({"index": 0, "message": answer, "finish_reason": "stop"});
        let reply = json!({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]});
        messages.push(answer);
        recorded::call(&recorder, step, "solver", &request, &Bytes::from(reply.to_string()), None);
    }
    recorder.seal().expect("seals");
}

fn data(library: &ViewerLibrary, path: &str) -> serde_json::Value {
    let answer = library.answer(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    answer.data().expect("data")
}

/// A page in one file with what is packed in it put in front.
pub(super) fn unpacked(html: &str) -> String {
    let mut all = String::new();
    for block in html.split("<script type=\"text/plain\"").skip(1) {
        let packed = block.split_once('>').and_then(|(_, rest)| rest.split_once('<')).expect("a block").0;
        let packed = STANDARD.decode(packed).expect("base64");
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_string(&mut all).expect("zlib");
    }
    all + html
}

#[test]
fn a_file_that_is_passed_on_holds_the_words_of_no_annotator() {
    let logs = tempfile::tempdir().expect("a directory");
    conversation(logs.path(), &["one", "two"].map(str::to_owned));
    let error = AnnotatedStep { agent: "solver".to_owned(), step: 1, why: "it forgot the oranges".to_owned() };
    let run = crate::trajectory::RunId::parse("r").expect("an id");
    let said = Annotation::now(run, "ada-annotator", Some(error)).expect("an annotation");
    annotate(&logs.path().join("r"), &said).expect("written");
    let library = ViewerLibrary::new(vec![logs.path().to_owned()]);
    assert!(data(&library, "run/r").to_string().contains("oranges"), "who looks is told");
    let all = unpacked(&bundle(&library).expect("a page").html.into_text());
    assert!(all.contains("I read: two") && !all.contains("oranges") && !all.contains("ada-annotator"));
    let telling = ViewerLibrary::new(vec![logs.path().to_owned()]).with_annotations();
    let all = unpacked(&bundle(&telling).expect("a page").html.into_text());
    assert!(all.contains("oranges") && all.contains("ada-annotator"), "where it is wanted, they are in it");
    // A file of words that cannot be read is named with its place: that is told here alone, too.
    std::fs::write(logs.path().join("annotations/bo.jsonl"), "{").expect("written");
    let all = unpacked(&bundle(&library).expect("a page").html.into_text());
    assert!(all.contains("I read: two") && !all.contains("bo.jsonl"));
    assert!(!all.contains(&logs.path().display().to_string()), "no place of this machine");
}

#[test]
fn hostile_texts_come_as_they_are_and_only_in_strings() {
    let logs = tempfile::tempdir().expect("a directory");
    let said = hostile();
    conversation(logs.path(), &said);
    let library = ViewerLibrary::new(vec![logs.path().to_owned()]);
    for (step, said) in said.iter().enumerate() {
        let told = data(&library, &format!("run/r/texts/{step}"));
        let last = told["request"].as_array().expect("blocks").last().expect("a block").clone();
        let shown = last["text"].as_str().expect("a text");
        assert_eq!(last["known"], false);
        if said.len() > 256 << 10 {
            assert_eq!((shown.len(), &last["bytes"]), (64 << 10, &json!(said.len())));
        } else {
            assert_eq!(shown, said);
        }
    }
    let html = bundle(&library).expect("a page").html.into_text();
    assert_eq!(html.matches("<script>").count(), 1, "no text became a script");
    assert!(!html.contains("<img") && !html.contains("alert(1)"), "texts are packed");
}

#[test]
fn what_an_agent_has_seen_is_known() {
    let logs = tempfile::tempdir().expect("a directory");
    conversation(logs.path(), &["one", "two", "two", "three"].map(str::to_owned));
    let library = ViewerLibrary::new(vec![logs.path().to_owned()]);
    for step in 1..4 {
        let told = data(&library, &format!("run/r/texts/{step}"));
        let new: Vec<_> =
            told["request"].as_array().expect("blocks").iter().filter(|one| one["known"] == false).collect();
        // The same words again are new words; the agent's own reply is not.
        assert_eq!((new.len(), &told["since"]), (1, &json!(step - 1)), "{told}");
    }
    let quoted = &data(&library, "run/r/texts/0")["quoted"]["steps"];
    assert_eq!(quoted.as_array().map(Vec::len), Some(3), "{quoted}");
}

#[test]
fn two_runs_of_one_name_have_names_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    for logs in ["a", "b"] {
        conversation(&dir.path().join(logs), &["one".to_owned()]);
    }
    let listing = Listing::scan(&[dir.path().to_owned(), dir.path().join("a")]);
    let keys: Vec<&str> = listing.runs.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["r", "r~2"], "each once, though two of the names lead to one");
    std::fs::write(dir.path().join("b/r/run.json"), "{").expect("written");
    let listing = Listing::scan(&[dir.path().to_owned()]);
    assert_eq!(listing.runs.iter().filter(|row| row.unreadable.is_some()).count(), 1);
}

#[test]
fn a_list_is_chosen_from_by_words_kind_and_order() {
    let dir = tempfile::tempdir().expect("a directory");
    for logs in ["a", "b", "c"] {
        conversation(&dir.path().join(logs), &["one".to_owned()]);
    }
    let library = ViewerLibrary::new(vec![dir.path().to_owned()]);
    let keys = |asked: &str| {
        let found = data(&library, &format!("runs/{asked}"));
        let rows =
            found["rows"].as_array().expect("rows").iter().map(|row| row["key"].as_str().expect("a key").to_owned());
        (rows.collect::<Vec<_>>(), found["total"].as_u64())
    };
    assert_eq!(keys("{}").1, Some(3));
    assert_eq!(keys("%7B%22q%22%3A%22R%20SOLVER%22%7D").1, Some(3), "in any case, each word somewhere");
    assert_eq!(keys(r#"{"q":"nowhere"}"#), (vec![], Some(0)));
    assert_eq!((keys(r#"{"kind":"clean"}"#).1, keys(r#"{"kind":"treated"}"#).1), (Some(3), Some(0)));
    assert_eq!(keys(r#"{"sort":"calls","labelled":"1"}"#).1, Some(0));
    assert!(library.answer("runs/no").is_err());
}

#[test]
fn what_was_read_of_runs_is_read_back_and_read_anew_where_they_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    conversation(dir.path(), &["one".to_owned()]);
    let (dirs, kept) = ([dir.path().to_owned()], dir.path().join("kept/list"));
    let mut cache = ListingCache::at(&kept);
    let first = Listing::refreshed(&dirs, &mut cache);
    cache.write_all();
    let mut cache = ListingCache::at(&kept);
    assert_eq!(Listing::refreshed(&dirs, &mut cache).runs, first.runs);
    assert_eq!(cache.read_anew(), 0, "nothing was read again");
    let run = dir.path().join("r/run.json");
    let text = std::fs::read_to_string(&run).expect("a file").replacen(
        "\"upstream\"",
        "\"task\": \"a new one\", \"upstream\"",
        1,
    );
    std::fs::write(&run, text).expect("written");
    let mut cache = ListingCache::at(&kept);
    assert_eq!(Listing::refreshed(&dirs, &mut cache).runs[0].task.as_deref(), Some("a new one"));
    assert_ne!(cache.read_anew(), 0);
    std::fs::write(&kept, "no list").expect("written");
    let mut cache = ListingCache::at(&kept);
    assert_eq!(Listing::refreshed(&dirs, &mut cache).runs.len(), 1, "a file that cannot be read counts as none");
}

#[test]
fn ten_thousand_steps_are_few_bytes() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = recorded::recorder(logs.path());
    let request = Bytes::from_static(b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"go on\"}]}");
    for step in 0..10_000 {
        recorded::call(&recorder, step, "solver", &request, &Bytes::from_static(b"{\"choices\":[]}"), None);
    }
    recorder.seal().expect("seals");
    let library = ViewerLibrary::new(vec![logs.path().to_owned()]);
    let run = data(&library, "run/r").to_string();
    assert!(run.len() < 1_500_000, "{} bytes", run.len());
}

#[test]
fn words_are_found_where_they_are_said_first() {
    let logs = tempfile::tempdir().expect("a directory");
    conversation(logs.path(), &["the Sum is 94", "two", "three"].map(str::to_owned));
    let library = ViewerLibrary::new(vec![logs.path().to_owned()]);
    let found = |words: &str| {
        let found = data(&library, &format!("run/r/search/{words}"));
        let steps = found["steps"].as_array().expect("steps").clone();
        steps.iter().map(|one| (one["step"].as_u64(), one["side"].as_str().map(str::to_owned))).collect::<Vec<_>>()
    };
    // Later requests hold the words too, but tell nothing new with them.
    assert_eq!(found("sum%20is"), [(Some(0), Some("answered".to_owned()))]);
    assert_eq!(found("You%20solve"), [(Some(0), Some("asked".to_owned()))]);
    assert_eq!(found("nowhere"), []);
    assert!(library.answer("run/r/search/%20").is_err());
}

#[test]
fn words_are_found_in_the_texts_of_all_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    for (logs, said) in [("a", "the Sum is 94"), ("b", "two"), ("c", "a sum is owed")] {
        conversation(&dir.path().join(logs), &["one", said].map(str::to_owned));
    }
    let library = ViewerLibrary::new(vec![dir.path().to_owned()]);
    let found = data(&library, r#"runs/{"text":"sum%20is"}"#);
    assert_eq!((found["total"].as_u64(), found["rows"].as_array().map(Vec::len)), (Some(2), Some(2)), "{found}");
    let texts = &found["texts"];
    assert_eq!((texts["searched"].as_u64(), texts["of"].as_u64()), (Some(3), Some(3)));
    assert_eq!(texts["found"][0]["steps"][0]["step"], 1, "{found}");
    assert_eq!(data(&library, r#"runs/{"text":"sum","q":"nowhere"}"#)["texts"]["of"], 0, "only what the list leaves");
    let rows = library.listing().runs.clone();
    let limit = SearchLimit { runs: 1, time: std::time::Duration::ZERO };
    let ended = FoundTexts::search(&rows.iter().collect::<Vec<_>>(), "sum", limit, false);
    assert_eq!((ended.searched, ended.of), (0, 3), "what was not searched is said");
}

#[test]
fn executions_of_a_trace_say_which_steps_a_record_answered() {
    let logs = tempfile::tempdir().expect("a directory");
    let traced = logs.path().join("traced");
    conversation(&traced.join("trials"), &["one", "two", "three"].map(str::to_owned));
    let library = ViewerLibrary::new(vec![traced.join("trials")]);
    let states = |library: &ViewerLibrary| {
        let run = data(library, "run/r");
        run["rows"].as_array().expect("rows").iter().map(|row| row[5].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let live = Some("live".to_owned());
    assert_eq!(states(&library), [live.clone(), live.clone(), live.clone()], "nobody knows of a record");
    let trace = json!({"steps": [{"step": 0}, {"step": 1, "null_runs": [], "treated_runs": ["r"]}]});
    std::fs::write(traced.join("trace.json"), trace.to_string()).expect("written");
    let library = ViewerLibrary::new(vec![traced.join("trials")]);
    assert_eq!(states(&library), [Some("recorded".to_owned()), Some("recorded".to_owned()), live]);
}
