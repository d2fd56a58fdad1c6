//! The order of the calls of a run, as far as there is one: a call waited for those whose answers it quotes or, if it quotes none,
//! for its agent's earlier calls. Nothing else has an order, whatever came first on the clock: an agent that is asked in several
//! branches is asked in each of them as that gets there.

use aho_corasick::{AhoCorasick, MatchKind};

use super::ComparedCall;
use crate::trajectory::AgentName;

/// So much of an answer's beginning is looked for first, in bytes; what follows is compared where it is found.
const BEGINNING_MAX: usize = 64;

/// A call, as far as it says what it waited for.
#[derive(Debug, Clone)]
pub struct OrderedCall {
    /// Who made it.
    pub agent: AgentName,
    /// Which of those of that name.
    pub instance: u32,
    /// All that it was answered, as one text.
    pub answered: String,
    /// When it was opened, on the clock of its run.
    pub opened: u64,
    /// When it was closed, on the same clock; `None` if never.
    pub closed: Option<u64>,
}

impl OrderedCall {
    fn is_over_before(&self, other: &Self) -> bool {
        self.closed.is_some_and(|closed| closed <= other.opened)
    }
}

/// A run as it is compared with another: its calls in the order of their arrival, or in the canonical order of a
/// dataset, and for each the positions of the calls that it waited for.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    pub(super) calls: Vec<ComparedCall>,
    pub(super) waited_for: Vec<Vec<usize>>,
    pub(super) spans: Vec<(u64, Option<u64>)>,
}

impl ComparedRun {
    /// A run of these calls. Both lists have one entry for each call; `asked` gives all that a call was asked, as one text.
    pub fn new(calls: Vec<ComparedCall>, order: &[OrderedCall], asked: impl Fn(usize) -> String) -> Self {
        let search = QuoteSearch::new(order);
        let waits = order.iter().enumerate().map(|(number, call)| {
            let quoted = search.quotes(number, &asked(number));
            // Of an agent's equal answers one is enough to quote them all.
            let is_first = |at: usize, other: &OrderedCall| {
                let before =
                    quoted.iter().filter(|quote| quote.answer < at).filter_map(|quote| order.get(quote.answer));
                !before.into_iter().any(|one| (&one.agent, &one.answered) == (&other.agent, &other.answered))
            };
            let is_quoted = |at: usize| quoted.iter().any(|quote| quote.answer == at);
            let earlier = order.iter().take(number).enumerate();
            let waited = earlier.filter(|(at, other)| {
                let own = quoted.is_empty() && (&call.agent, call.instance) == (&other.agent, other.instance);
                // An answer without words is quoted by none: what came after it may have waited for it.
                let may_quote = other.answered.trim().is_empty() || is_quoted(*at) && is_first(*at, other);
                other.is_over_before(call) && (own || may_quote)
            });
            waited.map(|(at, _)| at).collect()
        });
        let waited_for = waits.collect();
        Self { calls, waited_for, spans: order.iter().map(|call| (call.opened, call.closed)).collect() }
    }

    /// The same of a run that keeps no clock: `overlaps` says of each call whether it overlapped with the one before
    /// it, or with one that overlaps with that.
    pub fn without_clock(
        calls: Vec<ComparedCall>,
        order: Vec<OrderedCall>,
        asked: impl Fn(usize) -> String,
        overlaps: &[bool],
    ) -> Self {
        let mut group = 0;
        let timed = order.into_iter().zip(overlaps).map(|(call, overlaps)| {
            group += u64::from(!overlaps);
            OrderedCall { opened: 2 * group, closed: Some(2 * group + 1), ..call }
        });
        Self::new(calls, &timed.collect::<Vec<_>>(), asked)
    }

    /// Whether a call was over before another was opened.
    pub(super) fn is_over_before(&self, call: usize, other: usize) -> bool {
        let (Some((_, closed)), Some((opened, _))) = (self.spans.get(call), self.spans.get(other)) else {
            return false;
        };
        closed.is_some_and(|closed| closed <= *opened)
    }
}

/// An answer that stands in a later request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotedAnswer {
    /// Where in the request, in bytes.
    pub at: usize,
    /// The position of the call that got it.
    pub answer: usize,
}

/// Looks for the answers of a run in its later requests.
pub struct QuoteSearch<'a> {
    calls: &'a [OrderedCall],
    /// Finds the beginnings of answers; `None` where they are more than an automaton can hold.
    beginnings: Option<AhoCorasick>,
    /// Whose answer each beginning is.
    of: Vec<usize>,
}

impl<'a> QuoteSearch<'a> {
    /// Over the answers of these calls.
    pub fn new(calls: &'a [OrderedCall]) -> Self {
        let beginning = |call: &'a OrderedCall| {
            let answer = call.answered.trim();
            let end = (0..=answer.len().min(BEGINNING_MAX)).rev().find(|end| answer.is_char_boundary(*end));
            answer.get(..end.unwrap_or_default()).unwrap_or_default()
        };
        let beginnings = calls.iter().map(beginning).enumerate().filter(|(_, text)| !text.is_empty());
        let (of, patterns): (Vec<usize>, Vec<&str>) = beginnings.unzip();
        let beginnings = AhoCorasick::builder().match_kind(MatchKind::Standard).build(patterns).ok();
        Self { calls, beginnings, of }
    }

    /// The answers of calls that were over before the one at a position and which its request, with this text, quotes whole; in
    /// the order of their places.
    pub fn quotes(&self, position: usize, asked: &str) -> Vec<QuotedAnswer> {
        let (Some(search), Some(call)) = (&self.beginnings, self.calls.get(position)) else { return Vec::new() };
        let found = search.find_overlapping_iter(asked).filter_map(|found| {
            let answer = *self.of.get(found.pattern().as_usize())?;
            let other = self.calls.get(answer).filter(|other| other.is_over_before(call))?;
            let rest = asked.get(found.start()..)?;
            rest.starts_with(other.answered.trim()).then_some(QuotedAnswer { at: found.start(), answer })
        });
        let mut found: Vec<QuotedAnswer> = found.collect();
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_quoted_where_it_stands_whole_in_a_later_request() {
        let long = "x".repeat(100);
        let calls = [
            ("go", "It is 9.".to_owned(), 0),
            ("go", format!("{long}y"), 0),
            ("He said: It is 9. She said nothing", String::new(), 2),
            (&format!("It is 9 {long}z"), "last".to_owned(), 4),
            (&format!("{long}y and It is 9. and It is 9."), String::new(), 6),
            ("It is 9.", String::new(), 0),
        ];
        let call = |(_, answered, opened): &(&str, String, u64)| OrderedCall {
            agent: AgentName::parse("a").expect("a name"),
            instance: 0,
            answered: answered.clone(),
            opened: *opened,
            closed: Some(opened + 1),
        };
        let order: Vec<OrderedCall> = calls.iter().map(call).collect();
        let search = QuoteSearch::new(&order);
        let found = calls.iter().enumerate().map(|(at, (asked, ..))| {
            search.quotes(at, asked).into_iter().map(|quote| (quote.at, quote.answer)).collect()
        });
        let found: Vec<Vec<(usize, usize)>> = found.collect();
        let [first, second] = [106, 119];
        assert_eq!(found, [vec![], vec![], vec![(9, 0)], vec![], vec![(0, 1), (first, 0), (second, 0)], vec![]]);
    }
}
