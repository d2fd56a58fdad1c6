//! Branches that are joined as they finish: a later request holds their answers in the order in which the program took
//! them up, so that a replay has to give them in that order again. Where a program joins them by name, the order does no harm.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::{compared::ordered_calls, reading::request_text, recorded_calls::RecordedCalls};
use crate::equality::{OrderedCall, QuoteSearch, joins};

/// Requests of a recording that are looked at.
const REQUESTS_MAX: usize = 1000;
/// How long after an answer the next one of its order comes, so that the program takes them up one after the other.
const APART: Duration = Duration::from_millis(15);
/// How long an answer is held back for the one before it, at most, and how often that is looked at.
const HELD_MAX: Duration = Duration::from_millis(500);
const HELD_STEP: Duration = Duration::from_millis(1);

/// The answers of a recording that have to come after others, by position.
#[derive(Debug, Default)]
pub(super) struct FinishOrder(HashMap<usize, Vec<FinishedBefore>>);

/// An answer that came before another, and the request that holds both in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FinishedBefore {
    position: usize,
    joined_in: usize,
}

impl FinishOrder {
    /// The order that the requests of a recording show.
    pub(super) fn from_calls(record: &impl RecordedCalls) -> Self {
        let steps = record.steps();
        let spans = steps.iter().map(|step| record.span(step));
        let joins = joins(spans.map(|(opened, closed)| (opened, Some(closed))));
        // Branches are joined by a call that comes first after them, or beside others.
        let after = |at: usize| at > 0 && joins.get(at - 1).is_some_and(|joins| *joins);
        let joining: Vec<usize> = (0..steps.len()).filter(|at| after(*at)).take(REQUESTS_MAX).collect();
        if joining.is_empty() {
            return Self::default();
        }
        let asked = |at: usize| {
            let text = steps.get(at).map(|step| request_text(step, &record.request(at)));
            text.unwrap_or_default()
        };
        Self::of_calls(&ordered_calls(steps, record.exchanges()), &joining, asked)
    }

    fn of_calls(calls: &[OrderedCall], joining: &[usize], asked: impl Fn(usize) -> String) -> Self {
        // Where the one was over before the other was asked, they stand in this order for another reason.
        let may_come_first = |position: usize, after: usize| {
            let (Some(first), Some(second)) = (calls.get(position), calls.get(after)) else { return false };
            second.closed.is_some_and(|closed| closed > first.opened)
        };
        let search = QuoteSearch::new(calls);
        let mut order: HashMap<usize, Vec<FinishedBefore>> = HashMap::new();
        for joined_in in joining.iter().copied() {
            let mut joined: Vec<usize> = Vec::new();
            for quote in search.quotes(joined_in, &asked(joined_in)) {
                if !joined.contains(&quote.answer) {
                    joined.push(quote.answer);
                }
            }
            for pair in joined.windows(2) {
                let [position, after] = pair else { continue };
                let holds = |one: &usize, other: &usize| {
                    order.get(other).into_iter().flatten().any(|known| known.position == *one)
                };
                if may_come_first(*position, *after) && !holds(position, after) && !holds(after, position) {
                    order.entry(*after).or_default().push(FinishedBefore { position: *position, joined_in });
                }
            }
        }
        Self(order)
    }

    /// Whether the request at a position holds answers in the order in which they came.
    pub(super) fn is_joined_in(&self, position: usize) -> bool {
        self.0.values().flatten().any(|before| before.joined_in == position)
    }

    /// Waits until the answers are given that came before the one at a position, if only for so long: a program that asks
    /// otherwise than it did goes on without. `last_given`: when the last of some answers was given, once all are.
    pub(super) async fn wait_for_turn(
        &self,
        position: usize,
        is_played: impl Fn(usize) -> bool,
        last_given: impl Fn(&[usize]) -> Option<Instant>,
    ) {
        let before = self.before(position, is_played);
        if before.is_empty() {
            return;
        }
        let held = async {
            loop {
                if let Some(given) = last_given(&before) {
                    return tokio::time::sleep_until(given + APART).await;
                }
                tokio::time::sleep(HELD_STEP).await;
            }
        };
        let _ = tokio::time::timeout(HELD_MAX, held).await;
    }

    /// The answers that come before the one at a position, where the request that holds both `is_played`.
    fn before(&self, position: usize, is_played: impl Fn(usize) -> bool) -> Vec<usize> {
        let before = self.0.get(&position).into_iter().flatten();
        before.filter(|before| is_played(before.joined_in)).map(|before| before.position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::AgentName;

    #[test]
    fn what_was_joined_as_it_finished_comes_in_that_order() {
        let calls = |list: &[(&str, &str, u64, u64)]| -> FinishOrder {
            let call = |(_, answered, opened, closed): &(&str, &str, u64, u64)| OrderedCall {
                agent: AgentName::parse("a").expect("a name"),
                instance: 0,
                answered: (*answered).to_owned(),
                opened: *opened,
                closed: Some(*closed),
            };
            let all: Vec<usize> = (0..list.len()).collect();
            FinishOrder::of_calls(&list.iter().map(call).collect::<Vec<_>>(), &all, |at| list[at].0.to_owned())
        };
        let branches = [("go", "It is one.", 0, 9), ("go", "It is two.", 1, 5), ("go", "It is three.", 2, 7)];
        let with = |join: &'static str| calls(&[branches.as_slice(), &[(join, "end", 20, 21)]].concat());
        let by_finish = with("Got: It is two. / It is three. / It is one.");
        assert_eq!(by_finish.before(2, |_| true), [1]);
        assert_eq!(by_finish.before(0, |_| true), [2]);
        assert!(by_finish.before(1, |_| true).is_empty() && by_finish.before(0, |join| join != 3).is_empty());
        // One that was over before another was asked cannot be told to wait for it.
        let in_turn = [("go", "It is one.", 0, 2), ("go", "It is two.", 3, 5), ("It is two. It is one.", "end", 8, 9)];
        assert!(calls(&in_turn).0.is_empty());
    }
}
