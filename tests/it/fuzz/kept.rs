//! The reader of what an upstream keeps, of a run in which a reply was edited.

use std::{collections::HashSet, sync::OnceLock};

use aegis::surface::{self, Edited, Surface, splice::Node, sse};

use super::examples;

/// An API that keeps what was said, and what was edited of it.
struct Keeper {
    surface: &'static dyn Surface,
    edited: Edited,
    /// A kept reply, whole and streamed.
    kept: [Vec<u8>; 2],
    /// A list of what is kept.
    list: String,
}

fn keepers() -> &'static [Keeper] {
    static KEEPERS: OnceLock<Vec<Keeper>> = OnceLock::new();
    KEEPERS.get_or_init(|| ["openai_chat", "openai_responses"].map(keeper).into())
}

fn keeper(name: &str) -> Keeper {
    let surface = *surface::ALL.iter().find(|surface| surface.name() == name).expect("a surface");
    let reply = examples::reply("resp_1");
    let kept = [surface.compose(&reply, 1).to_vec(), surface.compose_stream(&reply, 1, true).concat()];
    let before = surface.read_reply(&kept[0]).expect("a reply");
    let mut after = before.clone();
    after.answers[0].message.set_text("Seven.");
    let told = surface.write_reply(&kept[0], &before, &after).expect("a place");
    let mut edited = Edited::default();
    edited.keep(surface, &kept[0], &told, false).expect("kept");
    let whole = String::from_utf8(kept[0].clone()).expect("UTF-8");
    let items = surface.kept(b"{}", &kept[0], false).map(|kept| kept.replied).unwrap_or_default();
    let listed: Vec<String> = items.into_iter().chain([whole]).collect();
    let list = format!(r#"{{"object":"list","data":[{}],"first_id":"x","last_id":"y"}}"#, listed.join(","));
    Keeper { surface, edited, kept, list }
}

/// What they hand out.
pub fn examples() -> Vec<Vec<u8>> {
    let of = |keeper: &Keeper| [keeper.kept[0].clone(), keeper.kept[1].clone(), keeper.list.clone().into_bytes()];
    keepers().iter().flat_map(of).collect()
}

/// What is shown in place of an object, a list or a stream is one; what no edit concerns is left as it is.
pub fn check(input: &[u8]) -> Vec<String> {
    let mut said = Vec::new();
    for Keeper { surface, edited, .. } in keepers() {
        for newest_first in [false, true] {
            let shown = edited.restate(*surface, input, newest_first);
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
