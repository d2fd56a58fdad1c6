//! When something is shown. A label, a blamed step, a repair that helped are claims about causes; each is made from
//! executions in two arms, and this room alone says what they amount to.
//!
//! - *treated*: the run with the treatment, the same bytes each time; *null*: the same beginning without it.
//! - An execution [`ProofSample`] passed, failed, or is void: it says nothing of the claim.
//! - Each execution gets [neutral changes](Perturbation) of its own, drawn independently in both arms: so a claim says that
//!   this treatment turned the outcome, and not that any other bytes would have.
//! - Pair *i* is the *i*-th sample of each arm that is not void, whichever ended first. A claim's evidence is one
//!   number, an [`e_value`] (a safe test of two proportions: Turner, Ly and Grünwald, 2021). Without an effect it ever
//!   reaches 1/α with a probability of at most α, at whatever rate both arms pass, and however often one looks; as long as
//!   executions do not depend on each other. Against those that do, for they follow a rhythm, the order of the arms in a
//!   pair is [drawn](Terms::drawn_for); that is no bound, and measured in `systems_tests`.
//! - [`SeenArms`] looks for what makes executions depend on each other: caches, programs that remember, an order in time.
//! - [`Shams`] are neutral changes executed again the way an edit is: where one fails each time, the place [is fragile](is_fragile).
//! - [`is_chaotic`] tells tasks in which neutral changes alone turn the outcome too often.
//! - [`Claim::next`] says what to execute next, or where the claim stands.
//! - [`Exclusion`] is the reverse question, whether an effect of a size can be excluded, with the same guarantee.
//! - [`LeaveOneOut`] is one of several planted errors: whether the failure needs it, by both.
//! - [`Search`] is many claims about one failed run: which of its steps are decisive, and what to execute next to know.
//! - [`rate_at_most`] is what a count of decoys, which were planted as errors and are none, leaves possible.
//! - [`selected_count`] cuts a set of claims so that the wrong ones are at most a share α of them in the mean (e-BH: Wang and Ramdas,
//!   2022, under any dependence).
//!
//! Everything is plain arithmetic: the same samples, the same answer on every machine.

mod bounds;
mod chaos;
mod claim;
mod cut;
mod decisive;
mod dependence;
mod exclusion;
mod foretell;
mod need;
mod neutral;
mod pairs;
mod perturbation;
mod rate;
mod repeated;
mod sample;
mod sentences;
mod sham;
mod terms;
mod words;

pub use bounds::e_bounds;
pub use chaos::is_chaotic;
pub use claim::{Arm, Claim, Next};
pub use cut::{lowest_level, selected_count};
pub use decisive::{
    Couple, Found, Offer, Order, RuleAnswer, Search, SearchEnding, SearchQuestion, Stands, TriedWords, most_executions,
    play,
};
pub use dependence::{FALSE_ALARMS, ObservedExecution, SeenArms, SeenCall};
pub use exclusion::Exclusion;
pub use foretell::{Foretold, foretell};
pub use need::{LeaveOneOut, NeedTerms, NextForNeed, read_former_states};
pub use neutral::{neutral_reply, neutral_request, neutral_result};
pub use pairs::{Expected, e_value};
pub use perturbation::Perturbation;
pub use rate::rate_at_most;
pub use repeated::Repetition;
pub use sample::{ProofSample, counted};
pub use sentences::{BadSentence, NeutralSentences, ProofConfig};
pub use sham::{ShamDraw, Shams, is_fragile};
pub use terms::{BadTerms, Terms};
pub use words::{figure, fragile, in_words, need_in_words};

#[cfg(test)]
mod need_tests;
#[cfg(test)]
mod systems_tests;
