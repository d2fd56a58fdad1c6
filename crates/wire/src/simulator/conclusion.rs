//! What the simulator concludes: its answer, from tool results, peers, plans and the task, in the order in which a
//! model would trust them.

use super::{
    duty::Duty,
    function,
    language::{number_text, with_blanks_alike},
    plan,
    problem::{Operand, SolutionStep, solution},
    reading::{ReadConversation, SpokenBy},
    stated,
    tool_name::is_hand_off,
};

/// An answer and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conclusion {
    /// The answer: a number, a choice letter, `True` or `False`, a block of code.
    pub(super) answer: String,
    /// The way to it, one statement a line.
    pub(super) lines: Vec<String>,
}

impl Conclusion {
    fn new(answer: impl Into<String>, lines: Vec<String>) -> Self {
        Self { answer: answer.into(), lines }
    }
}

/// A verdict on somebody's answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerJudgement {
    /// Whether it is let pass.
    pub(super) holds: bool,
    /// The answer that was judged, if one was stated.
    pub(super) judged: Option<String>,
    /// What the checker got itself, where it says so.
    pub(super) own: Option<String>,
    /// One or two sentences.
    pub(super) reason: String,
}

impl ReadConversation<'_> {
    /// The answer, as far as this conversation gives one.
    pub(super) fn conclusion(&self) -> Option<Conclusion> {
        match self.duty {
            Duty::Judge => self.by_vote().or_else(|| self.own_solution()),
            Duty::Report | Duty::Supervise => self.repeated().or_else(|| self.own_solution()),
            Duty::Check => {
                let judgement = self.judgement()?;
                let answer = if judgement.holds { judgement.judged } else { judgement.own };
                Some(Conclusion::new(answer?, vec![judgement.reason]))
            }
            _ => self.by_tool().or_else(|| self.revised()).or_else(|| self.own_solution()).or_else(|| self.repeated()),
        }
    }

    /// A result that a calculator has just given, taken as it is.
    fn by_tool(&self) -> Option<Conclusion> {
        let results = self.fresh_results();
        let (call, result) = results.iter().rev().find(|(call, _)| !is_hand_off(&call.name))?;
        let value = stated::last_number(result)?;
        let value = stated::answer(result).unwrap_or_else(|| number_text(value));
        Some(Conclusion::new(value.clone(), vec![format!("The {} gives {value}.", call.name)]))
    }

    /// The own earlier answer in the light of what was said since.
    fn revised(&self) -> Option<Conclusion> {
        let own_at = self.last_own()?;
        let own = stated::answer(&self.spoken.get(own_at)?.text)?;
        let since: Vec<&str> = self
            .spoken
            .iter()
            .skip(own_at + 1)
            .filter(|s| !self.is_own(s))
            .map(|s| self.without_task(&s.text))
            .collect();
        if self.orders.alone {
            return Some(unchanged(&own));
        }
        if let Some(objection) = since.iter().rev().find(|text| stated::objects(text)) {
            match stated::correction(objection) {
                Some(same) if same == own => return Some(unchanged(&own)),
                Some(other) => {
                    let line = format!("I accept the objection: {} instead of {}.", called(&other), called(&own));
                    return Some(Conclusion::new(other, vec![line]));
                }
                None => {}
            }
            return self.own_solution();
        }
        let peers: Vec<String> = since.iter().flat_map(|text| opinions_of(text)).collect();
        Some(among_peers(&own, &peers))
    }

    /// A solution of its own: by the plan that it was given, else by the task.
    pub(super) fn own_solution(&self) -> Option<Conclusion> {
        let steps = self.steps();
        if let Some(mut steps) = steps.filter(|steps| !steps.is_empty()) {
            if self.orders.skip_last && steps.len() > 1 {
                steps.pop();
            }
            return carried_out(
                &steps,
                self.task.as_ref().and_then(|task| (task.answer.parse::<f64>().is_err()).then(|| task.answer.clone())),
            );
        }
        let task = self.task.as_ref()?;
        let line = format!("{} = {}", task.solution.unit, task.answer);
        let lines = if task.solution.unit.contains(|c: char| c.is_ascii_digit()) { vec![line] } else { Vec::new() };
        Some(Conclusion::new(task.answer.clone(), lines))
    }

    /// The steps to carry out: those of the last plan, unless somebody has objected since; else those of the task.
    pub(super) fn steps(&self) -> Option<Vec<SolutionStep>> {
        let planned = self.plan().filter(|(at, _)| !self.orders.no_plan && !self.objected_since(*at));
        match (planned, &self.task) {
            (Some((_, steps)), _) if solution::run(&steps).is_some() => Some(steps),
            (_, Some(task)) => Some(task.solution.steps.clone()),
            _ => None,
        }
    }

    /// The last plan that can be carried out, and where it stands.
    fn plan(&self) -> Option<(usize, Vec<SolutionStep>)> {
        let places = self.spoken.iter().enumerate().rev().filter(|(_, s)| !matches!(s.who, SpokenBy::Tool(_)));
        let found = places.filter_map(|(at, s)| Some((at, s, plan::read(self.without_task(&s.text))?)));
        found
            .filter(|(_, s, _)| stated::answer(self.without_task(&s.text)).is_none())
            .map(|(at, _, steps)| (at, steps))
            .next()
    }

    /// Whether somebody objected after this place.
    pub(super) fn objected_since(&self, place: usize) -> bool {
        self.spoken.iter().skip(place + 1).any(|s| !self.is_own(s) && stated::objects(self.without_task(&s.text)))
    }

    /// The answer that was stated last, passed on as it is.
    pub(super) fn repeated(&self) -> Option<Conclusion> {
        let (_, answer) = self.last_stated()?;
        Some(Conclusion::new(answer, Vec::new()))
    }

    /// The answer of most; without a majority the first.
    fn by_vote(&self) -> Option<Conclusion> {
        let votes: Vec<String> = self.spoken.iter().flat_map(|s| opinions_of(self.without_task(&s.text))).collect();
        let votes = if votes.is_empty() { stated::opinions(&self.prompt) } else { votes };
        let (winner, count) = majority(&votes)?;
        let line = format!("{count} of {} answers say {}.", votes.len(), called(&winner));
        Some(Conclusion::new(winner, vec![line]))
    }

    /// The verdict on the answer that others stated last. A wrong answer is caught or let pass by a draw over the
    /// answer's own words, so that words that say the same are always judged the same.
    pub(super) fn judgement(&self) -> Option<AnswerJudgement> {
        let mut others = self.spoken.iter().rev().filter(|s| !self.is_own(s));
        let statement = |s: &super::reading::SpokenMessage| {
            let text = self.without_task(&s.text);
            stated::answer(text).map(|answer| (answer, text.to_owned()))
        };
        let judged = others.find_map(statement);
        let truth = self.task.as_ref().map(|task| task.answer.clone());
        let (answer, text) = match (judged, &truth) {
            (Some(judged), _) => judged,
            (None, None) => return None,
            (None, Some(_)) if self.orders.unchecked => (String::new(), String::new()),
            (None, Some(own)) => {
                let reason = format!("No answer is stated. {}", should_be(own));
                return Some(AnswerJudgement { holds: false, judged: None, own: truth, reason });
            }
        };
        let right = truth.as_ref().is_none_or(|truth| *truth == answer);
        let task = self.task.as_ref().map(|task| task.text.clone()).unwrap_or_default();
        let caught = !right
            && !self.orders.unchecked
            && self.draw(&["check", &understood(&text), &with_blanks_alike(task.trim_end())], 2) == 0;
        if caught {
            let own = truth.clone().unwrap_or_default();
            let computed = self.task.as_ref().filter(|task| !task.wants_code());
            let way = computed.map(|task| task.solution.expression()).filter(|way| *way != own);
            let way = way.map(|way| format!("{way} = {own}. ")).unwrap_or_default();
            let reason = format!("{} does not hold. {way}{}", called(&answer), should_be(&own));
            return Some(AnswerJudgement { holds: false, judged: Some(answer), own: truth, reason });
        }
        let reason = if self.orders.unchecked {
            "Taken as it is.".to_owned()
        } else {
            "I went through the steps and the result holds.".to_owned()
        };
        Some(AnswerJudgement { holds: true, judged: (!answer.is_empty()).then_some(answer), own: None, reason })
    }
}

/// Most words of a last paragraph that states nothing.
const COURTESY: usize = 8;

/// A text as a reader takes it: blanks and a last short paragraph without a figure ("Thank you.") say nothing. So a neutral
/// change of a request moves no draw.
fn understood(text: &str) -> String {
    let text = text.trim_end();
    let says_nothing =
        |last: &str| last.split_whitespace().count() <= COURTESY && !last.contains(|c: char| c.is_numeric());
    let said = match text.rsplit_once("\n\n") {
        Some((before, last)) if says_nothing(last) => before.trim_end(),
        _ => text,
    };
    with_blanks_alike(said)
}

/// The opinions in one message: several where it quotes several, else its last statement.
pub(super) fn opinions_of(text: &str) -> Vec<String> {
    let several = stated::opinions(text);
    if several.is_empty() { stated::answer(text).into_iter().collect() } else { several }
}

/// A debater's second thought: it follows a majority of all; it keeps its answer where a peer shares it or only one
/// peer speaks; standing alone among peers that differ, it gives way to the first.
fn among_peers(own: &str, peers: &[String]) -> Conclusion {
    let mut votes = vec![own.to_owned()];
    votes.extend(peers.iter().cloned());
    match majority(&votes) {
        Some((winner, count)) if count * 2 > votes.len() && winner != own => Conclusion::new(
            winner.clone(),
            vec![format!("{count} of {} answers say {}: I follow them.", votes.len(), called(&winner))],
        ),
        Some(_) if peers.len() < 2 || peers.iter().any(|peer| peer == own) => unchanged(own),
        _ => match peers.first() {
            Some(first) => {
                let line = format!("Nobody shares my {}: I take {}.", called(own), called(first));
                Conclusion::new(first.clone(), vec![line])
            }
            None => unchanged(own),
        },
    }
}

/// What an objection asks for.
fn should_be(answer: &str) -> String {
    if function::is_code(answer) {
        format!("The function should be this:\n{answer}")
    } else {
        format!("The answer should be {answer}.")
    }
}

/// An answer within a sentence.
fn called(answer: &str) -> &str {
    if function::is_code(answer) { "this code" } else { answer }
}

fn unchanged(own: &str) -> Conclusion {
    Conclusion::new(own, vec![format!("I keep my answer: {}.", called(own))])
}

/// The vote that most share, the first of equals, and how many share it.
fn majority(votes: &[String]) -> Option<(String, usize)> {
    let mut best: Option<(String, usize)> = None;
    for vote in votes {
        let count = votes.iter().filter(|other| *other == vote).count();
        if best.as_ref().is_none_or(|(_, most)| count > *most) {
            best = Some((vote.clone(), count));
        }
    }
    best
}

/// Carries steps out, and says so.
fn carried_out(steps: &[SolutionStep], answer: Option<String>) -> Option<Conclusion> {
    let results = solution::run(steps)?;
    let value = |operand| match operand {
        Operand::Number(value) => value,
        Operand::Result(at) => results.get(at).copied().unwrap_or_default(),
    };
    let line = |(at, step): (usize, &SolutionStep)| {
        let result = results.get(at).copied().unwrap_or_default();
        let (left, right) = (number_text(value(step.left)), number_text(value(step.right)));
        let what = if step.what.is_empty() { String::new() } else { format!(" ({})", step.what) };
        format!("Step {}: {left} {} {right} = {}{what}.", at + 1, step.operation.sign(), number_text(result))
    };
    let lines = steps.iter().enumerate().map(line).collect();
    let answer = answer.or_else(|| results.last().map(|last| number_text(*last)))?;
    Some(Conclusion::new(answer, lines))
}
