//! The measuring, measured: that a wrong byte is seen, a request is read as it was meant, text is
//! never the same twice. It runs before every measurement, and alone under `cargo test`.

use std::time::Duration;

use crate::chat::{Ask, INSTRUCTION, Reply, Verdict, judge};
use crate::conversation::{AGENTS, Conversation, Shape};
use crate::load::{self, Load, Until};

/// Stops the program at the first thing that is not as it must be.
pub(crate) fn run(upstream: u16) {
    requests_have_their_sizes();
    wrong_bytes_are_seen();
    edits_are_seen();
    text_packs_as_prose_does();
    the_upstream_answers_as_expected(upstream);
}

fn requests_have_their_sizes() {
    for (shape, kilobytes) in
        [(Shape::SMALL, 2.0), (Shape::MIDDLE, 32.0), (Shape::LARGE, 256.0), (Shape::TEAM, 62.0), (Shape::TOOLS, 2.0)]
    {
        let mut conversation = Conversation::new(shape, 5);
        let (mut body, mut total, mut requests) = (Vec::new(), 0, 0);
        while !conversation.is_over() {
            assert!(AGENTS.contains(&conversation.agent()));
            conversation.next_request(&mut body);
            let _: serde_json::Value = serde_json::from_slice(&body).expect("a request is JSON");
            let ask = Ask::of(&body).expect("a request can be read");
            assert_eq!((ask.reply, ask.stream), (shape.reply, shape.stream));
            conversation.answered(&ask.text());
            (total, requests) = (total + body.len(), requests + 1);
        }
        let mean = total as f64 / f64::from(requests) / 1024.0;
        assert!((mean / kilobytes - 1.0).abs() < 0.1, "requests of {kilobytes} kB are {mean:.1} kB on average");
    }
}

fn wrong_bytes_are_seen() {
    for stream in [false, true] {
        let body = request(Shape { stream, ..Shape::SMALL });
        let ask = Ask::of(&body).expect("a request can be read");
        let reply = ask.expected();
        assert_eq!(judge(&ask, &reply, &reply), Verdict::Exact);
        for at in [0, reply.len() / 2, reply.len() - 1] {
            let mut wrong = reply.clone();
            wrong[at] ^= 1;
            assert_ne!(judge(&ask, &reply, &wrong), Verdict::Exact);
        }
        let mut changed = body.clone();
        let at = body.len() / 2;
        changed[at] ^= 1;
        let other = Ask::of(&changed).expect("a request can be read").expected();
        assert_eq!(judge(&ask, &reply, &other), Verdict::RequestChanged);
    }
}

fn edits_are_seen() {
    let reply = Reply { look_for_edit: true, ..Shape::SMALL.reply };
    let body = String::from_utf8(request(Shape { reply, ..Shape::SMALL })).expect("a request is text");
    let unedited = Ask::of(body.as_bytes()).expect("a request can be read");
    let mut asked = unedited.clone();
    asked.edited = true;
    let end = "\"}],\"temperature\"";
    let edited = body.replace(end, &format!("\\n\\n{INSTRUCTION}{end}"));
    let ask = Ask::of(edited.as_bytes()).expect("a request can be read");
    assert_eq!((ask.fingerprint, ask.edited, unedited.edited), (unedited.fingerprint, true, false));
    assert_eq!(judge(&asked, &asked.expected(), &ask.expected()), Verdict::Exact);
    assert_eq!(judge(&asked, &asked.expected(), &unedited.expected()), Verdict::EditMissing);
    assert_eq!(judge(&unedited, &unedited.expected(), &ask.expected()), Verdict::EditMissing);
}

/// Text that packs too well would flatter what a recording stores.
fn text_packs_as_prose_does() {
    let body = request(Shape { system: 100_000, ..Shape::SMALL });
    let packed = zstd::encode_all(body.as_slice(), 3).expect("text can be packed");
    let ratio = packed.len() as f64 / body.len() as f64;
    assert!((0.30..0.45).contains(&ratio), "text packs to {ratio:.2} of its size: expected what English does");
}

fn the_upstream_answers_as_expected(port: u16) {
    let streamed = Shape { stream: true, ..Shape::SMALL };
    for (shape, requests) in [(Shape::SMALL, 8), (streamed, 8), (Shape::TOOLS, 8), (Shape::TURN, 24)] {
        let outcome = load::run(&Load {
            port,
            shape,
            connections: 2,
            rate: None,
            until: Until::Conversations(2),
            stagger: Duration::ZERO,
            explicit: true,
            edited: false,
            seed: 3,
        });
        assert_eq!(
            (outcome.verdicts.get(&Verdict::Exact), outcome.failures.len()),
            (Some(&requests), 0),
            "{outcome:?}"
        );
    }
}

fn request(shape: Shape) -> Vec<u8> {
    let mut body = Vec::new();
    Conversation::new(shape, 9).next_request(&mut body);
    body
}
