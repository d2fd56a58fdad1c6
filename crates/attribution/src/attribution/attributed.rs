//! One row: what a method says of a run, and what that took. [`crate::score`] reads it.

use serde::Serialize;

use super::{
    Draw, LogJudge,
    methods::{
        Abstention, COMBINED, Cuts, Dialogue, JudgeQuestion, JudgeReply, LoggedRun, Method, MethodAnswer, Pause,
        PredictedStep, StepInterval, View, combined, voted,
    },
};
use crate::{execution::ExecutionError, trajectory::Usage};

/// Most questions of one dialogue; a run of a thousand steps has as many.
const QUESTIONS_MAX: usize = 10_000;

/// What a method says of a run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Attributed {
    /// The run.
    pub id: String,
    /// The method.
    pub method: String,
    /// The judge, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The judge by its backend's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// Whether judges knew the right answer.
    pub gold: bool,
    /// Whose script's prompts and reading these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<&'static str>,
    /// The likeliest first; empty where the method abstained, or says in a set that nobody erred.
    pub predictions: Vec<PredictedStep>,
    /// Whether all of them are meant: an answer that is a set. Else they are alternatives.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub set: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abstained: Option<Abstention>,
    /// Between which steps the true one lies, where the method was calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<StepInterval>,
    /// Votes that were cast, and how many of them said something, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub votes: Option<[u32; 2]>,
    /// Questions, whether they were answered live or from the cassette.
    pub calls: u64,
    /// Tokens of questions.
    pub tokens_in: u64,
    /// Tokens of answers.
    pub tokens_out: u64,
    /// What they cost at the prices given, whoever paid for them and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What was cut from the log to make it fit.
    #[serde(skip_serializing_if = "is_uncut")]
    pub cuts: Cuts,
    /// Hash of all questions, in order.
    pub digest: String,
}

fn is_uncut(cuts: &Cuts) -> bool {
    *cuts == Cuts::default()
}

/// How methods are driven.
#[derive(Debug, Clone, Copy)]
pub struct DriverSettings {
    /// Dialogues of each method that asks a judge.
    pub votes: u32,
    /// Whether tokens have a price.
    pub priced: bool,
}

/// What a dialogue would take at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Foreseen {
    /// Questions, without repairs of answers that cannot be read.
    pub calls: u64,
    /// Bytes of the questions; a token has three to four.
    pub bytes: u64,
    /// Tokens of the longest answers.
    pub answers: u64,
}

impl Foreseen {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { calls: self.calls + other.calls, bytes: self.bytes + other.bytes, answers: self.answers + other.answers }
    }
}

/// Has a method attribute a run, asking the judge whatever it wants to know.
///
/// # Errors
/// [`ExecutionError`] when a question cannot be recorded.
pub async fn attribute(
    method: &dyn Method,
    run: &LoggedRun,
    view: View<'_>,
    judge: Option<&LogJudge>,
    driving: DriverSettings,
) -> Result<Attributed, ExecutionError> {
    let mut tally = QuestionTally::default();
    let asks = method.needs() == super::methods::Needs::Model;
    let votes = if asks { driving.votes.max(1) } else { 1 };
    let published = method.published().or(view.compat.then_some("whowhen"));
    let (mut cast, mut abstained) = (Vec::new(), None);
    for vote in 0..votes {
        let draw = match (published.is_some(), votes) {
            (true, 1) => Draw::Open,
            (false, 1) => Draw::Only,
            (_, _) => Draw::Vote(vote),
        };
        let pose = |dialogue: &mut Dialogue<'_>| method.answer(run, view, dialogue);
        match converse(pose, judge.map(|judge| (judge, draw)), &mut tally).await? {
            Ok(found) => cast.push(found),
            Err(why) => abstained = abstained.or(Some(why)),
        }
    }
    let several = votes > 1;
    let answered = u32::try_from(cast.len()).unwrap_or(u32::MAX);
    let answer = if several { voted(&cast, votes) } else { cast.pop() };
    let set = matches!(answer, Some(MethodAnswer::Set(_)));
    let predictions = answer.map(|answer| answer.steps().to_vec()).unwrap_or_default();
    let judge = judge.filter(|_| asks);
    let cost = judge.filter(|_| driving.priced).map(|judge| judge.price(tally.usage));
    Ok(Attributed {
        id: run.id.clone(),
        method: method.name().to_owned(),
        model: judge.map(|judge| judge.model().to_owned()),
        served_model: tally.served,
        gold: run.gold.is_some(),
        compat: published,
        abstained: abstained.filter(|_| predictions.is_empty() && !set),
        predictions,
        set,
        interval: None,
        votes: several.then_some([votes, answered]),
        calls: tally.calls,
        tokens_in: tally.usage.input,
        tokens_out: tally.usage.output,
        cost,
        cuts: tally.cuts,
        digest: tally.questions.finalize().to_hex().chars().take(32).collect(),
    })
}

/// The rows of several methods about one run as one more row, which asked nothing itself.
pub fn combine(run: &LoggedRun, rows: &[Attributed]) -> Attributed {
    let said: Vec<(&str, &[PredictedStep])> =
        rows.iter().map(|row| (row.method.as_str(), row.predictions.as_slice())).collect();
    let predictions = combined(run, &said);
    let why = || Abstention::NothingFound("no method named a step".to_owned());
    Attributed {
        id: run.id.clone(),
        method: COMBINED.to_owned(),
        model: None,
        served_model: None,
        gold: run.gold.is_some(),
        compat: None,
        abstained: predictions.is_empty().then(why),
        predictions,
        set: false,
        interval: None,
        votes: None,
        calls: 0,
        tokens_in: 0,
        tokens_out: 0,
        cost: None,
        cuts: Cuts::default(),
        digest: String::new(),
    }
}

/// What a method would ask about a run at most; nobody is asked.
pub fn foresee(method: &dyn Method, run: &LoggedRun, view: View<'_>, votes: u32) -> Foreseen {
    let mut answers = Vec::new();
    let mut foreseen = Foreseen::default();
    while let Err(Pause::Ask(question)) = method.attribute(run, view, &mut Dialogue::new(&answers)) {
        foreseen.calls += 1;
        foreseen.bytes += (question.system.len() + question.user.len()) as u64;
        foreseen.answers += question.longest_answer;
        answers.push(JudgeReply::Words(question.longest_way));
        if answers.len() >= QUESTIONS_MAX {
            break;
        }
    }
    let votes = u64::from(votes.max(1));
    let Foreseen { calls, bytes, answers } = foreseen;
    Foreseen { calls: calls * votes, bytes: bytes * votes, answers: answers * votes }
}

/// What questions took.
#[derive(Debug, Default)]
pub(super) struct QuestionTally {
    calls: u64,
    usage: Usage,
    served: Option<String>,
    cuts: Cuts,
    questions: blake3::Hasher,
}

impl QuestionTally {
    fn add(&mut self, question: &JudgeQuestion, asked: &super::JudgeCall) {
        self.calls += 1;
        self.usage.input += asked.usage.input;
        self.usage.output += asked.usage.output;
        self.cuts = self.cuts.and(question.cuts);
        self.served = self.served.take().or_else(|| asked.served.clone());
        self.questions.update(&(asked.body.len() as u64).to_le_bytes()).update(&asked.body);
    }
}

/// One dialogue, to its end: `pose` goes through it with the answers so far, and says what it wants to know next.
pub(super) async fn converse<T>(
    pose: impl Fn(&mut Dialogue<'_>) -> Result<T, Pause>,
    judge: Option<(&LogJudge, Draw)>,
    tally: &mut QuestionTally,
) -> Result<Result<T, Abstention>, ExecutionError> {
    let mut answers: Vec<JudgeReply> = Vec::new();
    loop {
        let question = match pose(&mut Dialogue::new(&answers)) {
            Ok(found) => return Ok(Ok(found)),
            Err(Pause::Abstain(why)) => return Ok(Err(why)),
            Err(Pause::Ask(question)) => question,
        };
        let Some((judge, draw)) = judge else {
            return Ok(Err(Abstention::Inapplicable("no model is named, and it asks one".to_owned())));
        };
        if answers.len() >= QUESTIONS_MAX {
            return Ok(Err(Abstention::Unreadable(format!("{QUESTIONS_MAX} questions led to no answer"))));
        }
        let asked = judge.ask(&question, draw).await?;
        tally.add(&question, &asked);
        answers.push(asked.reply);
    }
}
