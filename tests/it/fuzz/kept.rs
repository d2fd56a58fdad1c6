//! The reader of what an upstream keeps, of a run in which a reply and a request were edited.

use std::{collections::HashSet, sync::OnceLock};

use aegis::surface::{self, Asked, Edited, ListOrder, Message, Role, Surface, splice::Node, sse};
use serde_json::json;

use super::examples;

/// An API that keeps what was said, and what was edited of it.
struct Keeper {
    surface: &'static dyn Surface,
    edited: Edited,
    /// A kept reply, whole and streamed.
    kept: [Vec<u8>; 2],
    /// Where the items of its request are fetched, and a list of them.
    path: String,
    list: String,
}

fn keepers() -> &'static [Keeper] {
    static KEEPERS: OnceLock<Vec<Keeper>> = OnceLock::new();
    KEEPERS.get_or_init(|| [("openai_chat", "messages"), ("openai_responses", "input_items")].map(keeper).into())
}

fn keeper((name, list): (&str, &str)) -> Keeper {
    let surface = *surface::ALL.iter().find(|surface| surface.name() == name).expect("a surface");
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let request = |texts: &[&str]| {
        let mut asked = blank.clone();
        asked.messages = texts.iter().map(|text| Message::text_of(Role::User, *text)).collect();
        surface.write_request(surface.blank_request(), &blank, &asked).expect("a place")
    };
    let reply = examples::reply("resp_1");
    let kept = [surface.compose(&reply, 1).to_vec(), surface.compose_stream(&reply, 1, true).concat()];
    let before = surface.read_reply(&kept[0]).expect("a reply");
    let mut after = before.clone();
    after.answers[0].message.set_text("Seven.");
    let told = surface.write_reply(&kept[0], &before, &after).expect("a place");
    let mut edited = Edited::default();
    edited.keep(surface, &kept[0], &told, false).expect("kept");
    let (own, got) = (request(&["a", "b", "c"]), request(&["a", "x", "y", "c"]));
    edited.keep_request(surface, &before, (None, None), Some((&own, &got)));
    let path = format!("/v1/{}/{list}", before.id);
    let items = surface.kept(&got, b"{}", false).expect("kept").asked;
    let items = items.iter().enumerate().map(|(number, item)| surface.shown(item, None, &number.to_string()));
    let list = json!({"path": list, "data": []})
        .to_string()
        .replace("[]", &format!("[{}]", items.collect::<Vec<_>>().join(",")));
    Keeper { surface, edited, kept, path, list }
}

/// What they hand out, and a list that begins in the middle of a request.
pub fn examples() -> Vec<Vec<u8>> {
    let of = |keeper: &Keeper| {
        let page = keeper.list.replacen("\"a\"", "\"q\"", 1);
        [keeper.kept[0].clone(), keeper.kept[1].clone(), keeper.list.clone().into_bytes(), page.into_bytes()]
    };
    keepers().iter().flat_map(of).collect()
}

/// What is shown in place of an object, a list or a stream is one; what no edit concerns is left as it is.
pub fn check(input: &[u8]) -> Vec<String> {
    let mut said = Vec::new();
    for Keeper { surface, edited, path, .. } in keepers() {
        for (path, order, from_start) in [
            (path.as_str(), ListOrder::Ascending, true),
            (path, ListOrder::Descending, false),
            ("/v1/other", ListOrder::Ascending, true),
        ] {
            let shown = edited.restate(*surface, input, Asked { path, order, from_start });
            if let Ok(Some(written)) = &shown {
                let read = Node::parse(written);
                let read = read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(written)));
                let before = Node::parse(input).expect("it was read");
                assert_eq!(read.get("data").is_some(), before.get("data").is_some());
                assert_ne!(&written[..], input, "what is the same is not shown anew");
            }
            said.push(match shown {
                Ok(shown) => format!("{:?}", shown.map(|shown| shown.len() / 64)),
                Err(error) => error.to_string().split('`').step_by(2).take(2).collect(),
            });
        }
        let (whole, part) =
            (edited.restate_stream(*surface, input, None), edited.restate_stream(*surface, input, Some(1)));
        assert_eq!(whole.is_ok(), part.is_ok());
        if let (Ok(Some(whole)), Ok(Some(part))) = (whole, part) {
            let events = |body: &[u8]| -> Vec<Vec<u8>> {
                sse::events(body).into_iter().map(|event| body[event.span].to_vec()).collect()
            };
            let all: HashSet<Vec<u8>> = events(&whole).into_iter().collect();
            assert!(events(&part).iter().all(|event| all.contains(event)), "a part of it");
            said.push(format!("{}", events(&part).len().min(20)));
        }
    }
    said
}
