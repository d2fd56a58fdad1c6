//! Lint: what makes a dataset unfit to learn from or to measure with, each defect under a name of its own.
//!
//! Rules about one sample are in [`shape`], [`label`], [`shown`], [`evidence`], [`leak`], [`hints`] and [`orders`]; a sample beside its
//! recording, where that lies beside the dataset, in [`logs`]; answers, row by row and by system, in [`answer`]; a failure beside its clean twin in [`twin`] and [`reply`]; rules about several
//! samples in [`across`]; what gives planted errors away in [`shortcut`]. A dataset is read once from front to back, and twins by their place; memory grows with the
//! number of samples, not with their size.

use crate::recording::RunFile;
#[macro_use]
mod list;

mod across;
mod answer;
mod controls;
mod decoys;
mod evidence;
mod fold;
mod hints;
mod label;
mod leak;
mod logs;
mod orders;
mod reply;
mod shape;
mod shortcut;
mod shown;
mod twin;

#[cfg(test)]
mod answer_defects;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod evidence_defects;
#[cfg(test)]
mod evidence_tests;
#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin_tests;

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};

use super::{
    Claims, Dataset, DatasetError, DatasetManifest, FILE, Grounds, MANIFEST_FILE, PlacedSample, Sample, SampleKind,
    read::UNREAD_MAX,
};
use across::EarlierSamples;
pub(super) use across::hash_of_run;
use answer::Answers;
use controls::Controls;
pub(in crate::dataset) use leak::holds_machine_path;
use shortcut::Shortcuts;
pub(in crate::dataset) use shortcut::giveaways;
use twin::Twins;
pub(in crate::dataset) use twin::shares_beginning;

rules! {
    // The file.
    NotASample "not-a-sample" "a line is no sample of a format that this version reads";
    ManifestDiffers "manifest-differs" "`dataset.json` does not fit the files beside it";
    DecoysVerified "decoys-verified" "the proof took more decoys for errors than the set may hold wrong rows";
    BenignApart "benign-apart" "a benign injection stands among failures, or a failure among benign ones";
    // One sample.
    TaskMissing "task-missing" "the task has no id, no question or no answer";
    NoSteps "no-steps" "the run has no step";
    StepBase "step-base" "steps are not numbered 0, 1, 2, … without a gap";
    TurnGap "turn-gap" "turns are not numbered 0, 1, 2, … in the order in which they begin";
    EmptyStep "empty-step" "a step at which nothing was planted got no answer";
    InputBroken "input-broken" "a step's input continues one that is not there";
    UpstreamError "upstream-error" "the upstream's own error ended a step";
    OutcomeDiffers "outcome-differs" "the outcome is not what this kind of sample has";
    RightAnswer "right-answer" "the sample is a failure, but its final answer is the expected one";
    WrongAnswer "wrong-answer" "the sample is a success, but its final answer is not the expected one";
    CheckerDiffers "checker-differs" "what the checker saw does not fit the outcome or the final answer";
    AnswerNowhere "answer-nowhere" "the final answer stands in no step, and other runs of the system say theirs";
    ReplicatedBlock "replicated-block" "a step, or a block of steps, stands there twice";
    // Its label.
    LabelMissing "label-missing" "a failure or benign run has no label, or one without errors";
    CleanLabelled "clean-labelled" "a clean run has a label or a twin";
    LabelWithdrawn "label-withdrawn" "the label was withdrawn";
    Unproven "unproven" "a failure is not verified, or what was executed for it is missing or does not show what its label says";
    EvidenceValue "evidence-value" "the e-value is not one that so many pairs of such verdicts can give";
    EvidencePairs "evidence-pairs" "the e-value rests on no pair, or on more pairs than were executed";
    EvidenceTarget "evidence-target" "the e-value does not reach its target, or the target asks for nothing";
    EvidenceCounts "evidence-counts" "more than a third of an arm says nothing, and the claim is said to be shown";
    EvidenceRepeats "evidence-repeats" "what stands by repetition has not two and two executions that are equal and show it";
    EvidenceOrder "evidence-order" "a control is older than the run that it stands against, or the twin younger";
    AgentExists "agent-exists" "the label names an agent that made no step";
    StepExists "step-exists" "the label names a step that is not there, or none";
    AgentAtStep "agent-at-step" "another agent, instance or call made the labelled step";
    AmbiguousStep "ambiguous-step" "the labelled step may belong to another agent, or another call of its agent overlapped it";
    GuessedAgent "guessed-agent" "nothing but a fallback names the agent of the labelled step";
    DuplicateLabel "duplicate-label" "the label says the same error twice";
    UnknownMode "unknown-mode" "the failure mode of an injection is missing, or a mode is unknown or has another mode's name";
    ModeImpossible "mode-impossible" "a failure mode is said to be applicable, and the label names what it lacks";
    NothingChanged "nothing-changed" "no bytes differ at the labelled step";
    NotDelivered "not-delivered" "the labelled step does not show the text that was delivered";
    UnlabelledChange "unlabelled-change" "a step was changed that the label names neither among its errors nor among what was planted besides";
    // Its recording, where `logs` lies beside the dataset.
    RecordingDiffers "recording-differs" "the run's recording in `logs` holds something else, or its label does";
    // What a tracer is shown.
    Vocabulary "vocabulary" "words of injections, labels or this program stand in what is trained on";
    LeakedInstruction "leaked-instruction" "an injected instruction stands in what is trained on";
    Scaffold "scaffold" "a fence or heading of what a rewriting model was asked stands in what it wrote";
    RunId "run-id" "an id of a sample stands in what is trained on";
    TaskTells "task-tells" "a field of the task, or the answer, says where the error is";
    GoldGiven "gold-given" "prompts give the right answer before anybody said it";
    MachinePath "machine-path" "a path of the machine that made it stands in what is trained on";
    Key "key" "a key stands in the sample";
    // Twins.
    TwinMissing "twin-missing" "an injected failure has no clean twin in the dataset";
    TwinDiffers "twin-differs" "the twin is of another task or system, is no clean run, or is not the one of the evidence";
    ReplyAsTwin "reply-as-twin" "the reply of a labelled step is the clean twin's: there is no error in it";
    PrefixDiffers "prefix-differs" "failure and twin differ before the first planted step";
    // What tells planted errors without reading for sense: a dataset is not wrong for it, but easy.
    ShortcutWords "shortcut-words" "a classifier of words tells altered replies from the clean twins'";
    ShortcutLength "shortcut-length" "altered replies are much longer or shorter than the clean twins'";
    ShortcutFigures "shortcut-figures" "a figure or word beside a reply tells whether it was altered";
    ShortcutPosition "shortcut-position" "one place holds many more errors than a draw of places would give it";
    ShortcutShape "shortcut-shape" "the outline of a log finds labelled steps far more often than trivial rules do";
    ShortcutTypography "shortcut-typography" "how replies are set (blanks, line ends, a small first letter) tells altered ones from the clean twins'";
    ShortcutEnd "shortcut-end" "logs end where the error is, though the clean runs go on";
    ShortcutDesign "shortcut-design" "what was drawn (how many errors, which agent, which end of the log) tells the failure mode";
    ShortcutSystem "shortcut-system" "a system holds no failure, and others hold all: its name tells that nobody erred";
    ShortcutPart "shortcut-part" "a part of the data holds no failure, and others hold all: nothing can be measured in it";
    ShortcutCopies "shortcut-copies" "questions are near copies of questions in another part: names and numbers aside, the same";
    GivesItselfAway "gives-itself-away" "a manipulator's replies are told from the clean twins': `export` leaves its failures out";
    // Several samples.
    DuplicateId "duplicate-id" "two samples have one id";
    DuplicateSample "duplicate-sample" "two samples hold the same run with the same label";
    SharedSteps "shared-steps" "most steps of the run stand in runs of other tasks too";
    TaskDiffers "task-differs" "two samples give one task another question, answer or other field";
    SplitByTask "split-by-task" "one task is in two parts of the dataset, or only some samples are in a part";
    OddMode "odd-mode" "one kind of edit has another failure mode here than nearly everywhere else";
    MixedKinds "mixed-kinds" "the labels of failures make several kinds of claim: what was planted, or what a trace found by one rule or another";
    OneTaxonomy "one-taxonomy" "failure modes are of several taxonomies or versions, or of one that is not known here";
}

impl Rule {
    /// Whether what it finds keeps a dataset from being exported. A shortcut makes it easy, not wrong; what kinds of claims go
    /// out the export says by itself; and an honest set may hold an answer that a program worked out, a prompt that quotes the
    /// answer, and a mode that was declared once.
    pub fn refuses(self) -> bool {
        let honest = matches!(self, Rule::MixedKinds | Rule::AnswerNowhere | Rule::GoldGiven | Rule::OddMode);
        !honest && !self.is_shortcut()
    }

    /// Whether it is about what was executed for a label, or came of it.
    pub fn is_of_proof(self) -> bool {
        use Rule::{
            EvidenceCounts, EvidenceOrder, EvidencePairs, EvidenceRepeats, EvidenceTarget, EvidenceValue,
            LabelWithdrawn, Unproven,
        };
        matches!(
            self,
            EvidenceCounts
                | EvidenceOrder
                | EvidencePairs
                | EvidenceRepeats
                | EvidenceTarget
                | EvidenceValue
                | LabelWithdrawn
                | Unproven
        )
    }
}

/// A defect and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// The rule that is broken.
    pub rule: Rule,
    /// The file.
    pub file: PathBuf,
    /// The line, 1-based; 0 where the file as a whole is meant.
    pub line: u64,
    /// The sample; empty where none is meant.
    pub sample: String,
    /// What is wrong, with the values.
    pub what: String,
}

/// What lint says of a dataset.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct LintReport {
    /// Samples that were read.
    pub samples: u64,
    /// The defects, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// How sure its labels are, all together, in words.
    pub sure: String,
    /// Planted errors of failures.
    pub planted: u64,
    /// Of them, those whose failure mode only their plan supports, or was refuted: no defect, since their labels say so.
    pub declared: u64,
}

impl LintReport {
    fn count_modes(&mut self, sample: &Sample) {
        let errors = sample.label.iter().filter(|_| sample.kind == SampleKind::Failure).flat_map(|label| &label.errors);
        for error in errors.filter(|error| error.planted_by().is_some() && error.failure_mode.is_some()) {
            self.planted += 1;
            self.declared += u64::from(!error.mode_claim.as_ref().is_some_and(|claim| claim.state.is_usable()));
        }
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How often each rule is broken.
    pub fn counts(&self) -> BTreeMap<Rule, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.findings {
            *counts.entry(finding.rule).or_default() += 1;
        }
        counts
    }
}

/// Lints a dataset.
///
/// # Errors
/// A file cannot be read; a line that is no sample is a finding, but for the 1,001st: what holds so many is no dataset.
pub fn lint(dataset: &Dataset) -> Result<LintReport, DatasetError> {
    let mut report = LintReport::default();
    let mut across = EarlierSamples::default();
    let mut grounds = Grounds::default();
    let mut shortcuts = Shortcuts::default();
    let mut answers = Answers::default();
    let controls = Controls::read(dataset);
    let mut unread_lines = 0;
    for placed in dataset.samples() {
        let placed = match placed {
            Ok(placed) => placed,
            Err(error @ DatasetError::Io { .. }) => return Err(error),
            Err(error) if unread_lines == UNREAD_MAX => return Err(error),
            Err(error) => {
                unread_lines += 1;
                report.findings.push(unread(&error));
                continue;
            }
        };
        report.samples += 1;
        report.count_modes(&placed.sample);
        let file = dataset.files().get(placed.file).cloned().unwrap_or_default();
        let mut noted = NotedFindings::new(&mut report, file, &placed, dataset.harvest().is_some());
        shape::check(&placed, dataset, &mut noted);
        label::check(&placed.sample, &mut noted);
        evidence::check(&placed, &controls, &mut noted);
        leak::check(&placed.sample, &mut noted);
        hints::check(&placed.sample, &mut noted);
        orders::check(&placed.sample, &mut noted);
        logs::check(&placed, dataset, &mut noted);
        answers.add(&placed, &noted);
        across.add(&placed, &mut noted);
        grounds.add(&placed.sample);
        shortcuts.add(&placed, &noted);
    }
    Twins::new(dataset, &across).check(&mut report)?;
    answers.check(&mut report);
    shortcuts.check(dataset, &mut report)?;
    report.findings.extend(manifest(dataset, &grounds)?);
    let stated = dataset.manifest().and_then(|manifest| manifest.claims);
    report.sure = grounds.in_words(stated.as_ref());
    let number = |finding: &Finding| dataset.files().iter().position(|file| *file == finding.file);
    report.findings.sort_by_key(|finding| (number(finding), finding.line));
    Ok(report)
}

/// Takes findings about one sample.
struct NotedFindings<'a> {
    report: &'a mut LintReport,
    file: PathBuf,
    line: u64,
    sample: String,
    /// Whether the row was made of a run that somebody recorded, without a task set or clean runs that belong to it.
    of_corpus: bool,
}

impl<'a> NotedFindings<'a> {
    fn new(report: &'a mut LintReport, file: PathBuf, placed: &PlacedSample, of_corpus: bool) -> Self {
        Self { report, file, line: placed.line, sample: placed.sample.id.clone(), of_corpus }
    }

    fn note(&mut self, rule: Rule, what: impl Into<String>) {
        let finding = self.finding(rule, what);
        self.report.findings.push(finding);
    }

    fn finding(&self, rule: Rule, what: impl Into<String>) -> Finding {
        Finding { rule, file: self.file.clone(), line: self.line, sample: self.sample.clone(), what: what.into() }
    }
}

fn unread(error: &DatasetError) -> Finding {
    let (file, line, what) = match error {
        DatasetError::Line { path, line, column, why } => (path.clone(), *line, format!("column {column}: {why}")),
        DatasetError::Future { path, line, .. } => (path.clone(), *line, error.to_string()),
        _ => (PathBuf::new(), 0, error.to_string()),
    };
    Finding { rule: Rule::NotASample, file, line, sample: String::new(), what }
}

/// Compares the files with the manifest beside them, where there is one.
fn manifest(dataset: &Dataset, grounds: &Grounds) -> Result<Vec<Finding>, DatasetError> {
    let Some(dir) = dataset.files().first().and_then(|file| file.parent()) else { return Ok(Vec::new()) };
    let path = dir.join(MANIFEST_FILE);
    let failed = |path: &Path, source| DatasetError::Io { doing: "read", path: path.to_owned(), source };
    let text = match RunFile::bytes(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(&path, source)),
    };
    let finding = |file: &Path, what: String| Finding {
        rule: Rule::ManifestDiffers,
        file: file.to_owned(),
        line: 0,
        sample: String::new(),
        what,
    };
    let known: DatasetManifest = match serde_json::from_slice(&text) {
        Ok(known) => known,
        Err(error) => return Ok(vec![finding(&path, format!("`{MANIFEST_FILE}` is no manifest: {error}"))]),
    };
    let mut findings = Vec::new();
    for file in dataset.files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let hash = hash_of(file).map_err(|source| failed(file, source))?;
        match known.files.get(name.as_ref()) {
            Some(facts) if facts.blake3 == hash => {}
            Some(_) => findings.push(finding(file, format!("`{name}` has another hash than `{MANIFEST_FILE}` says"))),
            None if known.files.is_empty() => {}
            None => findings.push(finding(file, format!("`{MANIFEST_FILE}` does not know `{name}`"))),
        }
    }
    if let Some(claims) = known.claims.as_ref().filter(|_| dataset.files().iter().any(|file| file.ends_with(FILE))) {
        let counted = grounds.claims(claims.alpha, claims.begun);
        let sums = |of: &Claims| (of.rows, of.kept, of.repeatable);
        if sums(claims) != sums(&counted) || claims.begun < claims.rows {
            let (says, is) = (claims.in_words(), counted.in_words());
            findings.push(finding(&path, format!("its `claims` say: {says}; the rows say: {is}")));
        }
    }
    findings.extend(decoys::findings(dataset, &known)?);
    Ok(findings)
}

fn hash_of(path: &Path) -> io::Result<String> {
    let mut file = RunFile::open(path)?;
    let mut hash = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hash.update(bytes);
    }
    Ok(hash.finalize().to_hex().to_string())
}

/// Whether the sample's label is one of an injection, which has a control, a twin and a change.
fn is_injected(sample: &Sample) -> bool {
    sample.label.as_ref().is_some_and(|label| label.definition == "injected")
}

/// Whether the sample came in from a foreign format, with that format's code book and answers.
fn is_imported(sample: &Sample) -> bool {
    sample.extra.contains_key("format")
}

/// A text in back quotes, cut to a readable length, in one line.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("`{shown}{more}`")
}
