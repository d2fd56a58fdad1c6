//! Which run a request belongs to that names none: lineage of ids and words. Agents quote each other's answers word for
//! word; connection, port and order of arrival prove nothing.
//!
//! Indexed when an answer is complete, so that siblings in flight never link to each other. Bounded, and forgotten with
//! the run. What it says on arrival is provisional; [`late`](super::late) looks again when runs end.

use std::collections::{HashMap, VecDeque};

use super::{
    RunSource,
    fingerprint::{Looks, Mark, asked, is_fresh, mark_sentences},
    placed::{Exchange, Placed},
    recent::Recent,
    speakers::{id_mark, text_mark},
    words::{Opening, shingles},
};
use crate::{
    surface::{Outline, Reply, Role},
    trajectory::{Attribution, RunId, StepIndex},
};

/// Ids, shingles and messages whose origin is remembered, over all runs.
const MARKS_MAX: usize = 1 << 20;
/// Runs that are remembered.
const RUNS_MAX: usize = 1024;
/// Exchanges that the late pass can look at, over all runs.
pub(super) const EXCHANGES_MAX: usize = 1 << 16;
/// Longest opening that is remembered, in bytes.
const OPENING_MAX: usize = 4096;
/// Runs whose opening is compared with a request, latest first.
const OPENINGS_MAX: usize = 64;
/// Origins that are kept of one request.
const QUOTES_MAX: usize = 32;
/// Different questions and bodies that are remembered of one run.
const ASKED_MAX: usize = 4096;
/// Failed bodies, and unanswered tool calls, that are remembered of one run.
const WAITING_MAX: usize = 256;
/// Sentences that are kept of one request.
const SENTENCES_MAX: usize = 64;

/// What the requests of all runs without a name have shown.
#[derive(Debug)]
pub struct Lineage {
    owners: Recent<Mark, Owner>,
    trails: HashMap<RunId, Trail>,
    recent: VecDeque<RunId>,
    /// How often a run asks its opening question, by the looks of who asks.
    times: Recent<u32, u32>,
    pub(super) exchanges: VecDeque<Exchange>,
    pub(super) first: u64,
    clock: u64,
}

/// Where a mark was served.
#[derive(Debug, Clone, Copy)]
struct Owner {
    exchange: u64,
    /// Runs that do not know of each other have said it.
    several: bool,
}

/// A run's way so far.
#[derive(Debug)]
struct Trail {
    opening: Opening,
    began: u64,
    /// How often each body was sent.
    bodies: Recent<u128, u32>,
    opener: u32,
    question: Mark,
    asked: Recent<Mark, u32>,
    failed: Vec<u128>,
    /// Whether anybody has gone on from an answer of the run.
    advanced: bool,
    /// Tool calls that nobody has answered yet.
    awaited: Vec<Mark>,
}

/// What a request says of its origin.
#[derive(Debug, Default)]
struct Evidence {
    ids: Vec<u64>,
    quotes: Vec<(u64, u32)>,
    said: Vec<u64>,
}

impl Default for Lineage {
    fn default() -> Self {
        Self {
            owners: Recent::new(MARKS_MAX),
            trails: HashMap::new(),
            recent: VecDeque::new(),
            times: Recent::new(4096),
            exchanges: VecDeque::new(),
            first: 0,
            clock: 0,
        }
    }
}

impl Lineage {
    /// Places a request that names no run. `looks`: what it looks like without the run's own words; `body`: hash of its
    /// body; `fresh`: makes the id of a new run.
    pub fn place(
        &mut self,
        outline: &Outline<'_>,
        looks: &Looks,
        body: u128,
        new_run: impl FnOnce() -> RunId,
    ) -> Placed {
        let evidence = self.evidence(outline);
        let opening = Opening::new(&opening_text(outline), OPENING_MAX);
        let question = asked(outline);
        let fresh = is_fresh(outline);
        let found = self
            .by_ids(&evidence)
            .map(|run| (run, RunSource::Ids))
            .or_else(|| self.by_failure(body).map(|run| (run, RunSource::Retry)))
            .or_else(|| self.by_quotes(&evidence).map(|run| (run, RunSource::Quotes)))
            .or_else(|| {
                self.by_opening(&opening, (question, body), looks.key, fresh).map(|run| (run, RunSource::Opening))
            })
            .or_else(|| self.by_awaited(looks.key).map(|run| (run, RunSource::Pending)));
        let (run, source) = found.unwrap_or_else(|| (new_run(), RunSource::New));
        self.enter(&run, source, &opening, looks.key, (question, body));
        let exchange = self.first + self.exchanges.len() as u64;
        let mut user = Vec::new();
        mark_sentences(&outline.first_user().unwrap_or_default(), &mut user);
        user.truncate(SENTENCES_MAX);
        let mut quotes = evidence.ids;
        quotes.extend(evidence.quotes.into_iter().map(|(exchange, _)| exchange));
        quotes.truncate(QUOTES_MAX);
        self.clock += 1;
        self.exchanges.push_back(Exchange {
            run: run.clone(),
            step: 0,
            attempt: 0,
            source,
            asked: question,
            body,
            opening: opening.mark(),
            attribution: None,
            looks: looks.shortened(SENTENCES_MAX),
            user,
            quotes,
            said: evidence.said,
            opened_at: self.clock,
            closed_at: u64::MAX,
            failed: false,
        });
        if self.exchanges.len() > EXCHANGES_MAX {
            self.exchanges.pop_front();
            self.first += 1;
        }
        Placed { run, source, exchange }
    }

    /// What became of a placed request: its numbers and who makes it.
    pub fn opened(&mut self, exchange: u64, step: StepIndex, attempt: u32, attribution: &Attribution) {
        if let Some(known) = self.exchange_mut(exchange) {
            known.step = step;
            known.attempt = attempt;
            known.attribution = Some(attribution.clone());
        }
    }

    /// A placed request has ended. `reply`: what was delivered, if it is an answer that somebody may quote.
    pub fn served(&mut self, exchange: u64, reply: Option<&Reply>, failed: bool) {
        self.clock += 1;
        let clock = self.clock;
        let Some(known) = self.exchange_mut(exchange) else { return };
        known.closed_at = clock;
        known.failed = failed;
        let (run, body) = (known.run.clone(), known.body);
        if let Some(trail) = self.trails.get_mut(&run) {
            trail.failed.retain(|known| *known != body);
            if failed {
                trail.failed.push(body);
                trim(&mut trail.failed);
            }
        }
        let Some(reply) = reply else { return };
        let named = reply.items.iter().chain([&reply.id]);
        named.for_each(|id| self.own(id_mark(id), exchange, &run));
        for answer in &reply.answers {
            let text = answer.message.text();
            self.own(text_mark(&text), exchange, &run);
            for mark in shingles(&text) {
                self.own(Some(mark), exchange, &run);
            }
            for call in &answer.message.tool_calls {
                let id = id_mark(&call.id);
                self.own(id, exchange, &run);
                for mark in shingles(&call.arguments) {
                    self.own(Some(mark), exchange, &run);
                }
                if let Some(trail) = self.trails.get_mut(&run) {
                    trail.awaited.extend(id);
                    trim(&mut trail.awaited);
                }
            }
        }
    }

    /// Forgets runs that have ended, and their exchanges where no other run is left.
    pub fn forget(&mut self, ended: &[RunId]) {
        for run in ended {
            self.trails.remove(run);
        }
        self.recent.retain(|run| !ended.contains(run));
        if self.trails.is_empty() {
            self.first += self.exchanges.len() as u64;
            self.exchanges.clear();
            self.owners = Recent::new(MARKS_MAX);
        }
    }

    /// Entries held and the most that there can be, for tests of the bounds.
    pub fn size(&self) -> (usize, usize) {
        let most = MARKS_MAX + EXCHANGES_MAX + RUNS_MAX;
        (self.owners.len() + self.exchanges.len() + self.trails.len(), most)
    }

    pub(super) fn exchange(&self, number: u64) -> Option<&Exchange> {
        self.exchanges.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn exchange_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.exchanges.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn own(&mut self, mark: Option<Mark>, exchange: u64, run: &RunId) {
        let Some(mark) = mark else { return };
        let owner = *self.owners.entry(mark, || Owner { exchange, several: false });
        if owner.exchange != exchange && !owner.several && self.run_of(owner.exchange) != Some(run) {
            *self.owners.entry(mark, || owner) = Owner { several: true, ..owner };
        }
    }

    fn run_of(&self, exchange: u64) -> Option<&RunId> {
        self.exchange(exchange).map(|exchange| &exchange.run)
    }

    /// The origins of what a request holds: ids, latest first, and shingles of answers.
    fn evidence(&self, outline: &Outline<'_>) -> Evidence {
        let owner = |mark: &Mark| self.owners.get(mark).filter(|owner| !owner.several).map(|owner| owner.exchange);
        let (mut ids, mut whole) = (Vec::new(), Vec::new());
        let mut quotes: HashMap<u64, u32> = HashMap::new();
        let previous = outline.continues.as_deref().and_then(id_mark);
        whole.extend(previous.as_ref().and_then(owner));
        let named = outline.quotes.iter().rev().chain(&outline.continues).chain(&outline.thread);
        ids.extend(named.filter_map(|id| owner(&id_mark(id)?)));
        for said in outline.said.iter().rev() {
            whole.extend(said.answers_call.as_deref().and_then(id_mark).as_ref().and_then(owner));
            let text = said.text();
            if said.role == Role::Assistant {
                whole.extend(text_mark(&text).as_ref().and_then(owner));
            }
            for origin in shingles(&text).iter().filter_map(owner) {
                *quotes.entry(origin).or_default() += 1;
            }
        }
        ids.dedup();
        let mut quotes: Vec<(u64, u32)> = quotes.into_iter().collect();
        // The latest answers say most about where a request belongs.
        quotes.sort_unstable_by_key(|(exchange, _)| std::cmp::Reverse(*exchange));
        whole.dedup();
        whole.truncate(QUOTES_MAX);
        Evidence { ids, quotes, said: whole }
    }

    fn by_ids(&self, evidence: &Evidence) -> Option<RunId> {
        evidence
            .ids
            .iter()
            .find_map(|exchange| self.run_of(*exchange))
            .filter(|run| self.trails.contains_key(run))
            .cloned()
    }

    fn by_failure(&self, body: u128) -> Option<RunId> {
        self.recent
            .iter()
            .rev()
            .find(|run| self.trails.get(run).is_some_and(|trail| trail.failed.contains(&body)))
            .cloned()
    }

    fn by_quotes(&self, evidence: &Evidence) -> Option<RunId> {
        let mut votes: HashMap<&RunId, u32> = HashMap::new();
        for (exchange, count) in &evidence.quotes {
            if let Some(run) = self.run_of(*exchange).filter(|run| self.trails.contains_key(run)) {
                *votes.entry(run).or_default() += count;
            }
        }
        let most = votes.values().copied().max()?;
        let mut best = votes.iter().filter(|(_, count)| **count == most).map(|(run, _)| (*run).clone());
        // Two runs that are quoted alike tell nothing.
        best.next().filter(|_| best.next().is_none())
    }

    /// The latest run whose opening the request holds, or that holds the request's. A word-for-word repeat of a
    /// question that the run has left behind is the same task again: a new run.
    fn by_opening(&self, opening: &Opening, (question, body): (Mark, u128), looks: u32, fresh: bool) -> Option<RunId> {
        let latest = self.recent.iter().rev().take(OPENINGS_MAX);
        let of_task = latest.filter(|run| {
            self.trails.get(run).is_some_and(|trail| opening.holds(&trail.opening) || trail.opening.holds(opening))
        });
        let open = of_task.filter(|run| {
            let Some(trail) = self.trails.get(run).filter(|trail| fresh && trail.question == question) else {
                return true;
            };
            let times = trail.asked.get(&question).copied().unwrap_or_default();
            let usual = self.times.get(&looks).copied();
            usual.map_or(!trail.advanced, |usual| times < usual)
        });
        // Where several could be meant, one that has not asked this yet; of those that have only begun, the oldest.
        let last = u64::MAX;
        let rank = |run: &&RunId| {
            let Some(trail) = self.trails.get(*run) else { return (u32::MAX, true, last) };
            let age = if trail.advanced { last - trail.began } else { trail.began };
            (trail.bodies.get(&body).copied().unwrap_or_default(), trail.advanced, age)
        };
        open.min_by_key(rank).cloned()
    }

    /// The one run that waits for the result of a tool; never for a request that looks like one that opens runs.
    fn by_awaited(&self, looks: u32) -> Option<RunId> {
        if self.trails.values().any(|trail| trail.opener == looks) {
            return None;
        }
        let mut waiting = self.recent.iter().filter(|run| self.trails.get(run).is_some_and(|t| !t.awaited.is_empty()));
        waiting.next().filter(|_| waiting.next().is_none()).cloned()
    }

    /// Notes that a request is the run's.
    fn enter(&mut self, run: &RunId, source: RunSource, opening: &Opening, looks: u32, (question, body): (Mark, u128)) {
        if !self.trails.contains_key(run) {
            self.recent.push_back(run.clone());
            if self.recent.len() > RUNS_MAX
                && let Some(oldest) = self.recent.pop_front()
            {
                self.trails.remove(&oldest);
            }
            let trail = Trail {
                opening: opening.clone(),
                began: self.clock,
                bodies: Recent::new(ASKED_MAX),
                opener: looks,
                question,
                asked: Recent::new(ASKED_MAX),
                failed: Vec::new(),
                advanced: false,
                awaited: Vec::new(),
            };
            self.trails.insert(run.clone(), trail);
        }
        let Some(trail) = self.trails.get_mut(run) else { return };
        if source != RunSource::Retry {
            *trail.asked.entry(question, u32::default) += 1;
            *trail.bodies.entry(body, u32::default) += 1;
        }
        if matches!(source, RunSource::Ids | RunSource::Quotes) {
            trail.awaited.clear();
            if !std::mem::replace(&mut trail.advanced, true) {
                let opener = trail.opener;
                let times = trail.asked.get(&trail.question).copied().unwrap_or(1);
                self.times.entry(opener, || times);
            }
        }
    }
}

/// Forgets the oldest where there are too many.
fn trim<T>(waiting: &mut Vec<T>) {
    if waiting.len() > WAITING_MAX {
        waiting.remove(0);
    }
}

/// What a request opens with: its first user text; without one, its prompt.
fn opening_text<'a>(outline: &'a Outline<'a>) -> std::borrow::Cow<'a, str> {
    let user = outline.said.iter().find(|said| said.role == Role::User && said.size() > 2);
    match user {
        Some(said) => said.text(),
        None => outline.prompt(),
    }
}
