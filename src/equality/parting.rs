//! Where one run parts from another.

use super::{Pairing, Told};
use crate::trajectory::AgentName;

/// The first call of a run that its reference does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The call at this position of the run was not asked in the reference, or not at its turn.
    Asked(usize),
    /// It was asked there, and answered otherwise.
    Answered(usize),
    /// The reference asked on: its call at this position is missing in the run.
    Missing(usize),
}

impl std::fmt::Display for Parting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Parting::Asked(at) => write!(formatter, "call {at} of the run is not what the reference asked at its turn"),
            Parting::Answered(at) => {
                write!(formatter, "call {at} of the run was answered otherwise than the reference's")
            }
            Parting::Missing(at) => write!(formatter, "call {at} of the reference is missing in the run"),
        }
    }
}

/// For each call, whether it joins the group of the one before it: calls that overlap are one group without order, and
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

/// What tells whether a call could have been made before another one was answered.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// Who made it.
    pub agent: AgentName,
    /// Which of those of that name.
    pub instance: u32,
    /// All that it was asked, as one text.
    pub asked: String,
    /// All that it was answered, as one text.
    pub answered: String,
}

impl Spoken {
    /// Whether nothing shows that it waited for the other: another agent, and words that it was not told.
    fn is_free_of(&self, other: &Self) -> bool {
        let answered = other.answered.trim();
        (&self.agent, self.instance) != (&other.agent, other.instance)
            && !answered.is_empty()
            && !self.asked.contains(answered)
    }
}

/// The calls with fewer orders among them: calls that a program made at once may come one after the other where they are
/// answered quickly. One that waited for nothing of its group joins it.
pub fn unordered(told: Vec<Told>, spoken: &[Spoken]) -> Vec<Told> {
    let mut group: Vec<&Spoken> = Vec::new();
    let mut joined = Vec::with_capacity(told.len());
    for (told, own) in told.into_iter().zip(spoken) {
        let joins = told.joins() || (!group.is_empty() && group.iter().all(|other| own.is_free_of(other)));
        if !joins {
            group.clear();
        }
        group.push(own);
        joined.push(told.joining(joins));
    }
    joined
}

/// Where a run leaves its reference before a step of its own, or at it: up to the step at the position `fork` the run
/// must ask what the reference asks, in its order, and, before the step, be answered the same. Calls that overlapped
/// have no order among themselves, in either run. `None`: it does not.
///
/// Both runs are whole, in the order of their arrival or in the canonical order of a dataset. What overlapped with the
/// step and stands behind it is compared with nothing.
pub fn parting_before(reference: &[Told], run: &[Told], fork: usize) -> Option<Parting> {
    let mut walk = Walk::new(reference, run);
    let mut from = 0;
    loop {
        let to = walk.group_end(from);
        if fork < to {
            let required = (from..=fork).collect();
            return walk.group(required, (fork + 1..to).collect(), Some(fork));
        }
        if from >= run.len() {
            return None;
        }
        if let Some(parting) = walk.group((from..to).collect(), Vec::new(), None) {
            return Some(parting);
        }
        from = to;
    }
}

/// Where a run leaves its reference at all: the same calls, the same answers, in the same order but for calls that
/// overlapped. `None`: nowhere.
pub fn parting(reference: &[Told], run: &[Told]) -> Option<Parting> {
    parting_before(reference, run, run.len()).or_else(|| {
        // Every call of the run has one of the reference: what is left there, if anything, comes after them.
        (run.len() < reference.len()).then(|| {
            let mut walk = Walk::new(reference, run);
            let all = (0..run.len()).collect::<Vec<_>>();
            all.chunk_by(|_, next| run.get(*next).is_some_and(Told::joins)).for_each(|group| {
                let _ = walk.group(group.to_vec(), Vec::new(), None);
            });
            Parting::Missing(walk.used.iter().position(|used| !used).unwrap_or(run.len()))
        })
    })
}

/// A run that is followed through its reference, group by group.
struct Walk<'a> {
    reference: &'a [Told],
    run: &'a [Told],
    used: Vec<bool>,
    /// Where the group of the reference begins whose calls are due.
    due: usize,
    pairs: Pairing,
}

impl<'a> Walk<'a> {
    fn new(reference: &'a [Told], run: &'a [Told]) -> Self {
        Self { reference, run, used: vec![false; reference.len()], due: 0, pairs: Pairing::default() }
    }

    fn group_end(&self, from: usize) -> usize {
        end_of_group(self.run, from)
    }

    /// Finds each required call of a group; calls that are not required may be found so that others' turn comes.
    /// `fork`: the call whose answer does not count.
    fn group(&mut self, required: Vec<usize>, optional: Vec<usize>, fork: Option<usize>) -> Option<Parting> {
        let (mut required, mut optional) = (required, optional);
        while !required.is_empty() {
            let found = required.iter().position(|&at| self.find(at, fork != Some(at)));
            if let Some(found) = found {
                required.remove(found);
                continue;
            }
            let found = optional.iter().position(|&at| self.find(at, true));
            let Some(found) = found else { return required.first().map(|&at| self.parted(at)) };
            optional.remove(found);
        }
        None
    }

    /// Whether a call that is due in the reference is this call of the run; then it is used up.
    fn find(&mut self, at: usize, answer_counts: bool) -> bool {
        let Some(call) = self.run.get(at) else { return false };
        let due = self.due..end_of_group(self.reference, self.due);
        for place in due.clone() {
            let Some(other) = self.reference.get(place).filter(|_| self.used.get(place) == Some(&false)) else {
                continue;
            };
            let learnt = self.pairs.learnt();
            let pairs = &mut self.pairs;
            if !other.same_asked(call, pairs) {
                continue;
            }
            if !answer_counts || other.same_answered(call, pairs) {
                self.used.iter_mut().skip(place).take(1).for_each(|used| *used = true);
                if self.used.get(due.clone()).is_some_and(|used| used.iter().all(|used| *used)) {
                    self.due = due.end;
                }
                return true;
            }
            pairs.forget(learnt);
        }
        false
    }

    /// Why nothing that is due is this call.
    fn parted(&mut self, at: usize) -> Parting {
        let due = self.due..end_of_group(self.reference, self.due);
        let due = self.reference.get(due).unwrap_or_default();
        let learnt = self.pairs.learnt();
        let pairs = &mut self.pairs;
        let asked = self.run.get(at).is_some_and(|call| due.iter().any(|other| other.same_asked(call, pairs)));
        pairs.forget(learnt);
        if asked { Parting::Answered(at) } else { Parting::Asked(at) }
    }
}

/// The position behind the group that begins at `from`.
fn end_of_group(calls: &[Told], from: usize) -> usize {
    let rest = calls.get(from + 1..).unwrap_or_default();
    (from + 1 + rest.iter().take_while(|call| call.joins()).count()).min(calls.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        equality::{Rules, SaidWords},
        trajectory::AgentName,
    };

    /// `a:question=answer` is a call of agent `a`; `|` before it: it joins the group of the one before. `#x` in either
    /// text is an id of a call.
    fn run(text: &str) -> Vec<Told> {
        let words = |text: &str| {
            let parts: Vec<&str> = text.split(' ').collect();
            let ids = parts.iter().filter(|part| part.starts_with('#')).map(|part| (*part).to_owned());
            SaidWords { ids: ids.collect(), value: json!(parts) }
        };
        let told = |call: &str| {
            let (joins, call) = call.strip_prefix('|').map_or((false, call), |call| (true, call));
            let (agent, call) = call.split_once(':').expect("an agent");
            let (asked, answered) = call.split_once('=').expect("an answer");
            let answered = (!answered.is_empty()).then(|| words(answered));
            Told::new(AgentName::parse(agent).expect("a name"), words(asked), answered, &Rules::default())
                .joining(joins)
        };
        text.split(" / ").map(told).collect()
    }

    fn check(reference: &str, other: &str, fork: Option<usize>, expected: Option<Parting>) {
        let (reference, other) = (run(reference), run(other));
        let found = match fork {
            Some(fork) => parting_before(&reference, &other, fork),
            None => parting(&reference, &other),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn whole_runs() {
        use Parting::{Answered, Asked, Missing};
        check("a:x=1 / b:y=2", "a:x=1 / b:y=2", None, None);
        check("a:x=1 / b:y=2", "a:x=1 / b:y=3", None, Some(Answered(1)));
        check("a:x=1 / b:y=2", "a:x=1 / c:y=2", None, Some(Asked(1)));
        check("a:x=1 / b:y=2", "b:y=2 / a:x=1", None, Some(Asked(0)));
        check("a:x=1 / b:y=2", "a:x=1", None, Some(Missing(1)));
        check("a:x=1", "a:x=1 / a:x=1", None, Some(Asked(1)));
        check("a:x=1", "a:x=", None, Some(Answered(0)));
        check("a:x=", "a:x=", None, None);
        // Dates move, and an answer may repeat the question's; a date of its own is its answer.
        check("a:2026-01-01 x=on 2026-01-01", "a:2026-02-02 x=on 2026-02-02", None, None);
        check("a:2026-01-01 x=on 2026-01-01", "a:2026-02-02 x=on 2026-01-01", None, None);
        check("a:x=on 2026-01-01", "a:x=on 2026-02-02", None, Some(Answered(0)));
    }

    #[test]
    fn what_waited_for_nothing_has_no_order_though_it_came_after() {
        let unordered = |text: &str| {
            let spoken = text.split(" / ").map(|call| {
                let (agent, call) = call.trim_start_matches('|').split_once(':').expect("an agent");
                let (asked, answered) = call.split_once('=').expect("an answer");
                let agent = AgentName::parse(agent).expect("a name");
                Spoken { agent, instance: 0, asked: asked.to_owned(), answered: answered.to_owned() }
            });
            super::unordered(run(text), &spoken.collect::<Vec<_>>())
        };
        for (reference, other, fork, expected) in [
            ("s:q=say 9 / a:say 9=yes / b:say 9=no", "s:q=say 9 / b:say 9=no / a:say 9=yes", 1, None),
            ("s:q=say 9 / a:say 9=yes / b:say 9=no", "s:q=say 9 / b:say 9=no / a:say 9=yes", 2, None),
            // One that was told what the other said waited for it.
            ("a:q=yes / b:q yes=no", "b:q=no / a:q=yes", 0, Some(Parting::Asked(0))),
            // Calls of one agent have the order in which it made them, and an answer without words tells nothing.
            ("a:q=yes / a:r=no", "a:r=no / a:q=yes", 0, Some(Parting::Asked(0))),
            ("a:q= / b:r=", "b:r= / a:q=", 0, Some(Parting::Asked(0))),
            // What is asked counts as ever.
            ("s:q=say 9 / a:say 9=yes / b:say 9=no", "s:q=say 9 / b:say 8=no", 1, Some(Parting::Asked(1))),
        ] {
            assert_eq!(parting_before(&unordered(reference), &unordered(other), fork), expected, "{other}");
        }
    }

    #[test]
    fn calls_that_overlapped_are_one_group_in_either_run() {
        use Parting::Asked;
        check("a:x=1 / |b:y=2 / c:z=3", "b:y=2 / |a:x=1 / c:z=3", None, None);
        check("a:x=1 / |b:y=2 / c:z=3", "b:y=2 / a:x=1 / c:z=3", None, None);
        check("a:x=1 / b:y=2 / c:z=3", "b:y=2 / |a:x=1 / c:z=3", None, None);
        check("a:x=1 / |b:y=2 / c:z=3", "a:x=1 / c:z=3 / b:y=2", None, Some(Asked(1)));
        // Equal questions with other answers are told apart by these.
        check("w:x=1 / |w:x=2", "w:x=2 / |w:x=1", None, None);
    }

    #[test]
    fn up_to_a_step() {
        use Parting::{Answered, Asked};
        let reference = "a:x=1 / b:y=2 / c:z=3";
        check(reference, "a:x=1 / b:y=9 / c:other=3", Some(1), None);
        check(reference, "a:x=9 / b:y=2", Some(1), Some(Answered(0)));
        check(reference, "a:x=1 / b:other=2", Some(1), Some(Asked(1)));
        check(reference, "b:y=2", Some(0), Some(Asked(0)));
        // What overlaps with the step and stands behind it may be what the reference asked before.
        check("b:y=2 / a:x=1", "a:x=9 / |b:y=2", Some(0), None);
        check("b:y=2 / a:x=1", "a:x=9 / |b:q=2", Some(0), Some(Asked(0)));
        check(reference, reference, Some(7), None);
        check("a:x=1", "a:x=1 / b:y=2", Some(7), Some(Asked(1)));
    }

    #[test]
    fn one_id_stands_for_one_id_over_the_whole_run() {
        use Parting::{Answered, Asked};
        check("a:x=#1 / a:#1 y=2", "a:x=#7 / a:#7 y=2", None, None);
        check("a:x=#1 #2 / a:#1 y=2", "a:x=#7 #8 / a:#8 y=2", None, Some(Asked(1)));
        check("a:x=#1 / a:y=#2", "a:x=#7 / a:y=#7", None, Some(Answered(1)));
    }

    #[test]
    fn groups_are_chains_of_overlaps() {
        let spans = [(0, Some(3)), (1, Some(2)), (4, Some(9)), (5, Some(6)), (7, Some(8)), (10, None), (11, Some(12))];
        assert_eq!(joins(spans), [false, true, false, true, true, false, true]);
    }
}
