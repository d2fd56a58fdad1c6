//! What an edit may not touch where it is to show a mode.

use super::is_about_calls;
use crate::{
    surface::{self, Answer, Conversation, Message, Role, ToolCall, door},
    trajectory::{FailureMode, Side, Step},
};

/// What was edited and is nobody's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfBounds {
    /// A tool call, its arguments or its id, under a mode that is not about calls.
    ToolCall,
    /// What a tool said: no agent made that error.
    ToolResult,
}

impl OutOfBounds {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ToolCall, Self::ToolResult];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolCall => "tool-call",
            Self::ToolResult => "tool-result",
        }
    }

    /// What is wrong with the edit, as a clause.
    pub fn wrong(self) -> &'static str {
        match self {
            Self::ToolCall => "the edit changes a tool call, and the mode is not about calls",
            Self::ToolResult => "the edit changes what a tool said, which no agent did",
        }
    }
}

/// What one side of a step was edited from and to.
#[derive(Debug, Clone, Copy)]
pub enum EditedPair<'a> {
    /// A request.
    Request(&'a Conversation, &'a Conversation),
    /// A reply.
    Answer(&'a Answer, &'a Answer),
}

/// What an edit touched that the mode leaves alone; `None` where it kept to words. What was taken out whole was not changed.
pub fn out_of_bounds(mode: FailureMode, edit: &EditedPair<'_>) -> Option<OutOfBounds> {
    let (before, after): (Vec<&Message>, Vec<&Message>) = match edit {
        EditedPair::Request(before, after) => (before.messages.iter().collect(), after.messages.iter().collect()),
        EditedPair::Answer(before, after) => (vec![&before.message], vec![&after.message]),
    };
    let calls =
        |messages: &[&Message]| messages.iter().flat_map(|message| message.tool_calls.clone()).collect::<Vec<_>>();
    let (calls_before, calls_after) = (calls(&before), calls(&after));
    let is_new = |call: &&ToolCall| !calls_before.iter().any(|old| is_same_call(old, call));
    if !is_about_calls(mode) && calls_after.iter().any(|call| is_new(&call)) {
        return Some(OutOfBounds::ToolCall);
    }
    let results = |messages: &[&Message]| -> Vec<(Option<String>, String)> {
        let results = messages.iter().filter(|message| message.role == Role::Tool);
        results.map(|message| (message.answers_call.clone(), message.text())).collect()
    };
    let known = results(&before);
    results(&after).iter().any(|result| !known.contains(result)).then_some(OutOfBounds::ToolResult)
}

/// The same of what one side of a recorded step was edited from and to, where both are read.
pub fn touched(step: &Step, mode: FailureMode, side: Side) -> Option<OutOfBounds> {
    let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())?;
    match side {
        Side::Request => {
            let [before, after] =
                [&step.request, step.request_sent.as_ref()?].map(|body| door::request(surface, body).ok());
            out_of_bounds(mode, &EditedPair::Request(&before?, &after?))
        }
        Side::Response => {
            let attempt = step.last_attempt()?;
            let answer = |body| door::reply(surface, body, attempt.streamed).ok()?.answers.into_iter().next();
            out_of_bounds(mode, &EditedPair::Answer(&answer(&attempt.reply)?, &answer(attempt.delivered())?))
        }
    }
}

fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.id == other.id && one.name == other.name && one.arguments == other.arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::sample;

    fn calling(arguments: &str) -> Answer {
        let call =
            ToolCall { id: "c1".to_owned(), name: "price".to_owned(), arguments: arguments.to_owned(), origin: None };
        let message = Message { tool_calls: vec![call], ..Message::text_of(Role::Assistant, "I look it up.") };
        Answer { index: 0, message, finish_reason: None }
    }

    #[test]
    fn calls_are_for_modes_about_calls_and_results_for_none() {
        let (before, after) = (calling("{\"item\":\"clock\"}"), calling("{\"item\":\"chair\"}"));
        let mut silent = before.clone();
        silent.message.tool_calls.clear();
        let result = |text: &str| {
            let message = Message { answers_call: Some("c1".to_owned()), ..Message::text_of(Role::Tool, text) };
            Conversation { messages: vec![message], ..Conversation::default() }
        };
        let (twelve, twenty) = (result("12"), result("20"));
        let none = Conversation::default();
        for (mode, edit, expected) in [
            (FailureMode::FailToAskForClarification, EditedPair::Answer(&before, &after), Some(OutOfBounds::ToolCall)),
            (FailureMode::ReasoningActionMismatch, EditedPair::Answer(&before, &after), None),
            (FailureMode::PrematureTermination, EditedPair::Answer(&before, &silent), None),
            (
                FailureMode::DisobeyTaskSpecification,
                EditedPair::Request(&twelve, &twenty),
                Some(OutOfBounds::ToolResult),
            ),
            (
                FailureMode::ReasoningActionMismatch,
                EditedPair::Request(&twelve, &twenty),
                Some(OutOfBounds::ToolResult),
            ),
            (FailureMode::LossOfConversationHistory, EditedPair::Request(&twelve, &none), None),
        ] {
            assert_eq!(out_of_bounds(mode, &edit), expected, "{} {edit:?}", mode.code());
        }
    }

    #[test]
    fn a_call_that_stands_as_it_was_is_not_touched() {
        let before = calling("{\"item\":\"clock\"}");
        let touched = |change: fn(&mut Answer)| {
            let mut after = before.clone();
            change(&mut after);
            out_of_bounds(FailureMode::FailToAskForClarification, &EditedPair::Answer(&before, &after))
        };
        assert_eq!(touched(|after| after.message.set_text("I guess it.")), None);
        for change in [
            |after: &mut Answer| after.message.tool_calls[0].id = "c2".to_owned(),
            |after: &mut Answer| after.message.tool_calls[0].name = "cost".to_owned(),
            |after: &mut Answer| after.message.tool_calls[0].arguments = "{}".to_owned(),
        ] {
            assert_eq!(touched(change), Some(OutOfBounds::ToolCall));
        }
    }

    #[test]
    fn what_a_recorded_edit_touched_is_read_from_both_sides() {
        let reply = |arguments: &str| {
            let call = serde_json::json!({"id": "c1", "type": "function", "function": {"name": "price", "arguments": arguments}});
            let message = serde_json::json!({"role": "assistant", "content": "I look.", "tool_calls": [call]});
            let choice = serde_json::json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
            bytes::Bytes::from(serde_json::json!({"id": "r", "model": "m", "choices": [choice]}).to_string())
        };
        let request = |result: &str| {
            let call =
                serde_json::json!({"id": "c0", "type": "function", "function": {"name": "price", "arguments": "{}"}});
            let messages = serde_json::json!([{"role": "user", "content": "Add."}, {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c0", "content": result}]);
            bytes::Bytes::from(serde_json::json!({"model": "m", "messages": messages}).to_string())
        };
        let mut step = sample::step(&[], &[(sample::DONE, 200)]);
        (step.request, step.attempts[0].reply) = (request("12"), reply("{\"item\":1}"));
        let mode = FailureMode::FailToAskForClarification;
        assert_eq!([Side::Request, Side::Response].map(|side| touched(&step, mode, side)), [None, None]);
        step.request_sent = Some(request("20"));
        step.attempts[0].reply_delivered = Some(reply("{\"item\":2}"));
        let sides = [Side::Request, Side::Response].map(|side| touched(&step, mode, side));
        assert_eq!(sides, [Some(OutOfBounds::ToolResult), Some(OutOfBounds::ToolCall)]);
        assert_eq!(touched(&step, FailureMode::ReasoningActionMismatch, Side::Response), None);
    }
}
