//! What is said of a request that the record does not answer: which record comes nearest, and where it first differs.

use bytes::Bytes;

use super::{
    Departure, Nearest, advice,
    cassette::request_key,
    difference,
    play::{Play, PlayState},
    question::CassetteQuestion,
};
use crate::{surface, trajectory::StepIndex};

/// How many records are compared in full to find the nearest.
const LIKELY: usize = 16;

impl Play {
    /// What is to be said of a request that the record does not answer.
    pub(super) fn departure(&self, state: &PlayState, question: &CassetteQuestion) -> Departure {
        let CassetteQuestion { asker, surface } = question;
        let who = &asker.attribution;
        let steps = self.cassette.bare_steps();
        let same = self.cassette.same_form(surface, who, &asker.client_body).1.len();
        let unused = |position: &usize| !state.used.contains_key(position);
        let mut resultless = self.cassette.same_but_results(surface, who, &asker.client_body).1.to_vec();
        resultless.retain(unused);
        let tool_results_only = same == 0 && !resultless.is_empty();
        let candidates = if tool_results_only { resultless } else { self.likely(surface, &asker.client_body, unused) };
        let volatile = self.cassette.volatile_rules();
        let rules = if volatile.volatile().is_empty() { self.cassette.rules() } else { volatile };
        let differs = |position: &usize| {
            let request = self.cassette.request(*position);
            difference::size(surface, &request, &asker.client_body, rules)
        };
        let other_agent =
            |position: &usize| steps.get(*position).is_none_or(|step| step.attribution.agent != who.agent);
        let nearest = candidates.into_iter().min_by_key(|at| (!unused(at), differs(at), other_agent(at), *at));
        let nearest = nearest.and_then(|position| {
            let step = steps.get(position)?;
            let request = self.cassette.request(position);
            Some(Nearest {
                step: step.step,
                agent: step.attribution.agent.clone(),
                call: step.call,
                difference: difference::first(surface, &request, &asker.client_body, rules),
            })
        });
        let difference = nearest.as_ref().and_then(|nearest| nearest.difference.as_ref());
        let reordered = difference.is_some_and(|difference| difference.reordered);
        let position = |step: StepIndex| steps.iter().position(|known| known.step == step);
        let met = nearest.as_ref().and_then(|nearest| position(nearest.step));
        let swapped = reordered && met.is_some_and(|position| self.cassette.twins().meet_in(position));
        let joined_otherwise = reordered && met.is_some_and(|at| self.cassette.finish_order().is_joined_in(at));
        let rule = difference.filter(|_| !tool_results_only).and_then(advice::rule);
        let agent = who.agent.clone();
        let form = self.cassette.canonical_form(surface, &asker.client_body);
        let unread = surface.split_once(' ').filter(|(name, _)| surface::is_unread(name));
        let unread = unread.map(|(_, asked)| asked.to_owned());
        Departure {
            step: asker.step,
            agent,
            call: asker.call,
            unread,
            answers: same,
            nearest,
            tool_results_only,
            tools_recorded: steps.iter().any(|step| surface::is_of_server(&step.surface)),
            swapped,
            joined_otherwise,
            rule,
            form,
        }
    }

    /// Records that may be the nearest: looking at all of them in full would take as long as the record is large.
    fn likely(&self, surface: &str, asked: &Bytes, unused: impl Fn(&usize) -> bool) -> Vec<usize> {
        let steps = self.cassette.bare_steps().iter().enumerate().filter(|(_, step)| request_key(step) == surface);
        let rank = |at: usize| (!unused(&at), std::cmp::Reverse(likeness(&self.cassette.request(at), asked)), at);
        let mut ranked: Vec<_> = steps.map(|(at, _)| rank(at)).collect();
        ranked.sort_unstable();
        ranked.into_iter().take(LIKELY).map(|(.., at)| at).collect()
    }
}

/// How much of two bodies is equal at their start and their end, in percent of the longer one.
fn likeness(left: &Bytes, right: &Bytes) -> u32 {
    let longer = left.len().max(right.len()).max(1);
    let start = left.iter().zip(right.iter()).take_while(|(a, b)| a == b).count();
    let rest = left.len().min(right.len()) - start;
    let end = left.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    u32::try_from((start + end) * 100 / longer).unwrap_or(100)
}
