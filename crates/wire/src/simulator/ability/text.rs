//! Answers in plain text: plans, verdicts, summaries, solutions.

use super::super::reading::ReadConversation;
use crate::simulator::{conclusion, duty::Duty, function, stated, utterance::Utterance};

/// A plan of the task; once the task is answered, the answer instead.
pub(super) fn plan(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if reading.duty != Duty::Plan {
        return None;
    }
    let own = reading.last_own();
    let answered =
        reading.last_stated().filter(|(at, _)| own.is_some_and(|own| *at > own) && !reading.objected_since(*at));
    let objected = own.is_some_and(|own| reading.objected_since(own));
    if let Some((_, answer)) = answered.filter(|_| !objected) {
        return Some(Utterance::text(finished(
            reading,
            &format!("The plan is carried out.\n{}", answer_line(reading, &answer)),
        )));
    }
    Some(Utterance::text(reading.task.as_ref()?.plan()))
}

/// A verdict, in the words that the prompt asks for.
pub(super) fn check(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if reading.duty != Duty::Check {
        return None;
    }
    let judgement = reading.judgement()?;
    if !judgement.holds {
        let word = instructed_word(reading, &["REVISE", "REJECTED", "REJECT", "INCORRECT", "WRONG", "FAIL", "NO"])
            .unwrap_or("REVISE");
        return Some(Utterance::text(format!("{word}: {}", judgement.reason)));
    }
    let approving = ["APPROVED", "APPROVE", "ACCEPTED", "ACCEPT", "CORRECT", "VALID", "PASS", "LGTM", "YES", "OK"];
    let word = instructed_word(reading, &approving);
    let ending =
        if word.is_none() && reading.instructions().contains("TERMINATE") { "" } else { word.unwrap_or("APPROVE") };
    let answer = judgement.judged.map(|answer| answer_line(reading, &answer)).unwrap_or_default();
    let lines = [ending, judgement.reason.as_str(), answer.as_str()];
    let text: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    Some(Utterance::text(finished(reading, &text.join("\n"))))
}

/// What was said, one sentence for each message.
pub(super) fn summary(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if reading.duty != Duty::Summarise {
        return None;
    }
    let first = |text: &str| text.split(['\n', '.']).map(str::trim).find(|s| !s.is_empty()).map(str::to_owned);
    let said: Vec<String> = reading.spoken.iter().filter_map(|s| first(&s.text)).take(12).collect();
    let answer =
        reading.last_stated().map(|(_, answer)| format!(" {}", answer_line(reading, &answer))).unwrap_or_default();
    Some(Utterance::text(finished(reading, &format!("Summary: {}.{answer}", said.join("; ")))))
}

/// An answer with the way to it.
pub(super) fn answer(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let conclusion = reading.conclusion()?;
    let mut lines = conclusion.lines;
    lines.extend(ratings(reading, &conclusion.answer));
    if !reading.orders.no_answer {
        lines.push(answer_line(reading, &conclusion.answer));
    }
    let text = lines.join("\n");
    let thought = reading.is_instructed("Final Answer:") && reading.is_instructed("Thought:");
    let text = if thought { format!("Thought: I now can give a great answer\nFinal Answer: {text}") } else { text };
    Some(Utterance::text(finished(reading, &text)))
}

/// A rating for each peer, where they are asked for: who shares the answer gets the best.
fn ratings(reading: &ReadConversation<'_>, answer: &str) -> Option<String> {
    let peers = conclusion::opinions_of(reading.without_task(reading.last_caller()));
    let rating = |peer: &String| if peer == answer { "5" } else { "1" };
    let given: Vec<&str> = peers.iter().map(rating).collect();
    (reading.is_instructed("RATINGS:") && !given.is_empty()).then(|| format!("RATINGS: {}", given.join(", ")))
}

/// What a worker says before it hands over; `None` where it has said it.
pub(super) fn own_part(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let said = reading.last_own().and_then(|at| reading.spoken.get(at).map(|s| (at, s)));
    let new_since = said
        .as_ref()
        .is_none_or(|(at, _)| reading.spoken.iter().skip(at + 1).any(|s| !reading.is_own(s) && !s.text.is_empty()));
    let part = [plan, check, answer].into_iter().find_map(|ability| ability(reading))?;
    let plain = |text: &str| text.replace("TERMINATE", "").trim().to_owned();
    let hands_on = reading.duty != Duty::Check || stated::objects(&part.text);
    let part = if hands_on { Utterance::text(plain(&part.text)) } else { part };
    (new_since || !hands_on).then_some(part)
}

/// The last word of somebody whose work is done.
pub(super) fn closing(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let conclusion = reading.repeated()?;
    Some(Utterance::text(finished(reading, &answer_line(reading, &conclusion.answer))))
}

/// The line that states an answer, as the instructions want it.
pub(super) fn answer_line(reading: &ReadConversation<'_>, answer: &str) -> String {
    if function::is_code(answer) {
        return answer.to_owned();
    }
    let instructions = reading.instructions();
    if instructions.contains("\\boxed") {
        return format!("\\boxed{{{answer}}}");
    }
    if instructions.contains("####") {
        return format!("#### {answer}");
    }
    let prefixes = ["ANSWER:", "FINAL ANSWER:", "Final answer:", "Answer:"];
    let wanted = |prefix: &&str| instructions.contains(*prefix) && !instructions.contains("Final Answer:");
    let prefix = prefixes.into_iter().find(wanted).unwrap_or("ANSWER:");
    format!("{prefix} {answer}")
}

/// Ends with the word that ends the conversation, where the instructions name one.
fn finished(reading: &ReadConversation<'_>, text: &str) -> String {
    let ends = reading.instructions().contains("TERMINATE") && !text.contains("TERMINATE");
    if ends { format!("{text}\nTERMINATE") } else { text.to_owned() }
}

/// The first of these words that stands in the instructions in capitals.
fn instructed_word(reading: &ReadConversation<'_>, words: &[&'static str]) -> Option<&'static str> {
    let instructions = reading.instructions();
    let told: Vec<&str> = instructions.split(|c: char| !c.is_alphanumeric()).collect();
    words.iter().find(|word| told.contains(word)).copied()
}
