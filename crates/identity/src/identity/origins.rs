//! Where words come from: what was served, by the exchange that served it, and what requests were seen to quote of it.
//!
//! A conversation grows: all but the last of its messages are known from an earlier call. What a message quotes is
//! looked up when it comes first and remembered; what is served later cannot be quoted in it.

use super::{
    exchanges::Exchanges,
    fingerprint::Mark,
    history::{id_mark, text_mark},
    owners::{Owner, Owners},
    recent::Recent,
    words::{ALL_MAX, WINDOW, chosen, fill_shingles},
};
use crate::surface::{LazyMessage, Outline, Role};

/// Messages of requests that are remembered, over all runs.
pub(super) const MESSAGES_MAX: usize = 1 << 14;
/// Served texts of which is kept whose words they are: what was served last is most often heard next, word for word.
pub(super) const LATEST_MAX: usize = 64;
/// Origins that are kept of one request, and of one message.
pub(super) const QUOTES_MAX: usize = 32;

/// What was served, and who quotes it.
#[derive(Debug)]
pub(super) struct Origins {
    /// Ids, texts and shingles.
    owners: Owners,
    messages: Recent<Mark, MessageOrigin>,
    /// What was served last, by the marks of the texts.
    latest: Recent<Mark, Quotes>,
    /// Shingles of the text that is looked at, kept for their room.
    marks: Vec<Mark>,
}

/// Exchanges whose answers a text quotes, latest first, and in how many shingles.
#[derive(Debug, Default)]
struct Quotes {
    of: Box<[(u64, u32)]>,
    /// When they were looked up.
    at: u64,
}

impl Quotes {
    fn new(mut of: Vec<(u64, u32)>, at: u64) -> Self {
        // The latest ones, where there are too many.
        of.sort_unstable_by_key(|(exchange, _)| std::cmp::Reverse(*exchange));
        of.truncate(QUOTES_MAX);
        Self { of: of.into(), at }
    }
}

/// A message as it was looked at.
#[derive(Debug, Default)]
struct MessageOrigin {
    /// When it came first.
    since: u64,
    /// The exchange whose whole answer it is, as said by an assistant.
    said: Option<u64>,
    quotes: Quotes,
}

/// What a request says of its origin.
#[derive(Debug, Default)]
pub(super) struct OriginEvidence {
    /// Exchanges whose ids it holds, latest first.
    pub(super) ids: Vec<u64>,
    /// Exchanges whose answers it quotes, latest first, and in how many shingles.
    pub(super) quotes: Vec<(u64, u32)>,
    /// Exchanges whose whole answers stand in it as said by an assistant, or whose tool calls it answers; latest first.
    pub(super) said: Vec<u64>,
}

impl Default for Origins {
    fn default() -> Self {
        Self {
            owners: Owners::default(),
            messages: Recent::new(MESSAGES_MAX),
            latest: Recent::new(LATEST_MAX),
            marks: Vec::new(),
        }
    }
}

impl Origins {
    /// Entries held.
    pub(super) fn len(&self) -> usize {
        self.owners.len() + self.messages.len() + self.latest.len()
    }

    /// Takes in a mark that an exchange served: an id, a whole text. `same_run`: whether another exchange is of the same
    /// run. Gives the exchange of another run that has served it before.
    pub(super) fn add_mark(&mut self, mark: Mark, exchange: u64, same_run: impl Fn(u64) -> bool) -> Option<u64> {
        let Owner { exchange: other, several } = self.enter(mark, exchange, false);
        if other == exchange || several || same_run(other) {
            return None;
        }
        self.owners.insert(mark, Owner { exchange: other, several: true });
        Some(other)
    }

    /// Takes in the words of a text that an exchange served; `whole` is the mark of all of it. Gives the exchanges of
    /// other runs that have said the same. `before`: any time before what is going on.
    pub(super) fn own_words(
        &mut self,
        text: &str,
        whole: Option<Mark>,
        exchange: u64,
        before: u64,
        same_run: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        let mut marks = std::mem::take(&mut self.marks);
        fill_shingles(&mut marks, text);
        let others = self.own_shingles(&marks, exchange, same_run);
        if let Some(whole) = whole {
            // Looked up now, while the map's places are at hand.
            let quotes = self.quotes(&mut marks, |_| true);
            self.latest.entry(whole, || Quotes::new(quotes, before));
        }
        self.marks = marks;
        others
    }

    fn own_shingles(&mut self, marks: &[Mark], exchange: u64, same_run: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut others = Vec::new();
        if marks.len() <= ALL_MAX {
            others.extend(marks.iter().filter_map(|mark| self.add_mark(*mark, exchange, &same_run)));
            others.dedup();
            return others;
        }
        // Of words that two long texts share, different shingles may be chosen near the ends: all are looked at.
        let mut shared = Vec::new();
        for (at, mark) in marks.iter().enumerate() {
            let owner = self.owners.get(*mark).filter(|owner| owner.several || !same_run(owner.exchange));
            let Some(owner) = owner else { continue };
            shared.push(at);
            if !owner.several {
                others.push(owner.exchange);
                self.owners.insert(*mark, Owner { several: true, ..owner });
            }
        }
        others.dedup();
        let mut shared = shared.into_iter().peekable();
        for at in chosen(marks) {
            while shared.next_if(|shared| shared + WINDOW <= at).is_some() {}
            let several = shared.peek().is_some_and(|shared| *shared < at + WINDOW);
            if let Some(mark) = marks.get(at) {
                self.enter(*mark, exchange, several);
            }
        }
        others
    }

    /// The origins of what a request holds. `now`: its time.
    pub(super) fn trace_request(&mut self, outline: &Outline<'_>, now: u64, known: &Exchanges) -> OriginEvidence {
        let mut evidence = OriginEvidence::default();
        let previous = outline.continues.as_deref().and_then(id_mark);
        evidence.said.extend(previous.and_then(|mark| self.owner(mark)));
        let named = outline.quotes.iter().rev().chain(&outline.continues).chain(&outline.thread);
        evidence.ids.extend(named.filter_map(|id| self.owner(id_mark(id)?)));
        evidence.ids.dedup();
        for said in outline.messages.iter().rev() {
            let answers = said.answers_call.as_deref().and_then(id_mark);
            evidence.said.extend(answers.and_then(|mark| self.owner(mark)));
            if let Some(heard) = self.look_up(said, now, known) {
                evidence.quotes.extend_from_slice(&heard.quotes.of);
                evidence.said.extend(heard.said);
            }
        }
        // The latest answers say most about where a request belongs.
        evidence.quotes.sort_unstable_by_key(|(exchange, _)| std::cmp::Reverse(*exchange));
        evidence.quotes.dedup_by(|again, first| again.0 == first.0 && add(&mut first.1, again.1));
        evidence.said.dedup();
        evidence.said.truncate(QUOTES_MAX);
        evidence
    }

    /// The mark's owner: the exchange, where there is none yet.
    fn enter(&mut self, mark: Mark, exchange: u64, several: bool) -> Owner {
        self.owners.get(mark).unwrap_or_else(|| {
            let owner = Owner { exchange, several };
            self.owners.insert(mark, owner);
            owner
        })
    }

    fn owner(&self, mark: Mark) -> Option<u64> {
        self.owners.get(mark).filter(|owner| !owner.several).map(|owner| owner.exchange)
    }

    /// What a message quotes, from memory where that still holds.
    fn look_up(&mut self, said: &LazyMessage<'_>, now: u64, known: &Exchanges) -> Option<&MessageOrigin> {
        let key = said.mark();
        let heard = self.messages.get(&key);
        let since = heard.map_or(now, |heard| heard.since);
        if !heard.is_some_and(|heard| holds(&heard.quotes, heard.said, known)) {
            let heard = self.look(said, since, now, known);
            *self.messages.entry(key, MessageOrigin::default) = heard;
        }
        self.messages.get(&key)
    }

    fn look(&mut self, said: &LazyMessage<'_>, since: u64, now: u64, known: &Exchanges) -> MessageOrigin {
        let text = said.text();
        let mark = text_mark(&text);
        // What was served after the message was said is no origin of it.
        let is_origin = |exchange: u64| known.get(exchange).is_some_and(|served| served.closed_at <= since);
        let latest = mark.and_then(|mark| self.latest.get(&mark)).filter(|latest| holds(latest, None, known));
        let quotes = match latest {
            Some(latest) => latest.of.iter().filter(|(exchange, _)| is_origin(*exchange)).copied().collect(),
            None if self.owners.len() > 0 => {
                let mut marks = std::mem::take(&mut self.marks);
                fill_shingles(&mut marks, &text);
                let quotes = self.quotes(&mut marks, is_origin);
                self.marks = marks;
                quotes
            }
            None => Vec::new(),
        };
        let said = mark.filter(|_| said.role == Role::Assistant).and_then(|mark| self.owner(mark));
        MessageOrigin { since, said, quotes: Quotes::new(quotes, now) }
    }

    /// The exchanges that may be the origins of a text and have served some of its shingles, and how many.
    fn quotes(&self, marks: &mut Vec<Mark>, is_origin: impl Fn(u64) -> bool) -> Vec<(u64, u32)> {
        let mut quotes: Vec<(u64, u32)> = Vec::new();
        self.owners.sift(marks);
        for mark in marks {
            let Some(Owner { exchange, several: false }) = self.owners.of_sifted(*mark) else { continue };
            match quotes.iter_mut().rev().find(|(known, _)| *known == exchange) {
                Some((_, count)) => *count += 1,
                None if is_origin(exchange) => quotes.push((exchange, 1)),
                None => {}
            }
        }
        quotes
    }
}

/// Whether no other run has said since what a text was seen to be of.
fn holds(quotes: &Quotes, said: Option<u64>, known: &Exchanges) -> bool {
    known.unshared_since(quotes.at, quotes.of.iter().map(|(exchange, _)| *exchange).chain(said))
}

fn add(sum: &mut u32, count: u32) -> bool {
    *sum = sum.saturating_add(count);
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{
        super::{RunSource, exchanges::Exchange, fingerprint::RequestLooks},
        *,
    };
    use crate::{surface::Message, trajectory::RunId};

    /// Exchanges that have all ended before anything else; the given ones have been shared since.
    fn ended(shared: &[u64]) -> Exchanges {
        let mut exchanges = Exchanges::default();
        for number in 0..10 {
            let run = RunId::parse("r").expect("an id");
            let looks = RequestLooks::read(&Outline::default(), &HashSet::new());
            let exchange = Exchange { closed_at: 0, ..Exchange::new(run, RunSource::New, looks.into()) };
            assert_eq!(exchanges.push(exchange), number);
        }
        exchanges.share(shared.iter().copied(), 9);
        exchanges
    }

    #[test]
    fn an_answer_is_heard_alike_whether_its_words_are_remembered_or_read_again() {
        let text = |from: usize, to: usize| (from..to).map(|at| format!("w{at} ")).collect::<String>();
        let heard = |origins: &mut Origins, words: &str, role, shared: &[u64]| {
            let heard = origins.look(&LazyMessage::from(&Message::text_of(role, words)), 1, 1, &ended(shared));
            (heard.said, heard.quotes.of.to_vec())
        };
        let mut origins = Origins::default();
        for (exchange, (from, to)) in [(0, 20), (10, 300), (5, 25), (290, 400)].into_iter().enumerate() {
            let text = text(from, to);
            origins.own_words(&text, text_mark(&text), exchange as u64, 0, |_| true);
            origins.add_mark(text_mark(&text).expect("long enough"), exchange as u64, |_| true);
            let said = format!(" {text}\n");
            for role in [Role::Assistant, Role::User] {
                let remembered = heard(&mut origins, &said, role, &[]);
                assert_eq!(remembered.0, (role == Role::Assistant).then_some(exchange as u64));
                assert!(remembered.1.iter().any(|(quoted, _)| *quoted == exchange as u64), "{remembered:?}");
                let latest = std::mem::replace(&mut origins.latest, Recent::new(LATEST_MAX));
                assert_eq!(heard(&mut origins, &said, role, &[]), remembered);
                origins.latest = latest;
            }
        }
        // Once another run has said some of it, what was remembered no longer counts.
        let said = text(10, 300);
        let before = heard(&mut origins, &said, Role::User, &[]);
        origins.own_words(&text(100, 200), None, 9, 0, |_| false);
        assert_eq!(heard(&mut origins, &said, Role::User, &[]), before);
        let after = heard(&mut origins, &said, Role::User, &[1]);
        let count = |quotes: Vec<(u64, u32)>| quotes.iter().map(|(_, count)| count).sum::<u32>();
        assert!(count(after.1.clone()) < count(before.1.clone()), "{after:?} {before:?}");
    }
}
