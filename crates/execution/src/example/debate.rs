//! Three debaters answer, read each other and answer again; a judge takes the majority.

use std::io::Write;

use super::{
    ExampleError,
    chat::{Agent, Chat, Model, answer_line},
};

pub(super) static DEBATERS: [Agent; 3] = [
    Agent {
        name: "ada",
        prompt: "You are Ada, an accountant in a debate. Solve the word problem, weigh what the others say, and end \
                 with a line `ANSWER: <number>`.",
    },
    Agent {
        name: "blaise",
        prompt: "You are Blaise, an engineer in a debate. Solve the word problem, weigh what the others say, and end \
                 with a line `ANSWER: <number>`.",
    },
    Agent {
        name: "carl",
        prompt: "You are Carl, a teacher in a debate. Solve the word problem, weigh what the others say, and end with \
                 a line `ANSWER: <number>`.",
    },
];
pub(super) const JUDGE: Agent = Agent {
    name: "judge",
    prompt: "You are the judge of a debate. Take the answer that most debaters give and end with a line `ANSWER: \
             <number>`.",
};

/// How often each debater speaks.
const ROUNDS: usize = 2;

/// The judge's answer.
pub(super) async fn solve(
    model: &impl Model,
    task: &str,
    talk: &mut (dyn Write + Send),
) -> Result<Option<String>, ExampleError> {
    let mut chats: Vec<Chat> = DEBATERS.iter().map(Chat::new).collect();
    let mut opinions: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let mut spoken = Vec::new();
        for (debater, chat) in chats.iter_mut().enumerate() {
            let text = if round == 0 {
                format!("Problem: {task}")
            } else {
                let others = opinions_of(&opinions, Some(debater));
                format!("The other debaters say:\n\n{others}\n\nGive your final answer.")
            };
            spoken.push(chat.say(model, text, talk).await?);
        }
        opinions = spoken;
    }
    let verdict = format!("Problem: {task}\n\n{}\n\nWhich answer do most give?", opinions_of(&opinions, None));
    Ok(answer_line(&Chat::new(&JUDGE).say(model, verdict, talk).await?))
}

/// The opinions with their speakers' names, without one's own.
fn opinions_of(opinions: &[String], without: Option<usize>) -> String {
    let named = DEBATERS.iter().zip(opinions).enumerate().filter(|(number, _)| Some(*number) != without);
    let quotes = named.map(|(_, (debater, opinion))| format!("Debater {}:\n{opinion}", debater.name));
    quotes.collect::<Vec<_>>().join("\n\n")
}
