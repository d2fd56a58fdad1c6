//! Any other tool: called once when the prompt speaks of it, when it must be, or when there is nothing else to go by.

use super::{super::reading::ReadConversation, calculator, structured};
use crate::{
    simulator::{tool_name::is_hand_off, utterance::Utterance},
    surface::{Tool, ToolChoice},
};

/// Calls a tool that has not been called since the caller last spoke.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let choice = &reading.conversation.tool_choice;
    if *choice == ToolChoice::None {
        return None;
    }
    let fresh = reading.fresh_results();
    let prompt = reading.instructions().to_lowercase();
    let wanted = |tool: &&Tool| match choice {
        ToolChoice::Named(name) => *name == tool.name,
        ToolChoice::Required => !is_hand_off(&tool.name),
        _ => {
            let new = !fresh.iter().any(|(call, _)| call.name == tool.name);
            let plain = !is_hand_off(&tool.name) && !calculator::is_calculator(tool);
            let spoken_of = prompt.contains(&tool.name.to_lowercase())
                || prompt.contains("your tool")
                || prompt.contains("using tools");
            plain && new && fresh.is_empty() && (spoken_of || reading.task.is_none())
        }
    };
    let tool = reading.conversation.tools.iter().find(wanted)?;
    let asks_question = tool.name.contains("question");
    if asks_question && *choice == ToolChoice::Auto {
        return None;
    }
    Some(Utterance::call(&tool.name, structured::arguments(reading, &tool.parameters, &[])))
}
