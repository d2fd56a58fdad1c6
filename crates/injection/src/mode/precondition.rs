//! The table: what must be so at a call for each of the 14 modes, on either side.
//!
//! Sources are MAST's definitions (arXiv 2503.13657v2, appendix A), in the words of the paper where they are quoted.

use crate::trajectory::{FailureMode, Side};

/// Something that must be so at a call before an error there can be of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precondition {
    /// What is edited is text that people read, not only a tool call, JSON without sentences, or code.
    Prose,
    /// The request tells the agent what its role is.
    Role,
    /// The request holds what was said or done before in this run.
    History,
    /// Something was completed before that can be done again.
    CompletedStep,
    /// The request, or the reply, says how the work ends.
    Ending,
    /// The request holds words of another agent.
    PeerInput,
    /// Another agent makes a call afterwards, so that something can be kept from it.
    LaterPeer,
    /// The reply reasons, and then acts or concludes.
    ReasonedAction,
    /// Calls come afterwards, so that something was left to do.
    LaterCall,
    /// The agent checks work: it is told to, or its reply does.
    Checking,
    /// The agent gives a verdict: it is told to, or its reply does.
    Verdict,
}

impl Precondition {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Prose,
        Self::Role,
        Self::History,
        Self::CompletedStep,
        Self::Ending,
        Self::PeerInput,
        Self::LaterPeer,
        Self::ReasonedAction,
        Self::LaterCall,
        Self::Checking,
        Self::Verdict,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Role => "role",
            Self::History => "history",
            Self::CompletedStep => "completed-step",
            Self::Ending => "ending",
            Self::PeerInput => "peer-input",
            Self::LaterPeer => "later-peer",
            Self::ReasonedAction => "reasoned-action",
            Self::LaterCall => "later-call",
            Self::Checking => "checking",
            Self::Verdict => "verdict",
        }
    }

    /// What is missing where it does not hold, as a clause.
    pub fn missing(self) -> &'static str {
        match self {
            Self::Prose => "what would be edited is no text: only a tool call, data or code",
            Self::Role => "the request gives the agent no role",
            Self::History => "the request holds nothing that was said or done before",
            Self::CompletedStep => "nothing was completed before that could be done again",
            Self::Ending => "neither request nor reply says how the work ends",
            Self::PeerInput => "the request holds no words of another agent",
            Self::LaterPeer => "no other agent makes a call afterwards",
            Self::ReasonedAction => "the reply does not reason before it acts or concludes",
            Self::LaterCall => "no call comes afterwards, so nothing was left to do",
            Self::Checking => "the agent checks nothing",
            Self::Verdict => "the agent gives no verdict",
        }
    }
}

/// What must be so at a call for an error there to be of this mode. On the side of the request, what an agent does is told from what
/// it is asked to do; whether it reasons, from its reply to the request as it was, where that is known.
pub fn preconditions(mode: FailureMode, side: Side) -> &'static [Precondition] {
    use Precondition as P;
    match (mode, side) {
        // FM-1.1, "Failure to adhere to the specified constraints or requirements of a given task": any words state or answer a
        // task. FM-2.2, "Inability to request additional information when faced with unclear or incomplete data": whether data is
        // unclear no rule can tell. FM-2.3, "Deviation from the intended objective or focus of a given task".
        (
            FailureMode::DisobeyTaskSpecification
            | FailureMode::FailToAskForClarification
            | FailureMode::TaskDerailment,
            _,
        ) => &[P::Prose],
        // "Failure to adhere to the defined responsibilities and constraints of an assigned role".
        (FailureMode::DisobeyRoleSpecification, _) => &[P::Prose, P::Role],
        // "Unnecessary reiteration of previously completed steps in a process". A call that is made again repeats a step too.
        (FailureMode::StepRepetition, _) => &[P::CompletedStep],
        // FM-1.4, "Unexpected context truncation, disregarding recent interaction history and reverting to an antecedent
        // conversational state". FM-2.1, "Unexpected or unwarranted restarting of a dialogue, potentially losing context and
        // progress".
        (FailureMode::LossOfConversationHistory | FailureMode::ConversationReset, _) => &[P::Prose, P::History],
        // "Lack of recognition or understanding of the criteria that should trigger the termination".
        (FailureMode::UnawareOfTermination, _) => &[P::Prose, P::Ending],
        // "Failure to share or communicate important data or insights that an agent possess and could impact decision-making
        // of other agents": another agent must come that could have used them.
        (FailureMode::InformationWithholding, _) => &[P::Prose, P::LaterPeer],
        // "Disregarding or failing to adequately consider input or recommendations provided by other agents".
        (FailureMode::IgnoredInput, _) => &[P::Prose, P::PeerInput],
        // "Discrepancy between the logical reasoning process and the actual actions taken by the agent".
        (FailureMode::ReasoningActionMismatch, Side::Request) => &[P::Prose, P::ReasonedAction],
        (FailureMode::ReasoningActionMismatch, Side::Response) => &[P::ReasonedAction],
        // "Ending a dialogue, interaction or task before all necessary information has been exchanged or objectives met".
        (FailureMode::PrematureTermination, _) => &[P::Prose, P::LaterCall],
        // "(Partial) omission of proper checking or confirmation of task outcomes or system outputs".
        (FailureMode::IncompleteVerification, Side::Request) => &[P::Prose, P::Checking],
        (FailureMode::IncompleteVerification, Side::Response) => &[P::Checking],
        // "Failure to adequately validate or cross-check crucial information or decisions": a check that comes out wrong.
        // One that is a value of a program's answer is a verdict too.
        (FailureMode::IncorrectVerification, Side::Request) => &[P::Prose, P::Verdict],
        (FailureMode::IncorrectVerification, Side::Response) => &[P::Verdict],
    }
}

/// Whether the mode is about what an agent does by calling tools, so that an edit may touch its calls.
pub fn is_about_calls(mode: FailureMode) -> bool {
    matches!(mode, FailureMode::StepRepetition | FailureMode::ReasoningActionMismatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_needs_something_on_both_sides() {
        for mode in FailureMode::ALL {
            for side in [Side::Request, Side::Response] {
                let needs = preconditions(*mode, side);
                assert!(!needs.is_empty(), "{} {side:?}", mode.code());
                let of_words = [Precondition::Prose, Precondition::Checking, Precondition::Verdict];
                let words = needs.iter().any(|needed| of_words.contains(needed));
                assert!(words || is_about_calls(*mode), "{}: calls are no business of it", mode.code());
            }
        }
    }

    #[test]
    fn every_precondition_has_a_name_of_its_own_and_is_asked_by_a_mode() {
        for precondition in Precondition::ALL {
            let named = Precondition::ALL.iter().filter(|other| other.name() == precondition.name()).count();
            let said = Precondition::ALL.iter().filter(|other| other.missing() == precondition.missing()).count();
            assert_eq!((named, said), (1, 1), "{}", precondition.name());
            let asked =
                FailureMode::ALL.iter().any(|mode| preconditions(*mode, Side::Response).contains(&precondition));
            assert!(asked, "{}", precondition.name());
        }
    }

    #[test]
    fn the_page_has_this_table() {
        let page = include_str!("../../../../docs/explain/modes.md");
        let names = |mode: FailureMode, side: Side| {
            let needs = preconditions(mode, side).iter().map(|one| format!("`{}`", one.name()));
            needs.collect::<Vec<_>>().join(", ")
        };
        for mode in FailureMode::ALL {
            let [request, response] = [Side::Request, Side::Response].map(|side| names(*mode, side));
            let row = format!("| {} {} | {request} | {response} |", mode.code(), mode.name());
            assert!(page.lines().any(|line| line == row), "{row}");
        }
        for precondition in Precondition::ALL {
            assert!(page.contains(&format!("| `{}` | ", precondition.name())), "{}", precondition.name());
        }
    }
}
