//! `rewrite_with_model`: a model of our own rewrites the text so that it shows the failure mode.
//!
//! Pure like every other manipulator: it asks by [`ManipulatorError::Ask`] and is run again with the answer. An answer
//! that cannot be used is refused with its reason, and asked for again; after `tries` the step passes untouched.

mod examine;
mod kind;
mod prompt;
mod scaffold;
mod subject;
mod template;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use examine::{EditedMessage, RewriterAnswer};
pub use kind::TaskKind;
pub use scaffold::scaffold;
use schemars::JsonSchema;
use serde::Deserialize;
use subject::Subject;
pub use template::{Template, TemplateError, Templates};

use super::append_instruction::InstructionTarget;
use super::question::{Question, answer_schema};
use super::{Context, Manipulator, ManipulatorError, not_applicable, quoted};
use crate::mode::{self, ObservedCall};
use crate::surface::{Answer, Conversation, Message, Role};
use crate::trajectory::Side;

/// How often a model is asked at most, whatever a plan says.
const TRIES_LIMIT: u32 = 10;

/// Has a model rewrite the message to show the failure mode, true to the agent and its task.
///
/// On the response side it rewrites the answer: text, tool calls, structured output. On the request side it rewrites
/// one message, never what a tool said. Tool calls are rewritten only under modes that are about calls (FM-1.3, FM-2.6) and by an
/// instruction of your own. With `mast`, nothing is asked where the mode cannot be at this call, and the model may say that it
/// does not apply: the step then passes untouched. The model is the one of `[manipulator]` in aegis.toml or
/// `--manipulator-upstream`. Its answer must differ, keep the required shape and a similar length, and give nothing away; else it
/// is asked again.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.6"
/// when.call = 0
/// side = "response"
/// manipulator.rewrite_with_model = { instruction = "mast" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: What is 12 + 30?"]
/// reply = "12 + 30 = 42. ANSWER: 42"
/// rewrite = "12 + 30 = 42. ANSWER: 24"
/// expect = "12 + 30 = 42. ANSWER: 24"
/// expect_question = ["reasoning-action mismatch", "You solve.", "12 + 30 = 42. ANSWER: 42"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewriteWithModel {
    /// `mast`, the template of the injection's failure mode and side, or your own instruction.
    #[serde(default = "mast")]
    pub instruction: String,
    /// Kind of task to specialise the template for. Default: derived from the task.
    pub kind: Option<TaskKind>,
    /// Which message is rewritten, on the request side.
    #[serde(default = "last")]
    pub message: InstructionTarget,
    /// Maximum number of questions to the model, 1 to 10.
    #[serde(default = "thrice")]
    pub tries: NonZeroU32,
    /// Also request a wrong final answer, instead of following the failure mode alone.
    #[serde(default)]
    pub wrong_answer: bool,
}

fn mast() -> String {
    "mast".to_owned()
}

fn last() -> InstructionTarget {
    InstructionTarget::Last
}

fn thrice() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(2)
}

impl Default for RewriteWithModel {
    fn default() -> Self {
        Self { instruction: mast(), kind: None, message: last(), tries: thrice(), wrong_answer: false }
    }
}

impl Manipulator for RewriteWithModel {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let Some(message) = self.target(conversation) else {
            return not_applicable(format!("the request has no {} with text", word(self.message)));
        };
        let subject = Subject::of_message(message);
        self.applies(Side::Request, None, context)?;
        let edited = self.rewritten(&subject, Side::Request, context)?;
        message.set_text(edited.text);
        Ok(())
    }

    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let mut subject = Subject::of_answer(answer, context.conversation);
        if subject.is_empty() {
            return not_applicable("the answer has no text and calls no tool");
        }
        self.applies(Side::Response, Some(answer), context)?;
        let keeps_calls = self.is_mast() && !context.adaptive.failure_mode.is_some_and(mode::is_about_calls);
        let kept = if keeps_calls { subject.calls.split_off(0) } else { Vec::new() };
        let edited = self.rewritten(&subject, Side::Response, context)?;
        if edited.text != subject.text {
            answer.message.set_text(edited.text);
        }
        answer.message.tool_calls = if keeps_calls { kept } else { edited.calls };
        if answer.message.tool_calls.is_empty() && !subject.calls.is_empty() && answer.finish_reason.is_some() {
            answer.finish_reason = Some(Answer::STOPPED.to_owned());
        }
        Ok(())
    }

    fn questions(&self) -> u32 {
        self.tries.get().min(TRIES_LIMIT)
    }

    fn is_instructed(&self) -> bool {
        !self.is_mast()
    }

    fn check(&self, side: Side) -> Result<(), String> {
        if self.instruction.trim().is_empty() {
            return Err("`instruction` is empty: expected `mast` or an instruction".to_owned());
        }
        if self.tries.get() > TRIES_LIMIT {
            return Err(format!("`tries` is {}: expected 1 to {TRIES_LIMIT}", self.tries));
        }
        if side == Side::Response && self.message != InstructionTarget::Last {
            return Err("`message` chooses among the messages of a request: leave it out on the response side".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let how = if self.is_mast() {
            "so that it shows the failure mode".to_owned()
        } else {
            format!("by the instruction {}", quoted(&self.instruction))
        };
        let wrong = if self.wrong_answer { ", with a wrong final answer" } else { "" };
        format!("lets a model rewrite it {how}{wrong} (asked at most {} times)", self.tries)
    }
}

impl RewriteWithModel {
    fn is_mast(&self) -> bool {
        self.instruction == "mast"
    }

    /// Whether the failure mode can be at this call at all, so that no model is asked in vain. Who gives an instruction of their own
    /// knows what it is for.
    fn applies(&self, side: Side, answer: Option<&Answer>, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let Some(mode) = context.adaptive.failure_mode.filter(|_| self.is_mast()) else { return Ok(()) };
        let call = ObservedCall {
            agent: context.agent,
            request: Some(context.conversation),
            answer,
            earlier: context.earlier,
            later: None,
        };
        match mode::unmet(mode, side, &call) {
            Some(unmet) => not_applicable(format!("{} cannot be at this call: {}", mode.code(), unmet.missing())),
            None => Ok(()),
        }
    }

    /// The message that is rewritten. What a tool said is no agent's error.
    fn target<'a>(&self, conversation: &'a mut Conversation) -> Option<&'a mut Message> {
        let wanted = |message: &Message| match self.message {
            InstructionTarget::System => matches!(message.role, Role::System | Role::Developer),
            InstructionTarget::User => message.role == Role::User,
            InstructionTarget::Last => message.role != Role::Tool,
        };
        let has_text = |message: &Message| !message.text().trim().is_empty();
        conversation.messages.iter_mut().rev().find(|message| wanted(message) && has_text(message))
    }

    /// The first usable answer of the model; asks until there is one, or too many were of no use.
    fn rewritten(
        &self,
        subject: &Subject,
        side: Side,
        context: &Context<'_>,
    ) -> Result<EditedMessage, ManipulatorError> {
        let mut question = self.question(subject, side, context)?;
        loop {
            let Some(said) = context.adaptive.answer_to(&question) else {
                return Err(ManipulatorError::Ask(Box::new(question)));
            };
            let why = match examine::examine(said, subject, &question, context) {
                Ok(RewriterAnswer::Edited(edited)) => return Ok(edited),
                Ok(RewriterAnswer::DoesNotApply(why)) => return Err(ManipulatorError::Declined { why }),
                Err(why) => why,
            };
            let said = said.to_owned();
            question.refused.push((said, why.clone()));
            if question.refused.len() >= self.tries.get().min(TRIES_LIMIT) as usize {
                return Err(ManipulatorError::Unusable { tries: question.refused.len(), why });
            }
        }
    }

    fn question(&self, subject: &Subject, side: Side, context: &Context<'_>) -> Result<Question, ManipulatorError> {
        let task = context.adaptive.task.map(str::to_owned);
        let task = task.or_else(|| context.conversation.first_user().map(Message::text)).unwrap_or_default();
        let kind = self.kind.unwrap_or_else(|| TaskKind::from_text(&task));
        let order = self.order(kind, side, context)?;
        Ok(Question {
            template: order.template,
            system: prompt::SYSTEM.to_owned(),
            user: prompt::user(&prompt::RewriteCase { order: &order.text, kind, side, task: &task, subject, context }),
            refused: Vec::new(),
            schema: answer_schema(!subject.calls.is_empty()),
            max_tokens: subject.max_tokens(),
        })
    }

    /// What the model is to do, and what that was made from.
    fn order(&self, kind: TaskKind, side: Side, context: &Context<'_>) -> Result<RewriteOrder, ManipulatorError> {
        let wrong = if self.wrong_answer { "\nThe final answer that results is to be wrong." } else { "" };
        if !self.is_mast() {
            return Ok(RewriteOrder { template: "own".to_owned(), text: format!("{}{wrong}", self.instruction) });
        }
        let Some(mode) = context.adaptive.failure_mode else {
            return not_applicable("`instruction = \"mast\"` needs the injection's failure mode");
        };
        let own = context.adaptive.templates.and_then(|templates| templates.find(mode, side));
        let Some(template) = own.or_else(|| Templates::shipped().find(mode, side)) else {
            return not_applicable(format!("there is no template of {} for this side", mode.code()));
        };
        Ok(RewriteOrder { template: template.name(kind), text: format!("{}{wrong}", template.order(kind)) })
    }
}

/// What the model is to do.
struct RewriteOrder {
    template: String,
    text: String,
}

fn word(target: InstructionTarget) -> &'static str {
    match target {
        InstructionTarget::System => "system prompt",
        InstructionTarget::User => "user message",
        InstructionTarget::Last => "message",
    }
}
