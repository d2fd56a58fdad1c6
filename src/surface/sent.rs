//! Requests that were edited on their way, in lists of what the upstream keeps: shown as their program sent them. The
//! upstream gave their items ids that nobody else knows, so they are found by what they say.

use std::collections::{HashMap, HashSet};

use super::{Kept, Message, Part, Reply, Role, Surface, splice::Node};

/// Longest chain of replies that is followed back.
const CHAIN_MAX: usize = 1024;

/// Requests that the upstream got otherwise than their programs sent them.
#[derive(Debug, Default)]
pub struct Sent {
    /// In the order of their replies.
    requests: Vec<Otherwise>,
    /// By the id of a reply since the first of them: what it went on from.
    origins: HashMap<String, SentFrom>,
}

#[derive(Debug)]
struct Otherwise {
    reply: String,
    /// The items of the reply: they stand right behind those of the request.
    items: Vec<String>,
    thread: Option<String>,
    /// Piece by piece, as the program sent it.
    own: Vec<String>,
    /// The same as the upstream got it.
    got: Vec<String>,
}

#[derive(Debug)]
struct SentFrom {
    reply: Option<String>,
    thread: Option<String>,
    /// How many of the requests came before it.
    earlier: usize,
}

/// What a list says of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    /// The path that it was fetched from.
    pub(super) path: &'a str,
    /// Its elements as they are written, the oldest first.
    pub(super) elements: &'a [&'a str],
    /// Whether it is all there is, and not a page of it.
    pub(super) whole: bool,
}

/// For each element of a list what stands in its place, where that is another.
pub(super) type Instead = Vec<Option<Vec<String>>>;

impl Sent {
    /// Whether all requests went as they were sent.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a list below this id may hold what a request said.
    pub(super) fn concerns(&self, id: &str) -> bool {
        self.origins.contains_key(id) || self.requests.iter().any(|request| request.thread.as_deref() == Some(id))
    }

    /// Remembers what a reply went on from, where that matters.
    pub(super) fn link(&mut self, reply: &str, from: Option<String>, thread: Option<String>) {
        if !self.is_empty() && !reply.is_empty() {
            let earlier = self.requests.len();
            self.origins.entry(reply.to_owned()).or_insert(SentFrom { reply: from, thread, earlier });
        }
    }

    /// Remembers a request that was edited.
    pub(super) fn keep(&mut self, reply: &Reply, thread: Option<String>, own: Kept, got: Kept) {
        if own.asked != got.asked {
            let (reply, items) = (reply.id.clone(), reply.items.clone());
            // That of a reply in the background is kept before the reply is made: now its items are known.
            if let Some(known) = self.requests.iter_mut().rfind(|known| known.reply == reply && known.own == own.asked)
            {
                known.items = items;
                return;
            }
            self.requests.push(Otherwise { reply, items, thread, own: own.asked, got: got.asked });
        }
    }

    /// The requests that a path leads to, the newest first.
    fn at(&self, path: &str) -> Vec<&Otherwise> {
        let mut found = HashSet::new();
        for segment in path.split('/') {
            let mut take = |earlier: usize, holds: &dyn Fn(&Otherwise) -> bool| {
                let requests = self.requests.iter().take(earlier).enumerate();
                found.extend(requests.filter(|(_, request)| holds(request)).map(|(number, _)| number));
            };
            take(usize::MAX, &|request| request.thread.as_deref() == Some(segment));
            let mut next = Some(segment);
            for _ in 0..CHAIN_MAX {
                let Some(id) = next else { break };
                take(usize::MAX, &|request| request.reply == id);
                let Some(from) = self.origins.get(id) else { break };
                take(from.earlier, &|request| from.thread.is_some() && request.thread == from.thread);
                next = from.reply.as_deref();
            }
        }
        let mut numbers: Vec<usize> = found.into_iter().collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.into_iter().filter_map(|number| self.requests.get(number)).collect()
    }

    /// What stands in the places of the elements of a list; nothing where a request should be there and is not found.
    pub(super) fn instead(&self, surface: &dyn Surface, list: List<'_>) -> Option<Instead> {
        let mut instead: Instead = vec![None; list.elements.len()];
        let requests = self.at(list.path);
        if requests.is_empty() {
            return Some(instead);
        }
        let read = |pieces: &mut dyn Iterator<Item = &str>| pieces.map(|piece| surface.kept_message(piece)).collect();
        let said: Vec<Option<Message>> = read(&mut list.elements.iter().copied());
        let mut end = said.len();
        for request in requests {
            let got: Vec<Option<Message>> = read(&mut request.got.iter().map(String::as_str));
            let answered = list.elements.iter().position(|element| request.is_answered_by(element));
            let is_last = list.whole && list.path.split('/').any(|segment| segment == request.reply);
            let anchor = answered.or(is_last.then_some(said.len()));
            let Some(offset) = place(&got, said.get(..anchor.unwrap_or(end)).unwrap_or_default(), anchor, list.whole)
            else {
                if list.whole && !got.is_empty() {
                    return None;
                }
                continue;
            };
            // Where an item of the request stands in the list.
            let at = |item: usize| (item + offset).checked_sub(got.len()).filter(|at| *at < list.elements.len());
            for (item, shown) in plan(&request.own, &request.got).into_iter().enumerate() {
                let Some(place) = at(item) else { continue };
                if shown == [Shown { own: None, over: Some(item) }] {
                    continue;
                }
                let element = |item: usize| list.elements.get(at(item)?).copied();
                let written = shown.iter().filter_map(|shown| request.show(surface, *shown, element)).collect();
                if let Some(place) = instead.get_mut(place) {
                    *place = Some(written);
                }
            }
            end = at(0).unwrap_or_default();
        }
        Some(instead)
    }
}

impl Otherwise {
    fn is_answered_by(&self, element: &str) -> bool {
        let id = Node::parse(element.as_bytes()).ok().and_then(|element| element.get("id")?.string());
        id.is_some_and(|id| self.items.iter().any(|item| *item == id))
    }

    fn show<'e>(
        &self,
        surface: &dyn Surface,
        shown: Shown,
        element: impl Fn(usize) -> Option<&'e str>,
    ) -> Option<String> {
        let over = shown.over.and_then(element);
        let Some(own) = shown.own else { return over.map(str::to_owned) };
        let number = format!("{} sent {own}", self.reply);
        let digits: String = blake3::hash(number.as_bytes()).to_hex().chars().take(24).collect();
        Some(surface.shown(self.own.get(own)?, over, &digits))
    }
}

/// Something to show of a request: an item that its program sent (`own`), over an item that the upstream got. Without
/// `own` it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    own: Option<usize>,
    over: Option<usize>,
}

/// Whether both say the same. What only names another item may say anything.
fn alike(got: Option<&Message>, listed: Option<&Message>) -> bool {
    let (Some(got), Some(listed)) = (got, listed) else { return true };
    let role = |message: &Message| if message.role == Role::Developer { Role::System } else { message.role };
    let opaque = |message: &Message| message.parts.iter().filter(|part| matches!(part, Part::Opaque(_))).count();
    let calls = |message: &Message| -> Vec<(String, String)> {
        message.tool_calls.iter().map(|call| (call.id.clone(), call.arguments.clone())).collect()
    };
    role(got) == role(listed)
        && got.text() == listed.text()
        && opaque(got) == opaque(listed)
        && got.answers_call == listed.answers_call
        && calls(got) == calls(listed)
}

/// Where the items of a request stand in a list: how far behind the place right before it, so that a page may begin
/// or end within them. Where it is known what stands right behind them (`anchor`), there is one such place; else the last
/// one counts: requests are looked for from the end.
fn place(got: &[Option<Message>], list: &[Option<Message>], anchor: Option<usize>, whole: bool) -> Option<usize> {
    if got.is_empty() {
        return None;
    }
    let fits = |offset: &usize| {
        let at = |item: usize| (item + offset).checked_sub(got.len()).and_then(|at| list.get(at));
        got.iter().enumerate().all(|(item, got)| at(item).is_none_or(|listed| alike(got.as_ref(), listed.as_ref())))
    };
    if anchor.is_some() {
        return anchor.filter(|anchor| fits(anchor) && (!whole || *anchor >= got.len()));
    }
    let inside = (got.len()..=list.len()).rev().find(fits);
    let mut cut = (1..got.len() + list.len()).rev().filter(|_| !whole);
    inside.or_else(|| cut.find(fits))
}

/// For each item that the upstream got, what its program sent there. Equal items stay; between them, one stands for
/// one as long as there are any, and what is left over was taken out or put in on the way.
fn plan(own: &[String], got: &[String]) -> Vec<Vec<Shown>> {
    let mut shown: Vec<Vec<Shown>> = vec![Vec::new(); got.len()];
    let mut same = Vec::new();
    let mut from = 0;
    for (number, item) in own.iter().enumerate() {
        let Some(ahead) = got.get(from..).and_then(|rest| rest.iter().position(|other| other == item)) else {
            continue;
        };
        same.push((number, from + ahead));
        from += ahead + 1;
    }
    let taken: HashSet<usize> = same.iter().map(|(_, at)| *at).collect();
    let moved = |number: usize| {
        let item = own.get(number)?;
        got.iter().enumerate().position(|(at, other)| other == item && !taken.contains(&at))
    };
    let (mut next_own, mut next_got) = (0, 0);
    for (number, at) in same.into_iter().chain([(own.len(), got.len())]) {
        for left in next_own..number {
            let pair = Some(next_got).filter(|pair| *pair < at);
            next_got += usize::from(pair.is_some());
            // What has no place of its own stands behind the item before it, or before the first.
            let place = pair.unwrap_or_else(|| at.saturating_sub(1));
            let over = moved(left).or(pair);
            if let Some(place) = shown.get_mut(place) {
                place.push(Shown { own: Some(left).filter(|_| moved(left).is_none()), over });
            }
        }
        if let Some(place) = shown.get_mut(at) {
            place.push(Shown { own: None, over: Some(at) });
        }
        (next_own, next_got) = (number + 1, at + 1);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `=1`: as the upstream got it, `a>1`: the program's in its place, `+a`: only the program's.
    fn planned(own: &str, got: &str) -> Vec<String> {
        let items = |text: &str| -> Vec<String> { text.chars().map(String::from).collect() };
        let (own, got) = (items(own), items(got));
        let say = |shown: &Shown| match (shown.own, shown.over) {
            (None, at) => format!("={}", at.map_or("?", |at| &got[at])),
            (Some(number), Some(at)) => format!("{}>{}", own[number], got[at]),
            (Some(number), None) => format!("+{}", own[number]),
        };
        plan(&own, &got).iter().map(|shown| shown.iter().map(say).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn each_item_finds_its_place() {
        for (own, got, expected) in [
            ("abc", "abc", &["=a", "=b", "=c"][..]),
            ("abc", "axc", &["=a", "b>x", "=c"]),
            ("abc", "abxc", &["=a", "=b", "", "=c"]),
            ("abc", "xabc", &["", "=a", "=b", "=c"]),
            ("abc", "ac", &["=a +b", "=c"]),
            ("abc", "c", &["+a +b =c"]),
            ("abc", "cab", &["", "=a", "=b =c"]),
            ("abc", "abb", &["=a", "=b", "c>b"]),
            ("a", "xy", &["a>x", ""]),
            ("ab", "x", &["a>x +b"]),
            ("ab", "", &[]),
        ] {
            assert_eq!(planned(own, got), expected, "{own} {got}");
        }
    }

    #[test]
    fn requests_are_found_in_lists_and_in_pages_of_them() {
        let say = |text: &str| -> Vec<Option<Message>> {
            let of = |c: char| (c != '?').then(|| Message::text_of(Role::User, c.to_string()));
            text.chars().map(of).collect()
        };
        for (got, list, anchor, expected) in
            [("ab", "abab", 2, Some(2)), ("ab", "xaba", 3, Some(3)), ("ab", "xaba", 4, None), ("ab", "bxx", 1, Some(1))]
        {
            assert_eq!(place(&say(got), &say(list), Some(anchor), false), expected, "{got} {list}");
        }
        for (got, list, whole, expected) in [
            ("ab", "xaby", true, Some(3)),
            ("ab", "abab", true, Some(4)),
            ("ab", "xxa", false, Some(4)),
            ("ab", "bxx", false, Some(1)),
            ("abcd", "bc", false, Some(3)),
            ("ab", "xxa", true, None),
            ("ab", "xyz", false, None),
            ("a?", "xab", true, Some(3)),
            ("", "xab", true, None),
        ] {
            assert_eq!(place(&say(got), &say(list), None, whole), expected, "{got} {list}");
        }
    }
}
