//! Which run a request belongs to that names none: lineage of ids and words. Agents quote each other's answers word for
//! word; connection, port and order of arrival prove nothing.
//!
//! Indexed when an answer is complete, so that siblings in flight never link to each other. Bounded, and forgotten with
//! the run. What it says on arrival is provisional; [`late`](super::late) looks again when runs end.

use std::{collections::HashSet, sync::Arc};

use super::{
    RunSource,
    exchanges::{EXCHANGES_MAX, Exchange, Exchanges},
    fingerprint::{Mark, RequestLooks, is_fresh, request_mark},
    history::{id_mark, text_mark},
    origins::{LATEST_MAX, MESSAGES_MAX, OriginEvidence, Origins, QUOTES_MAX},
    owners::OWNERS_MAX,
    placed::{Placed, RequestBeginning, SENTENCES_MAX},
    recent::Recent,
    trails::{RUNS_MAX, Trail, Trails},
    words::Opening,
};
use crate::{
    surface::{Outline, Reply},
    trajectory::{Attribution, RunId, StepIndex},
};

/// Runs whose opening is compared with a request, latest first.
const OPENINGS_MAX: usize = 64;
/// Failed bodies that are remembered over all runs.
const FAILED_MAX: usize = 4096;
/// Looks, and beginnings of requests, that are remembered over all runs.
const LOOKS_MAX: usize = 1024;

/// What the requests of all runs without a name have shown.
#[derive(Debug)]
pub struct Lineage {
    origins: Origins,
    /// What requests look like without the run's own words, and what they begin with: worked out once.
    looks: Recent<Mark, Arc<RequestLooks>>,
    begun: Recent<Mark, Arc<RequestBeginning>>,
    trails: Trails,
    /// The runs in which a body's last attempt has failed.
    failed: Recent<u128, Vec<RunId>>,
    /// How often a run asks its opening question, by the looks of who asks.
    times: Recent<u32, u32>,
    pub(super) exchanges: Exchanges,
    clock: u64,
}

impl Default for Lineage {
    fn default() -> Self {
        Self {
            origins: Origins::default(),
            looks: Recent::new(LOOKS_MAX),
            begun: Recent::new(LOOKS_MAX),
            trails: Trails::default(),
            failed: Recent::new(FAILED_MAX),
            times: Recent::new(4096),
            exchanges: Exchanges::default(),
            clock: 0,
        }
    }
}

impl Lineage {
    /// Places a request that names no run. `body`: hash of its body; `new_run`: makes the id of a new run.
    pub fn place(&mut self, outline: &Outline<'_>, body: u128, new_run: impl FnOnce() -> RunId) -> Placed {
        self.enter_as(outline, body, |found| found.unwrap_or_else(|| (new_run(), RunSource::New)))
    }

    /// Takes in a request that was placed before, and recorded: to be called in the order of the record.
    pub fn recall(&mut self, outline: &Outline<'_>, body: u128, run: RunId, source: RunSource) -> Placed {
        self.enter_as(outline, body, |_| (run, source))
    }

    fn enter_as(
        &mut self,
        outline: &Outline<'_>,
        body: u128,
        placed: impl FnOnce(Option<(RunId, RunSource)>) -> (RunId, RunSource),
    ) -> Placed {
        let evidence = self.origins.trace_request(outline, self.clock, &self.exchanges);
        let without_run = || Arc::new(RequestLooks::read(outline, &HashSet::new()).shortened(SENTENCES_MAX));
        let looks = Arc::clone(self.looks.entry(RequestLooks::key(outline), without_run));
        let question = request_mark(outline);
        let linked = self.by_link(&evidence, body);
        // How a request begins tells nothing that its quotes do not, now and late.
        let asks_opening = linked.is_none() || (evidence.ids.is_empty() && evidence.quotes.is_empty());
        let begun = asks_opening.then(|| {
            Arc::clone(self.begun.entry(RequestBeginning::key(outline), || Arc::new(RequestBeginning::read(outline))))
        });
        let by_opening = || {
            let opening = &begun.as_ref()?.opening;
            let run = self.by_opening(opening, question, body, looks.key, is_fresh(outline))?;
            Some((run, RunSource::Opening))
        };
        let awaited = || self.by_awaited(looks.key).map(|run| (run, RunSource::Pending));
        let (run, source) = placed(linked.or_else(by_opening).or_else(awaited));
        let forgotten = if self.trails.contains(&run) { None } else { self.trails.make_room() };
        self.enter(&run, source, begun.as_ref(), looks.key, question, body);
        let named: Vec<Mark> = outline.quotes.iter().filter_map(|id| id_mark(id)).collect();
        self.trails.answered(&run, &named);
        let mut quotes = evidence.ids;
        quotes.extend(evidence.quotes.into_iter().map(|(exchange, _)| exchange));
        quotes.truncate(QUOTES_MAX);
        self.clock += 1;
        let exchange = self.exchanges.push(Exchange {
            request_mark: question,
            body,
            begun,
            quotes,
            said: evidence.said,
            opened_at: self.clock,
            ..Exchange::new(run.clone(), source, looks)
        });
        Placed { run, source, exchange, forgotten }
    }

    /// The run that a request is linked to by what it holds.
    fn by_link(&self, evidence: &OriginEvidence, body: u128) -> Option<(RunId, RunSource)> {
        let failure = || self.by_failure(body).map(|run| (run, RunSource::Retry));
        let quotes = || self.by_quotes(evidence).map(|run| (run, RunSource::Quotes));
        self.by_ids(evidence).map(|run| (run, RunSource::Ids)).or_else(failure).or_else(quotes)
    }

    /// What became of a placed request: its numbers and who makes it.
    pub fn opened(&mut self, exchange: u64, step: StepIndex, attempt: u32, attribution: &Attribution) {
        if let Some(known) = self.exchanges.get_mut(exchange) {
            known.step = step;
            known.attempt = attempt;
            known.attribution = Some(attribution.clone());
        }
    }

    /// A placed request has ended. `reply`: what was delivered, if it is an answer that somebody may quote.
    pub fn served(&mut self, exchange: u64, reply: Option<&Reply>, failed: bool) {
        self.clock += 1;
        let clock = self.clock;
        let Some(known) = self.exchanges.get_mut(exchange) else { return };
        known.closed_at = clock;
        known.failed = failed;
        let (run, body) = (known.run.clone(), known.body);
        self.trails.used(&run, clock);
        if failed {
            let runs = self.failed.entry(body, Vec::new);
            runs.retain(|other| *other != run && self.trails.contains(other));
            runs.push(run.clone());
        } else if let Some(runs) = self.failed.get_mut(&body) {
            runs.retain(|other| *other != run);
        }
        let Some(reply) = reply else { return };
        for id in reply.items.iter().chain([&reply.id]) {
            self.add_mark(id_mark(id), exchange, &run);
        }
        for answer in &reply.answers {
            let text = answer.message.text_to_read();
            let whole = text_mark(&text);
            self.add_mark(whole, exchange, &run);
            self.own_words(&text, whole, exchange, &run);
            for call in &answer.message.tool_calls {
                let id = id_mark(&call.id);
                self.add_mark(id, exchange, &run);
                self.own_words(&call.arguments, text_mark(&call.arguments), exchange, &run);
                self.trails.await_result(&run, id);
            }
        }
    }

    /// Places nothing more in runs that end; what they have shown is still known.
    pub fn leave(&mut self, ended: &HashSet<&RunId>) {
        for run in ended {
            self.trails.forget(run);
        }
    }

    /// Forgets runs that have ended, and their exchanges where no other run is left.
    pub fn forget(&mut self, ended: &HashSet<&RunId>) {
        self.leave(ended);
        if self.trails.len() == 0 {
            self.exchanges.clear();
            self.origins = Origins::default();
            self.failed = Recent::new(FAILED_MAX);
            self.looks = Recent::new(LOOKS_MAX);
            self.begun = Recent::new(LOOKS_MAX);
        }
    }

    /// Entries held and the most that there can be, for tests of the bounds.
    pub fn size(&self) -> (usize, usize) {
        let most = OWNERS_MAX + MESSAGES_MAX + LATEST_MAX + EXCHANGES_MAX + RUNS_MAX + FAILED_MAX + 2 * LOOKS_MAX;
        let begun = self.looks.len() + self.begun.len() + self.failed.len();
        (self.origins.len() + self.exchanges.len() + self.trails.len() + begun, most)
    }

    fn add_mark(&mut self, mark: Option<Mark>, exchange: u64, run: &RunId) {
        let Some(mark) = mark else { return };
        let other = self.origins.add_mark(mark, exchange, |other| self.exchanges.is_of(other, run));
        self.exchanges.share(other, self.clock);
    }

    fn own_words(&mut self, text: &str, whole: Option<Mark>, exchange: u64, run: &RunId) {
        let same_run = |other| self.exchanges.is_of(other, run);
        let others = self.origins.own_words(text, whole, exchange, self.clock - 1, same_run);
        self.exchanges.share(others, self.clock);
    }

    fn run_of(&self, exchange: u64) -> Option<&RunId> {
        self.exchanges.get(exchange).map(|exchange| &exchange.run)
    }

    fn by_ids(&self, evidence: &OriginEvidence) -> Option<RunId> {
        evidence.ids.iter().find_map(|exchange| self.run_of(*exchange)).filter(|run| self.trails.contains(run)).cloned()
    }

    fn by_failure(&self, body: u128) -> Option<RunId> {
        let runs = self.failed.get(&body)?.iter();
        let open = runs.filter_map(|run| Some((self.trails.get(run)?.began, run)));
        open.max_by_key(|(began, _)| *began).map(|(_, run)| run.clone())
    }

    fn by_quotes(&self, evidence: &OriginEvidence) -> Option<RunId> {
        // Nearly all quotes are of one run: the one before is looked at first.
        let mut votes: Vec<(&RunId, u32)> = Vec::new();
        for (exchange, count) in &evidence.quotes {
            let Some(run) = self.run_of(*exchange) else { continue };
            match votes.iter_mut().rev().find(|(voted, _)| *voted == run) {
                Some((_, votes)) => *votes += count,
                None if self.trails.contains(run) => votes.push((run, *count)),
                None => {}
            }
        }
        let most = votes.iter().map(|(_, count)| *count).max()?;
        let mut best = votes.iter().filter(|(_, count)| *count == most).map(|(run, _)| (*run).clone());
        // Two runs that are quoted alike tell nothing.
        best.next().filter(|_| best.next().is_none())
    }

    /// The latest run whose opening the request holds, or that holds the request's. A word-for-word repeat of a
    /// question that the run has left behind is the same task again: a new run.
    fn by_opening(&self, opening: &Opening, question: Mark, body: u128, looks: u32, fresh: bool) -> Option<RunId> {
        let of_task = self.trails.latest().take(OPENINGS_MAX).filter(|(_, trail)| {
            let opened = trail.begun.as_ref().map(|begun| &begun.opening);
            opened.is_some_and(|other| opening.holds(other) || other.holds(opening))
        });
        let open = of_task.filter(|(_, trail)| {
            if !fresh || trail.question != question {
                return true;
            }
            let times = trail.questions.get(&question).copied().unwrap_or_default();
            let usual = self.times.get(&looks).copied();
            usual.map_or(!trail.advanced, |usual| times < usual)
        });
        // Where several could be meant, one that has not asked this yet; of those that have only begun, the oldest.
        let rank = |(_, trail): &(&RunId, &Trail)| {
            let age = if trail.advanced { u64::MAX - trail.began } else { trail.began };
            (trail.bodies.get(&body).copied().unwrap_or_default(), trail.advanced, age)
        };
        open.min_by_key(rank).map(|(run, _)| run.clone())
    }

    /// The one run that waits for the result of a tool and was used last; never for a request that looks like one that opens runs.
    fn by_awaited(&self, looks: u32) -> Option<RunId> {
        let waiting = self.trails.only_waiting()?;
        if self.trails.are_opened_by(looks) { None } else { Some(waiting.clone()) }
    }

    /// Notes that a request is the run's.
    fn enter(
        &mut self,
        run: &RunId,
        source: RunSource,
        begun: Option<&Arc<RequestBeginning>>,
        looks: u32,
        question: Mark,
        body: u128,
    ) {
        if !self.trails.contains(run) {
            self.trails.begin(run, Trail::new(begun.map(Arc::clone), self.clock, looks, question));
        }
        let Some(trail) = self.trails.used(run, self.clock) else { return };
        let opener = trail.opener;
        if let Some(times) = trail.enter(source, question, body) {
            self.times.entry(opener, || times);
        }
        if matches!(source, RunSource::Ids | RunSource::Quotes) {
            self.trails.await_nothing(run);
        }
    }
}
