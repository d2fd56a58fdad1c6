//! Content edits: each manipulator plants one kind of error in one side of one step.
//!
//! A manipulator sees the neutral conversation, never JSON paths, headers or sockets, and does no IO. Plans name one
//! by its file's name; the exchange calls [`edited_request`] and [`edited_reply`], which check what every edit must
//! keep: something changed, and an answer that had to be JSON still is.
//! To add one: a file here, and one line in the list below; the example in its doc comment is its test and its
//! catalogue entry. Then write the generated files anew: `docs/add-a-manipulator.md` lists them.

#[macro_use]
mod list;

mod adaptive;
mod history;
mod json_text;
mod number;
mod passage;
mod question;
mod shape;
#[cfg(test)]
mod testing;

use std::sync::Arc;

pub use adaptive::Adaptive;
pub use append_instruction::InstructionTarget;
pub use neutral_change::neutral_place;
pub use number::{NumberChange, Which};
pub use question::{ANSWER_SCHEMA, Question};
pub use rewrite_with_model::{TaskKind, Template, TemplateError, Templates, scaffold};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::surface::{Answer, Conversation, Message, Reply};
use crate::trajectory::Side;

manipulators! {
    append_instruction::AppendInstruction (Request),
    insert_message::InsertMessage (Request),
    drop_history::DropHistory (Request),
    withhold_message::WithholdMessage (Request),
    reorder_history::ReorderHistory (Request),
    duplicate_message::DuplicateMessage (Request),
    swap_role::SwapRole (Request),
    corrupt_tool_result::CorruptToolResult (Request),
    drop_tools::DropTools (Request),
    rename_tool::RenameTool (Request),
    describe_tool::DescribeTool (Request),
    set_parameter::SetParameter (Request),
    replace_text::ReplaceText (Request, Response),
    corrupt_number::CorruptNumber (Response),
    negate_verdict::NegateVerdict (Response),
    truncate_output::TruncateOutput (Response),
    repeat_step::RepeatStep (Response),
    end_early::EndEarly (Response),
    drop_verification::DropVerification (Response),
    drop_section::DropSection (Response),
    withhold_findings::WithholdFindings (Response),
    echo_peer::EchoPeer (Response),
    refuse::Refuse (Response),
    garble::Garble (Response),
    empty::Empty (Response),
    wrong_entity::WrongEntity (Response),
    edit_tool_call::EditToolCall (Response),
    rewrite_with_model::RewriteWithModel (Request, Response),
    neutral_change::NeutralChange (Request, Response),
}

/// What a manipulator may know besides the text it edits.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The request that is being made, or, on the response side, that was made.
    pub conversation: &'a Conversation,
    /// Earlier answers of the same run, oldest first: (agent, text). Bounded.
    pub earlier: &'a [(String, String)],
    /// A draw that depends only on seed, run, agent, call and injection.
    pub draw: u64,
    /// What an edit by a model rests on.
    pub adaptive: Adaptive<'a>,
}

/// Why an edit was not made. The step then passes untouched and the record has the reason. The run gets no label, unless the edit
/// found nothing to change ([`ManipulatorError::is_nothing`]) and another one was delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManipulatorError {
    /// There is nothing of the kind that it edits, or the edit would break the answer's required shape.
    #[error("{0}")]
    NotApplicable(String),
    /// It ran and left everything as it was.
    #[error("the edit changed nothing")]
    Unchanged,
    /// It edits the other side only.
    #[error("edits the other side only")]
    WrongSide,
    /// No failure yet: a model must be asked first, and the edit be made again with its answer.
    #[error("a model must be asked first")]
    Ask(Box<Question>),
    /// The model was asked, and says that the failure mode cannot show in this text.
    #[error("the model that rewrites says that it does not apply: {why}")]
    Declined {
        /// Its reason.
        why: String,
    },
    /// The model was asked, and nothing that it said could be used.
    #[error("no answer of the model could be used (asked {tries} times): {why}")]
    Unusable {
        /// How often it was asked.
        tries: usize,
        /// What was wrong with the last answer.
        why: String,
    },
}

impl ManipulatorError {
    /// Whether the text simply has nothing of the kind: the step passes as it would without the plan, each time.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::NotApplicable(_) | Self::Unchanged | Self::Declined { .. })
    }
}

/// A content edit.
pub trait Manipulator: Send + Sync + std::fmt::Debug {
    /// Edits a request.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited; the conversation is then discarded.
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let _ = (conversation, context);
        Err(ManipulatorError::WrongSide)
    }

    /// Edits one answer of a reply. Finish reasons are written in the words of chat completions (`stop`, `length`,
    /// `tool_calls`); a surface with other words translates them.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited; the answer is then discarded.
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let _ = (answer, context);
        Err(ManipulatorError::WrongSide)
    }

    /// How often it may return [`ManipulatorError::Ask`] for one text; 0 if it needs no model.
    fn questions(&self) -> u32 {
        0
    }

    /// Whether it breaks a required shape on purpose: an answer that had to be JSON need then be none.
    fn breaks_shape(&self) -> bool {
        false
    }

    /// Whether it does what the plan's author says in words of their own: what that is called is for them to say.
    fn is_instructed(&self) -> bool {
        false
    }

    /// Whether it changes what means nothing and plants no error: it then meets calls of agents that are not known for
    /// sure too, and where it cannot be made nothing is missing.
    fn is_neutral(&self) -> bool {
        false
    }

    /// Whether the parameters make sense together; what each allows alone is the business of its type.
    ///
    /// # Errors
    /// What was expected, in words.
    fn check(&self, side: Side) -> Result<(), String> {
        let _ = side;
        Ok(())
    }

    /// What it does with these parameters, as the rest of a sentence that starts with "it".
    fn explain(&self) -> String;
}

/// The edited request.
///
/// # Errors
/// The manipulator's own error, or [`ManipulatorError::Unchanged`].
pub fn edited_request(
    manipulator: &dyn Manipulator,
    conversation: &Conversation,
    context: &Context<'_>,
) -> Result<Conversation, ManipulatorError> {
    let mut edited = conversation.clone();
    manipulator.edit_request(&mut edited, context)?;
    if edited == *conversation { Err(ManipulatorError::Unchanged) } else { Ok(edited) }
}

/// The edited message to a tool or a peer: it is edited as the answer of a model that says so, calls included.
///
/// # Errors
/// As [`edited_request`]; [`ManipulatorError::NotApplicable`] where nothing is said.
pub fn edited_message(
    manipulator: &dyn Manipulator,
    conversation: &Conversation,
    context: &Context<'_>,
) -> Result<Conversation, ManipulatorError> {
    let speaks =
        |message: &Message| !message.tool_calls.is_empty() || message.parts.iter().any(|part| part.as_text().is_some());
    let Some(speaking) = conversation.messages.iter().position(speaks) else {
        return not_applicable("the message calls no tool and has no text");
    };
    let mut edited = conversation.clone();
    if let Some(message) = edited.messages.get_mut(speaking) {
        let finish_reason = Some(Answer::CALLS.to_owned());
        let mut answer = Answer { index: 0, message: message.clone(), finish_reason };
        manipulator.edit_answer(&mut answer, context)?;
        *message = answer.message;
    }
    if edited == *conversation { Err(ManipulatorError::Unchanged) } else { Ok(edited) }
}

/// The edited reply. Every alternative answer is edited, or only the one numbered `choice`.
///
/// # Errors
/// The first error of any of them, [`ManipulatorError::Unchanged`], or [`ManipulatorError::NotApplicable`] when an
/// answer that had to be JSON of some schema would no longer be, or there is no such answer.
pub fn edited_reply(
    manipulator: &dyn Manipulator,
    reply: &Reply,
    choice: Option<u32>,
    context: &Context<'_>,
) -> Result<Reply, ManipulatorError> {
    let mut edited = reply.clone();
    let mut count = 0;
    for answer in edited.answers.iter_mut().filter(|answer| choice.is_none_or(|choice| choice == answer.index)) {
        let before = answer.clone();
        manipulator.edit_answer(answer, context)?;
        if *answer == before {
            return Err(ManipulatorError::Unchanged);
        }
        if !manipulator.breaks_shape() {
            shape::keep(&before, answer, &context.conversation.format)?;
        }
        count += 1;
    }
    match (count, choice) {
        (0, Some(choice)) => not_applicable(format!("the reply has no answer number {choice}")),
        (0, None) => not_applicable("the reply has no answer"),
        _ => Ok(edited),
    }
}

/// Makes an answer a plain final statement: this text, no tool calls, ended by itself.
fn say(answer: &mut Answer, text: impl Into<String>) {
    answer.message.set_text(text);
    answer.message.tool_calls.clear();
    if answer.finish_reason.is_some() {
        answer.finish_reason = Some("stop".to_owned());
    }
}

fn not_applicable<T>(reason: impl Into<String>) -> Result<T, ManipulatorError> {
    Err(ManipulatorError::NotApplicable(reason.into()))
}

/// A text as it may stand in a sentence: quoted, on one line, at most 60 characters.
pub fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    format!("“{short}”")
}

#[cfg(test)]
mod tests {
    use super::testing::{context, reply};
    use super::*;

    #[test]
    fn every_answer_is_edited_or_the_chosen_one() {
        let mut two = reply("1");
        two.answers.extend(reply("2").answers.into_iter().map(|answer| Answer { index: 1, ..answer }));
        let mut mixed = two.clone();
        mixed.answers.extend(reply("none").answers.into_iter().map(|answer| Answer { index: 2, ..answer }));
        let add = CorruptNumber { by: Some(1.0), ..CorruptNumber::default() };
        for (before, choice, expected) in [
            (&two, None, Some("2|3")),
            (&two, Some(1), Some("1|3")),
            (&two, Some(2), None),
            (&mixed, None, None),
            (&mixed, Some(0), Some("2|2|none")),
            (&Reply::default(), None, None),
        ] {
            let conversation = Conversation::default();
            let edited = edited_reply(&add, before, choice, &context(&conversation)).ok();
            let texts = edited
                .map(|reply| reply.answers.iter().map(|answer| answer.message.text()).collect::<Vec<_>>().join("|"));
            assert_eq!(texts.as_deref(), expected, "{choice:?}");
        }
    }

    #[test]
    fn each_side_is_refused_by_those_of_the_other() {
        let conversation = Conversation::default();
        let context = context(&conversation);
        let early = EndEarly::default();
        assert_eq!(edited_request(&early, &conversation, &context), Err(ManipulatorError::WrongSide));
        let append = AppendInstruction { text: "x".to_owned(), role: append_instruction::InstructionTarget::System };
        assert_eq!(edited_reply(&append, &reply("x"), None, &context), Err(ManipulatorError::WrongSide));
    }
}
