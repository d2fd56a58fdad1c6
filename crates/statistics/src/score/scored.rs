//! A prediction file against labels, under a profile: the public scorer's figures where it has one, and the strict
//! ones beside them, so that nobody compares the two by accident.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    Culprit, Gold, PredictedAnswer, Prediction, Profile, Report, ScoreError, agent_key,
    public::{self, Public, PublicFigure, PublicScorerFails},
    ratio, read, real,
    report::{evaluate, index},
    reward::{self, Gated},
};

/// Why a prediction file cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoringError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] read::ReadError),
    /// It cannot be joined with the labels.
    #[error(transparent)]
    Score(#[from] ScoreError),
    /// The public scorer has no figures for it.
    #[error(transparent)]
    Public(#[from] PublicScorerFails),
    /// The profile compares with labels, and there are none.
    #[error("profile `{0}` needs labels: name them with `--gold DATASET`")]
    GoldNeeded(&'static str),
    /// The profile compares with what a source file wrote, and the labels come from none.
    #[error(
        "profile `whowhen` compares with the label files of one Who&When directory: `{0}` was not imported from one, and has not the one error that `export --to whowhen` needs"
    )]
    NoLabelFile(String),
    /// Labels of two directories.
    #[error("profile `whowhen` scores one directory at a time: two of the labels come from files called `{0}`")]
    TwoDirectories(String),
}

/// What a prediction file is worth.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Scored {
    /// The rules that were asked for.
    pub profile: Profile,
    /// The public scorer's figures, under a profile that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public: Option<Public>,
    /// The strict figures; `None` where no labels were given beside the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<Report>,
}

/// Scores the text of a prediction file. `base` is the number that it gives the first step.
///
/// # Errors
/// [`ScoringError`] names the line or id and what was expected.
pub fn score(text: &str, golds: Option<&[Gold]>, profile: Profile, base: i64) -> Result<Scored, ScoringError> {
    let needed = golds.ok_or(ScoringError::GoldNeeded(profile.name()));
    let public = match profile {
        Profile::Strict => needed.map(|_| None)?,
        Profile::Aegis => Some(public::aegis(&aegis_rows(text, golds)?)?),
        Profile::AegisFork => Some(public::aegis_fork(&aegis_rows(text, golds)?)?),
        Profile::Whowhen => Some(whowhen(text, needed?, base)?),
        Profile::Agentracer => Some(agentracer(text, needed?)?),
    };
    let strict =
        golds.map(|golds| -> Result<_, ScoringError> { Ok(evaluate(golds, &about_agents(text, golds)?, base)?) });
    Ok(Scored { profile, public, strict: strict.transpose()? })
}

/// The predictions, without what they say of tools and peers that erred.
fn about_agents(text: &str, golds: &[Gold]) -> Result<Vec<Prediction>, ScoringError> {
    let known = index(golds)?;
    let of_agents = |prediction: Prediction| {
        let gold = known.get(prediction.id.as_str()).and_then(|row| golds.get(*row));
        match gold.filter(|gold| !gold.servers.is_empty()) {
            Some(gold) => Prediction { answer: prediction.answer.of_agents(&gold.servers), ..prediction },
            None => prediction,
        }
    };
    Ok(read::predictions(text)?.into_iter().map(of_agents).collect())
}

/// Rows as the Aegis scripts read them. A file that is one of theirs passes as it is; in others, prediction and truth
/// are put where the scripts look for them.
fn aegis_rows(text: &str, golds: Option<&[Gold]>) -> Result<String, ScoringError> {
    let theirs = |row: &Value| row.get("ground_truth").is_some();
    let first = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    if first.as_ref().is_some_and(theirs) {
        return Ok(text.to_owned());
    }
    let golds = golds.ok_or(ScoringError::GoldNeeded("aegis"))?;
    let known = index(golds)?;
    let rows = read::json_rows(text)?;
    let mut lines = String::new();
    for (place, prediction) in read::predictions(text)?.into_iter().enumerate() {
        let Some(gold) = known.get(prediction.id.as_str()).and_then(|row| golds.get(*row)) else { continue };
        let row = rows.as_ref().and_then(|rows| rows.get(place)).map(|(_, _, row)| row);
        let mut row = row.and_then(Value::as_object).cloned().unwrap_or_default();
        row.entry("model_detection").or_insert_with(|| faulty(claims(&prediction.answer)));
        let truth = gold.culprits.iter().map(|culprit| (culprit.agent.as_deref(), culprit.mode.as_deref()));
        row.insert("ground_truth".to_owned(), faulty(truth));
        lines.push_str(&Value::Object(row).to_string());
        lines.push('\n');
    }
    Ok(lines)
}

fn claims(answer: &PredictedAnswer) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
    answer.claimed().iter().map(|guess| (guess.agent.as_deref(), guess.mode.as_deref()))
}

/// `{"faulty_agents": […]}`; what is unknown is left out.
fn faulty<'a>(pairs: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)>) -> Value {
    let entry = |(agent, mode): (Option<&str>, Option<&str>)| {
        let mut entry = Map::new();
        entry.extend(agent.map(|agent| ("agent_name".to_owned(), agent.into())));
        entry.extend(mode.map(|mode| ("error_type".to_owned(), mode.into())));
        Value::Object(entry)
    };
    json!({"faulty_agents": pairs.map(entry).collect::<Vec<_>>()})
}

/// The Who&When script's figures. Predictions of another form are put into its log form first.
fn whowhen(text: &str, golds: &[Gold], base: i64) -> Result<Public, ScoringError> {
    let known = index(golds)?;
    let mut labels = Vec::new();
    let mut files = std::collections::BTreeSet::new();
    // A run in which nobody erred has no file in such a directory.
    for gold in golds.iter().filter(|gold| !gold.culprits.is_empty()) {
        let label = gold.raw.as_ref().ok_or_else(|| ScoringError::NoLabelFile(gold.id.clone()))?;
        if !files.insert(&label.file) {
            return Err(ScoringError::TwoDirectories(label.file.clone()));
        }
        labels.push(label.clone());
    }
    if read::json_rows(text)?.is_none() {
        return Ok(public::whowhen(text, &labels));
    }
    let block = |prediction: &Prediction| {
        let file = &known.get(prediction.id.as_str()).and_then(|row| golds.get(*row))?.raw.as_ref()?.file;
        let guess = prediction.answer.claimed().first()?;
        let step = guess.step?.checked_sub(base)?;
        Some(format!("Prediction for {file}:\nAgent Name: {}\nStep Number: {step}\n\n", guess.agent.as_deref()?))
    };
    let log: String = read::predictions(text)?.iter().filter_map(block).collect();
    Ok(public::whowhen(&log, &labels))
}

const AGENTRACER: &[&str] = &[
    "the authors published neither scorer nor training code: these figures follow the paper's text",
    "an answer without the format (`</think>`, then one `<answer>AGENT|STEP</answer>`) is wrong and earns nothing",
];

fn agentracer(text: &str, golds: &[Gold]) -> Result<Public, ScoringError> {
    let rewarded = rewards(text, golds, RewardKind::Agentracer)?;
    // Under the kernel, half is the agent's; what a right step alone earns tells the two apart.
    let only = |step_weight| Gated { step_weight, ..Gated::default() };
    let full = |weights: Gated| {
        let hit = |row: &&Rewarded| {
            row.gold.is_some_and(|gold| reward::gated(&row.completion, &gold.culprits, weights) >= 1.0)
        };
        rewarded.iter().filter(hit).count()
    };
    let (agents, steps) = (full(only(0.0)), full(only(1.0)));
    let percent = |name: &str, hits: usize| {
        let value = ratio(hits, golds.len()) * 100.0;
        PublicFigure { name: name.to_owned(), value, shown: format!("{value:.2}") }
    };
    let sum: f64 = rewarded.iter().filter_map(|row| row.reward).sum();
    let mean = if golds.is_empty() { 0.0 } else { sum / real(golds.len()) };
    Ok(Public {
        scorer: "AgenTracer, as the paper has it",
        figures: vec![
            percent("Agent-level accuracy", agents),
            percent("Step-level accuracy", steps),
            PublicFigure { name: "Mean reward".to_owned(), value: mean, shown: format!("{mean:.4}") },
        ],
        quirks: AGENTRACER,
    })
}

/// Which reward. All but the published one are worth exactly 1 for the right answer, and less for any that says something
/// else about an agent, step or mode that they pay for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewardKind {
    /// Agent, step and mode, each paid for; a near step less than the step.
    Step,
    /// Aegis' hierarchical reward of pairs of agent and mode, over what the truth itself would get.
    Aegis,
    /// The same without its two defects.
    AegisStrict,
    /// Aegis' reward to the digit of its authors' function, for comparison: 1.1 where nobody erred.
    AegisPublished,
    /// AgenTracer's gated reward.
    Agentracer,
}

impl RewardKind {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Step, Self::Aegis, Self::AegisStrict, Self::AegisPublished, Self::Agentracer];
}

/// One completion's reward.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rewarded<'a> {
    /// Which run it is about.
    pub id: String,
    /// Its line in the file, 1-based.
    pub line: usize,
    /// The reward; `None` for a run that the gold data does not have.
    pub reward: Option<f64>,
    #[serde(skip)]
    completion: String,
    #[serde(skip)]
    gold: Option<&'a Gold>,
}

/// The reward of every completion of a file, in its order; a run may occur any number of times, as rollouts do.
///
/// # Errors
/// The file cannot be read, or two labels have one id.
pub fn rewards<'a>(text: &str, golds: &'a [Gold], kind: RewardKind) -> Result<Vec<Rewarded<'a>>, ScoringError> {
    let known = index(golds)?;
    let rewarded = read::completions(text)?.into_iter().map(|row| {
        let gold = known.get(row.id.as_str()).and_then(|place| golds.get(*place));
        let reward = gold.map(|gold| rewarded(&row.text, &gold.culprits, kind));
        Rewarded { id: row.id, line: row.line, reward, completion: row.text, gold }
    });
    Ok(rewarded.collect())
}

/// The reward of one completion, against a truth in the form of an answer: `{"faulty_agents": […]}`. `None` where the
/// truth cannot be read.
pub fn reward_of(completion: &str, truth: &str, kind: RewardKind) -> Option<f64> {
    let truth = read::answer(truth);
    if matches!(truth, PredictedAnswer::Unparsed(_)) {
        return None;
    }
    let culprits = truth.claimed().iter().map(|guess| Culprit {
        agent: guess.agent.clone(),
        step: guess.step.and_then(|step| u32::try_from(step).ok()),
        mode: guess.mode.clone(),
    });
    Some(rewarded(completion, &culprits.collect::<Vec<_>>(), kind))
}

fn rewarded(completion: &str, culprits: &[Culprit], kind: RewardKind) -> f64 {
    match kind {
        RewardKind::Step => reward::graded(&read::answer(completion), culprits),
        RewardKind::Aegis => paired(completion, culprits, reward::hierarchical),
        RewardKind::AegisStrict => paired(completion, culprits, reward::hierarchical_strict),
        RewardKind::AegisPublished => reward::hierarchical(completion, &pairs_of(culprits)),
        RewardKind::Agentracer => reward::gated_set(completion, culprits, Gated::default()),
    }
}

/// The true pairs of agent and mode, as an answer.
fn pairs_of(culprits: &[Culprit]) -> String {
    let pairs = culprits.iter().map(|culprit| (culprit.agent.as_deref(), culprit.mode.as_deref()));
    faulty(pairs.filter(|(agent, mode)| agent.is_some() && mode.is_some())).to_string()
}

/// A reward of pairs, over what the truth would get. Where the truth does not know a mode, none is asked for: the agent is
/// all that there is to find.
fn paired(completion: &str, culprits: &[Culprit], reward: fn(&str, &str) -> f64) -> f64 {
    const ANY: &str = "any";
    let unknown = |name: &str| {
        let of_name =
            |culprit: &&Culprit| culprit.agent.as_deref().is_some_and(|agent| agent_key(agent) == agent_key(name));
        culprits.iter().filter(of_name).any(|culprit| culprit.mode.is_none())
    };
    if culprits.iter().all(|culprit| culprit.mode.is_some()) {
        return reward::of_own(reward, completion, &pairs_of(culprits));
    }
    let read = read::answer(completion);
    if matches!(read, PredictedAnswer::Unparsed(_)) {
        return reward("", "");
    }
    let open = |agent: Option<&'_ str>| agent.is_some_and(unknown);
    let said = claims(&read).map(|(agent, mode)| (agent, if open(agent) { Some(ANY) } else { mode.or(Some("")) }));
    let truth = culprits.iter().map(|culprit| {
        let agent = culprit.agent.as_deref();
        (agent, if open(agent) { Some(ANY) } else { culprit.mode.as_deref() })
    });
    reward::of_own(reward, &faulty(said).to_string(), &faulty(truth).to_string())
}

#[cfg(test)]
#[path = "scored_tests.rs"]
mod tests;
