//! Where one run parts from another.

use super::{ComparedRun, Pairing};

/// The first call of a run that its reference does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The call at this position of the run was not asked in the reference, or not before what waited for it there.
    Request(usize),
    /// It was asked there, and answered otherwise.
    Answered(usize),
    /// The reference asked on: its call at this position is missing in the run.
    Missing(usize),
}

impl std::fmt::Display for Parting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Parting::Request(at) => {
                write!(formatter, "call {at} of the run is not what the reference asked at its turn")
            }
            Parting::Answered(at) => {
                write!(formatter, "call {at} of the run was answered otherwise than the reference's")
            }
            Parting::Missing(at) => write!(formatter, "call {at} of the reference is missing in the run"),
        }
    }
}

/// For each call, whether it joins the group of the one before it: calls that overlap are one group, and
/// so are those that are linked by such. `spans`: when each call was opened and closed, in the order in which they were
/// opened; `None` for one that never closed.
pub fn joins(spans: impl IntoIterator<Item = (u64, Option<u64>)>) -> Vec<bool> {
    let mut ends = 0;
    let mut joins = Vec::new();
    for (opened, closed) in spans {
        joins.push(!joins.is_empty() && opened < ends);
        ends = ends.max(closed.unwrap_or(u64::MAX));
    }
    joins
}

/// Where a run leaves its reference before a step of its own, or at it. Up to the step at the position `fork` the run
/// must ask what the reference asks and, before the step, be answered the same; each call after those that it waited
/// for in the reference. What the reference had asked before the step must come in the run too, if only after the step:
/// calls that waited for nothing of one another have no order. `edited`: the positions of the run's calls in which something was
/// planted; what waited for these in the reference need not come. `None`: it does not leave it.
pub fn parting_before(reference: &ComparedRun, run: &ComparedRun, fork: usize, edited: &[usize]) -> Option<Parting> {
    let mut walk = Walk::new(reference, run);
    for at in 0..run.calls.len().min(fork + 1) {
        if let Some(parting) = walk.follow(at, at != fork) {
            return Some(parting);
        }
    }
    let left = walk.taken_for.iter().position(|taken| *taken == Some(fork))?;
    let mut excused = vec![false; reference.calls.len()];
    for place in 0..reference.calls.len() {
        let waited = reference.waited_for.get(place).into_iter().flatten();
        let mut waited = waited.map(|before| (excused.get(*before), walk.taken_for.get(*before).copied().flatten()));
        let is_excused =
            waited.any(|(excused, taken)| excused == Some(&true) || taken.is_some_and(|at| edited.contains(&at)));
        excused.iter_mut().skip(place).take(1).for_each(|excused| *excused = is_excused);
        if !walk.is_taken(place)
            && reference.is_over_before(place, left)
            && !walk.comes_later(place, fork)
            && !is_excused
        {
            return Some(Parting::Missing(place));
        }
    }
    None
}

/// Where a run leaves its reference at all: the same calls, the same answers, each after those that it waited for.
/// `None`: nowhere.
pub fn parting(reference: &ComparedRun, run: &ComparedRun) -> Option<Parting> {
    let mut walk = Walk::new(reference, run);
    let parted = (0..run.calls.len()).find_map(|at| walk.follow(at, true));
    parted.or_else(|| (0..reference.calls.len()).find(|at| !walk.is_taken(*at)).map(Parting::Missing))
}

/// A run that is followed through its reference, call by call.
struct Walk<'a> {
    reference: &'a ComparedRun,
    run: &'a ComparedRun,
    /// For each call of the reference, the call of the run that it is.
    taken_for: Vec<Option<usize>>,
    pairs: Pairing,
}

impl<'a> Walk<'a> {
    fn new(reference: &'a ComparedRun, run: &'a ComparedRun) -> Self {
        Self { reference, run, taken_for: vec![None; reference.calls.len()], pairs: Pairing::default() }
    }

    fn is_taken(&self, place: usize) -> bool {
        self.taken_for.get(place).is_some_and(Option::is_some)
    }

    fn take(&mut self, place: usize, at: usize) {
        self.taken_for.iter_mut().skip(place).take(1).for_each(|taken| *taken = Some(at));
    }

    /// Finds the next call of the run in the reference. `answer_counts`: whether it must have been answered the same.
    fn follow(&mut self, at: usize, answer_counts: bool) -> Option<Parting> {
        let call = self.run.calls.get(at)?;
        let mut asked = false;
        for (place, other) in self.reference.calls.iter().enumerate() {
            let mut waited = self.reference.waited_for.get(place).into_iter().flatten();
            if self.is_taken(place) || !waited.all(|before| self.is_taken(*before)) {
                continue;
            }
            let learnt = self.pairs.learnt();
            if !other.same_request(call, &mut self.pairs) {
                continue;
            }
            asked = true;
            if !answer_counts || other.same_answered(call, &mut self.pairs) {
                self.take(place, at);
                return None;
            }
            self.pairs.forget(learnt);
        }
        Some(if asked { Parting::Answered(at) } else { Parting::Request(at) })
    }

    /// Whether the run asks, after a step, what a call of the reference asked.
    fn comes_later(&mut self, place: usize, after: usize) -> bool {
        let Some(other) = self.reference.calls.get(place) else { return false };
        for (at, call) in self.run.calls.iter().enumerate().skip(after + 1) {
            if !self.taken_for.contains(&Some(at)) && other.same_request(call, &mut self.pairs) {
                self.take(place, at);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        equality::{ComparedCall, ComparedContent, OrderedCall, Rules},
        trajectory::AgentName,
    };

    /// `a:question=answer` is a call of agent `a`; `|` before it: it overlaps with the one before. `#x` in either
    /// text is an id of a call.
    fn run(text: &str) -> ComparedRun {
        let words = |text: &str| {
            let parts: Vec<&str> = text.split(' ').collect();
            let ids = parts.iter().filter(|part| part.starts_with('#')).map(|part| (*part).to_owned());
            ComparedContent { ids: ids.collect(), value: json!(parts) }
        };
        let (mut calls, mut order, mut texts, mut overlaps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for call in text.split(" / ") {
            let (joins, call) = call.strip_prefix('|').map_or((false, call), |call| (true, call));
            let (agent, call) = call.split_once(':').expect("an agent");
            let (asked, answered) = call.split_once('=').expect("an answer");
            let agent = AgentName::parse(agent).expect("a name");
            let words_of = (!answered.is_empty()).then(|| words(answered));
            calls.push(ComparedCall::new(agent.clone(), words(asked), words_of, &Rules::default()));
            order.push(OrderedCall { agent, instance: 0, answered: answered.to_owned(), opened: 0, closed: None });
            texts.push(asked.to_owned());
            overlaps.push(joins);
        }
        ComparedRun::without_clock(calls, order, |at| texts[at].clone(), &overlaps)
    }

    fn check(reference: &str, other: &str, fork: Option<usize>, expected: Option<Parting>) {
        let (one, another) = (run(reference), run(other));
        let found = match fork {
            Some(fork) => parting_before(&one, &another, fork, &[]),
            None => parting(&one, &another),
        };
        assert_eq!(found, expected, "{reference} and {other}");
    }

    #[test]
    fn whole_runs() {
        use Parting::{Answered, Missing, Request};
        check("a:x=one / b:one y=2", "a:x=one / b:one y=2", None, None);
        check("a:x=1 / b:y=2", "a:x=1 / b:y=3", None, Some(Answered(1)));
        check("a:x=1 / b:y=2", "a:x=1 / c:y=2", None, Some(Request(1)));
        check("a:x=1 / b:y 1=2", "b:y 1=2 / a:x=1", None, Some(Request(0)));
        check("a:x=1 / b:y=2", "a:x=1", None, Some(Missing(1)));
        check("a:x=1", "a:x=1 / a:x=1", None, Some(Request(1)));
        check("a:x=1", "a:x=", None, Some(Answered(0)));
        check("a:x=", "a:x=", None, None);
        // Dates move, and an answer may repeat the question's; a date of its own is its answer.
        check("a:2026-01-01 x=on 2026-01-01", "a:2026-02-02 x=on 2026-02-02", None, None);
        check("a:2026-01-01 x=on 2026-01-01", "a:2026-02-02 x=on 2026-01-01", None, None);
        check("a:x=on 2026-01-01", "a:x=on 2026-02-02", None, Some(Answered(0)));
    }

    #[test]
    fn calls_that_waited_for_nothing_of_one_another_have_no_order() {
        use Parting::{Answered, Missing, Request};
        let branches = "s:q=go / a:go=one / b:go=two / a:one=three / b:two=four / w:three four=end";
        for (other, fork, expected) in [
            ("s:q=go / b:go=two / b:two=four / a:go=one / a:one=three / w:three four=end", None, None),
            ("s:q=go / |a:go=one / a:one=three / |b:go=two / b:two=four / w:three four=end", None, None),
            // The step comes first here; what the reference had asked before it comes later, or never.
            ("s:q=go / a:go=one / a:one=9 / b:go=two / b:two=four / w:9 four=end", Some(2), None),
            ("s:q=go / a:go=one / a:one=9 / w:9=end", Some(2), Some(Missing(2))),
            ("s:q=go / a:go=one / a:one=9 / b:stop=two", Some(2), Some(Missing(2))),
            // What is asked and answered counts as ever.
            ("s:q=go / b:go=two / a:went=one", Some(2), Some(Request(2))),
            ("s:q=go / b:go=six / a:go=one", Some(2), Some(Answered(1))),
        ] {
            check(branches, other, fork, expected);
        }
        // A second branch in which something was planted need not go on as it did.
        let edited = run("s:q=go / a:go=9 / b:go=8 / b:8=seven / w:end=end");
        let reference = run("s:q=go / b:go=two / b:two=four / a:go=one / w:one four=end");
        assert_eq!(parting_before(&reference, &edited, 1, &[1, 2]), None);
        assert_eq!(parting_before(&reference, &edited, 1, &[1]), Some(Missing(2)));
        // One that was told what the other said waited for it, and so did the next call of the same agent.
        check("a:q=yes / b:q yes=no", "b:q yes=no / a:q=yes", Some(0), Some(Request(0)));
        check("a:q=yes / a:r=no", "a:r=no / a:q=yes", Some(0), Some(Request(0)));
        // An agent that is asked in each branch waited for what it quotes, not for its call in another branch.
        let asked_in_each = "s:q=go / a:go=one / b:go=two / p:one=x / p:two=y / w:x y=end";
        check(asked_in_each, "s:q=go / b:go=two / p:two=y / a:go=one / p:one=x / w:x y=end", None, None);
        let equal_at_once = "s:q=go / a:go=one / |a:go=one / p:one=x / |p:one=x / w:x=end";
        check(equal_at_once, "s:q=go / a:go=one / p:one=x / a:go=one / p:one=x / w:x=end", None, None);
        check("a:q=yes / a:yes r=no", "a:yes r=no / a:q=yes", None, Some(Request(0)));
        // What came after an answer without words may have waited for it.
        check("a:q= / b:r=", "b:r= / a:q=", Some(0), Some(Request(0)));
        // Equal questions at once are told apart by their answers.
        check("w:x=1 / |w:x=2", "w:x=2 / |w:x=1", None, None);
    }

    #[test]
    fn up_to_a_step() {
        use Parting::{Answered, Missing, Request};
        let reference = "a:x=1 / b:y=2 / c:z=3";
        check(reference, "a:x=1 / b:y=9 / c:other=3", Some(1), None);
        check(reference, "a:x=9 / b:y=2", Some(1), Some(Answered(0)));
        check(reference, "a:x=1 / b:other=2", Some(1), Some(Request(1)));
        check(reference, "b:y=2", Some(0), Some(Missing(0)));
        check(reference, reference, Some(7), None);
        check("a:x=1", "a:x=1 / b:y=2", Some(7), Some(Request(1)));
    }

    #[test]
    fn one_id_stands_for_one_id_over_the_whole_run() {
        use Parting::{Answered, Request};
        check("a:x=#1 / a:#1 y=2", "a:x=#7 / a:#7 y=2", None, None);
        check("a:x=#1 #2 / a:#1 y=2", "a:x=#7 #8 / a:#8 y=2", None, Some(Request(1)));
        check("a:x=#1 / a:y=#2", "a:x=#7 / a:y=#7", None, Some(Answered(1)));
    }

    #[test]
    fn groups_are_chains_of_overlaps() {
        let spans = [(0, Some(3)), (1, Some(2)), (4, Some(9)), (5, Some(6)), (7, Some(8)), (10, None), (11, Some(12))];
        assert_eq!(joins(spans), [false, true, false, true, true, false, true]);
    }
}
