//! The certificate: what was measured, of whom, on which data.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{
    recording,
    score::{Certification, CertifiedFigures, CertifiedKind, CertifiedRun, Culprit},
};

/// The format of certificates.
const FORMAT: u32 = 1;

/// The runs of a data set.
#[derive(Debug, Default)]
pub(super) struct CertifiedData {
    /// What each is, and whom its label names, by id.
    pub(super) runs: BTreeMap<String, (CertifiedKind, Vec<Culprit>)>,
    /// Failures whose label is not proven.
    pub(super) unproven: usize,
    /// blake3 of each file.
    pub(super) files: BTreeMap<String, String>,
    /// The campaign's seed, where the data set has a report.
    pub(super) seed: Option<u64>,
}

/// A certificate.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct Certificate {
    /// Format of this file.
    format: u32,
    /// The version that made it.
    aegis: String,
    /// When, in UTC.
    made: String,
    /// Who was measured.
    pub(super) judge: CertifiedJudge,
    /// On what.
    pub(super) data: DataDigest,
    /// blake3 of `answers.jsonl`.
    answers: String,
    /// What the answers took.
    pub(super) cost: CertifiedCost,
    /// What was measured.
    pub(super) figures: CertifiedFigures,
    /// What follows.
    pub(super) certification: Certification,
    /// blake3 of this certificate without this field.
    hash: String,
}

/// A judge, as its answers name it.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(super) struct CertifiedJudge {
    pub(super) method: String,
    pub(super) model: Option<String>,
    served_model: Option<String>,
    /// blake3 of the digests of all questions, in the order of the answers; `None` where the answers have none.
    questions: Option<String>,
}

/// The data of a certificate.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct DataDigest {
    /// blake3 of each file.
    files: BTreeMap<String, String>,
    /// Runs by kind.
    pub(super) runs: BTreeMap<CertifiedKind, usize>,
    /// Hash of the seed from which errors were drawn.
    seed: Option<String>,
    /// That seed, where it was to be revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    revealed_seed: Option<u64>,
}

/// Calls and tokens of all answers.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(super) struct CertifiedCost {
    pub(super) calls: u64,
    pub(super) tokens_in: u64,
    pub(super) tokens_out: u64,
}

impl CertifiedData {
    /// How many runs are of a kind.
    pub(super) fn count(&self, kind: CertifiedKind) -> usize {
        self.runs.values().filter(|(own, _)| *own == kind).count()
    }
}

impl Certificate {
    /// The certificate of a judge who answered so.
    pub(super) fn new(data: &CertifiedData, runs: &[CertifiedRun], answers: &str, least: f64, reveal: bool) -> Self {
        let figures = CertifiedFigures::of_runs(runs);
        let certification = figures.certify(least);
        let mut by_kind = BTreeMap::new();
        for run in runs {
            *by_kind.entry(run.kind).or_default() += 1;
        }
        let certificate = Self {
            format: FORMAT,
            aegis: recording::VERSION.to_owned(),
            made: jiff::Timestamp::now().to_string(),
            judge: CertifiedJudge::of_answers(answers),
            data: DataDigest {
                files: data.files.clone(),
                runs: by_kind,
                seed: data.seed.map(seed_hash),
                revealed_seed: data.seed.filter(|_| reveal),
            },
            answers: blake3::hash(answers.as_bytes()).to_hex().to_string(),
            cost: CertifiedCost::of_answers(answers),
            figures,
            certification,
            hash: String::new(),
        };
        certificate.hashed()
    }

    fn hashed(self) -> Self {
        let bare = Self { hash: String::new(), ..self };
        let text = serde_json::to_vec(&bare).unwrap_or_default();
        Self { hash: blake3::hash(&text).to_hex().to_string(), ..bare }
    }

    /// The same as another version said it at another time.
    pub(super) fn stated_as(self, stated: &Value) -> Self {
        let text = |name: &str| stated.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { aegis: text("aegis"), made: text("made"), ..self }.hashed()
    }

    /// As it is written.
    pub(super) fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Both bounds in words.
    pub(super) fn bounds(&self) -> String {
        let Certification { detection_bound, silence_bound, .. } = self.certification;
        format!("detection ≥ {:.1} %, silence ≥ {:.1} %", 100.0 * detection_bound, 100.0 * silence_bound)
    }
}

/// Whoever is shown the seed later sees by this that it was the one. A seed of few digits can be guessed.
fn seed_hash(seed: u64) -> String {
    blake3::hash(format!("aegis campaign seed {seed}").as_bytes()).to_hex().to_string()
}

impl CertifiedJudge {
    fn of_answers(answers: &str) -> Self {
        let mut judge = Self::default();
        let mut questions: Option<blake3::Hasher> = None;
        for row in rows(answers) {
            let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
            judge.method = text("method").unwrap_or(judge.method);
            judge.model = text("model").or(judge.model);
            judge.served_model = text("served_model").or(judge.served_model);
            if let Some(digest) = text("digest") {
                questions.get_or_insert_with(blake3::Hasher::new).update(digest.as_bytes());
            }
        }
        if judge.method.is_empty() {
            "answers".clone_into(&mut judge.method);
        }
        judge.questions = questions.map(|hash| hash.finalize().to_hex().to_string());
        judge
    }
}

impl CertifiedCost {
    fn of_answers(answers: &str) -> Self {
        let mut cost = Self::default();
        for row in rows(answers) {
            let count = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
            cost.calls += count("calls");
            cost.tokens_in += count("tokens_in");
            cost.tokens_out += count("tokens_out");
        }
        cost
    }
}

/// The rows of answers that are rows.
pub(super) fn rows(answers: &str) -> impl Iterator<Item = Value> {
    answers.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// How sure a row is of its first guess: what it calls so, or the share of several votes. Other scores only order predictions.
pub(super) fn confidence(row: &Value) -> Option<f64> {
    let votes = row.get("votes").is_some().then(|| row.pointer("/predictions/0/score")).flatten();
    row.get("confidence").or(votes).and_then(Value::as_f64)
}

/// Whether a row says that its method saw no error: methods without a model say so by naming nobody.
pub(super) fn says_nobody(row: &Value) -> bool {
    row.pointer("/abstained/why").is_some_and(|why| why == "nothing_found")
}

/// The fields in which two values differ, as JSON pointers.
pub(super) fn differing(one: &Value, other: &Value) -> Vec<String> {
    fn walk(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
        match (one, other) {
            (Value::Object(left), Value::Object(right)) => {
                let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
                for name in names {
                    let none = Value::Null;
                    let (left, right) = (left.get(name).unwrap_or(&none), right.get(name).unwrap_or(&none));
                    walk(left, right, &format!("{at}/{name}"), found);
                }
            }
            _ if one != other => found.push(at.to_owned()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(one, other, "", &mut found);
    found
}
