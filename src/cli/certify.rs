//! `aegis certify DATASET --tracer T`: what a judge of failures is worth on executed labels, as a certificate that anybody derives
//! again from the data and the judge's answers.

mod document;
mod page;
mod trained;

use crate::cli::printed::{CheckedCertificate, printed};
use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};

pub(super) use self::document::Certificate;
use self::document::CertifiedData;
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    attribute::{self, AttributeArgs, JudgeArgs},
    counted, escape,
    tracer::TracerArgs,
};
use crate::{
    dataset::{Dataset, PlacedSample, Sample, SampleKind, formats::row_ids},
    launch::shell_word,
    score::{self, CertifiedKind, CertifiedRun, Culprit, PredictedAnswer, read::ChoiceError},
    trajectory::LabelStatus,
};

/// The certificate, its page, and what the judge said, in the directory of `--out`.
const CERTIFICATE: &str = "certificate.json";
const PAGE: &str = "certificate.md";
const ANSWERS: &str = "answers.jsonl";

/// Options of `certify`.
#[derive(Debug, Args)]
pub(super) struct CertifyArgs {
    /// Data set of a campaign. Make it anew, with a seed that nobody knows: `aegis campaign FILE --seed N`.
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    #[command(flatten)]
    tracers: TracerArgs,
    /// Method of `aegis attribute --list`, instead of a tracer. One that always names somebody is measured by that.
    #[arg(long, value_name = "METHOD", conflicts_with = "tracer")]
    method: Option<String>,
    /// Ranker of `aegis learn`, where the method is `learned`.
    #[arg(long, value_name = "FILE", requires = "method")]
    prior: Option<PathBuf>,
    /// Rows of `aegis attribute --out` or other predictions, instead of asking a judge.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tracer", "method"])]
    answers: Option<PathBuf>,
    /// Lower bound at 95 % that detection and silence in clean runs must reach.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = share)]
    least: f64,
    /// Directory for the certificate.
    #[arg(long, value_name = "DIR", default_value = "certificate")]
    out: PathBuf,
    /// Derive the certificate in this directory again from the data set, and say what differs.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tracer", "method", "answers", "out"])]
    check: Option<PathBuf>,
    /// Write the seed of the campaign into the certificate, not its hash alone: it is used up then.
    #[arg(long, conflicts_with = "check")]
    reveal: bool,
    /// Runs that the judge is asked about in parallel.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    #[command(flatten)]
    judge: JudgeArgs,
}

pub(super) fn run(arguments: &CertifyArgs, global: &Global, out: &mut dyn Write) -> Result<Finished, Failure> {
    let data = read_data(&arguments.dataset)?;
    if let Some(dir) = &arguments.check {
        return check(dir, &data, arguments);
    }
    if arguments.out.join(CERTIFICATE).exists() {
        let error = format!("`{}` holds a certificate", arguments.out.display());
        return Err(Failure::new(Exit::Usage, error).hint("name another directory: --out DIR"));
    }
    refuse_unfit(&data, &arguments.dataset)?;
    refuse_trained(&arguments.tracers, &data)?;
    let answers = match &arguments.answers {
        Some(file) => fs::read_to_string(file)
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display())))?,
        None => ask(arguments, global)?,
    };
    let runs = answered(&data, &answers)?;
    let certificate = Certificate::new(&data, &runs, &answers, arguments.least, arguments.reveal);
    write(&arguments.out, &certificate, &answers)?;
    let page = page::page(&certificate);
    if global.format == OutputFormat::Text {
        out.write_all(page.as_bytes()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let certified = certificate.certification.certified;
    let place = arguments.out.join(PAGE);
    let word = if certified { "certified" } else { "not certified" };
    let summary =
        format!("{} {word}: {}  {}", escape(&certificate.judge.method), certificate.bounds(), place.display());
    Ok(Finished { exit: if certified { Exit::Ok } else { Exit::Finding }, summary, data: json!(certificate) })
}

/// A share above 0 and below 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a share above 0 and below 1".to_owned())
}

/// What a judge is asked about.
fn read_data(path: &Path) -> Result<CertifiedData, Failure> {
    let dataset = Dataset::open(path)?;
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let mut data = CertifiedData::default();
    // A file of rows that was named alone is all that is measured.
    let decoys = Dataset::decoys(path);
    for placed in dataset.numbered_samples().chain(decoys.iter().flat_map(Dataset::numbered_samples)) {
        let PlacedSample { sample, .. } = placed?;
        if sample.kind == SampleKind::Failure
            && sample.label.as_ref().is_none_or(|label| label.status != LabelStatus::Verified)
        {
            data.unproven += 1;
            continue;
        }
        data.runs.insert(sample.id.clone(), (kind(&sample), culprits(&sample)));
    }
    for file in dataset.files().iter().chain(decoys.iter().flat_map(Dataset::files)) {
        let bytes = fs::read(file).map_err(|error| Failure::new(Exit::Usage, error))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        data.files.insert(name, blake3::hash(&bytes).to_hex().to_string());
    }
    let report = fs::read(dir.join("report.json")).ok();
    let report = report.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    data.seed = report.and_then(|report| report.get("seed").and_then(Value::as_u64));
    Ok(data)
}

fn kind(sample: &Sample) -> CertifiedKind {
    match sample.kind {
        SampleKind::Failure => CertifiedKind::Failure,
        SampleKind::Clean => CertifiedKind::Clean,
        SampleKind::Benign => CertifiedKind::Benign,
        SampleKind::Decoy => CertifiedKind::Decoy,
    }
}

fn culprits(sample: &Sample) -> Vec<Culprit> {
    let errors = sample.label.iter().flat_map(|label| &label.errors);
    let culprit = errors.map(|error| Culprit {
        agent: Some(error.agent.as_str().to_owned()),
        step: error.step,
        mode: error.failure_mode.as_ref().map(|mode| mode.code.clone()),
    });
    culprit.collect()
}

/// What cannot certify anybody is said before a model is asked.
fn refuse_unfit(data: &CertifiedData, path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let count = |kind| data.count(kind);
    if data.unproven > 0 {
        let error = format!("`{name}` holds {} whose label is not proven", counted(data.unproven, "failure"));
        let hint = format!("aegis prove {} --check CMD -- CMD", shell_word(&path.to_string_lossy()));
        return Err(Failure::new(Exit::Usage, error).hint(hint));
    }
    for (kind, what) in [(CertifiedKind::Failure, "proven failure"), (CertifiedKind::Clean, "clean run")] {
        if count(kind) == 0 {
            let error = format!("`{name}` holds no {what}: nobody can be certified by it");
            return Err(Failure::new(Exit::Usage, error).hint("a campaign makes both: `aegis campaign FILE --seed N`"));
        }
    }
    Ok(())
}

/// A tracer that was trained on the runs knows them.
fn refuse_trained(tracers: &TracerArgs, data: &CertifiedData) -> Result<(), Failure> {
    for file in tracers.tracer.iter().flat_map(|tracer| trained::rows_of(Path::new(tracer))) {
        let unread = |error: std::io::Error| {
            Failure::new(Exit::Usage, format!("cannot read the rows of `{}`: {error}", file.display()))
        };
        let known = row_ids(&file).map_err(unread)?.iter().filter(|id| data.runs.contains_key(*id)).count();
        if known > 0 {
            let error = format!(
                "`{}` holds {} of the data set: a judge that learnt from them is not measured by them",
                escape(&file.display().to_string()),
                counted(known, "run")
            );
            return Err(Failure::new(Exit::Usage, error).hint("make fresh ones: `aegis campaign FILE --seed N`"));
        }
    }
    Ok(())
}

/// Asks the judge about every run, as `aegis attribute` asks.
fn ask(arguments: &CertifyArgs, global: &Global) -> Result<String, Failure> {
    let wanted = "name one judge: `--tracer NAME|FILE`, `--method NAME`, or its `--answers FILE`";
    if arguments.tracers.tracer.len() + usize::from(arguments.method.is_some()) != 1 {
        return Err(Failure::new(Exit::Usage, "a certificate is of one judge").hint(wanted));
    }
    let methods = arguments.method.iter().cloned().collect();
    let asking = AttributeArgs::after(&arguments.dataset, methods, arguments.judge.clone())
        .traced_by(arguments.tracers.clone())
        .with_references(Vec::new(), arguments.prior.clone())
        .of_every_kind(arguments.jobs);
    let answers = attribute::rows_of(&asking, global)?;
    refuse_unasked(&answers)?;
    Ok(answers)
}

/// What a budget or a place that cannot be reached left out says nothing of the judge.
fn refuse_unasked(answers: &str) -> Result<(), Failure> {
    let why: Vec<Option<String>> = document::rows(answers)
        .map(|row| row.pointer("/abstained/why").and_then(Value::as_str).map(str::to_owned))
        .collect();
    let count = |kind: &str| why.iter().filter(|why| why.as_deref() == Some(kind)).count();
    if count("budget") > 0 {
        let error = format!("the budget ended before {} of {} runs were asked about", count("budget"), why.len());
        let hint = "a larger `--budget`; with `--cassette DIR`, what was answered is not asked again";
        return Err(Failure::new(Exit::Budget, error).hint(hint));
    }
    if count("unanswered") + count("timed_out") == why.len() {
        let error = "the judge answered nothing: nothing was measured";
        return Err(Failure::new(Exit::Infrastructure, error).hint("`aegis doctor --upstream URL` says what is wrong"));
    }
    Ok(())
}

/// The runs with what the judge said of each.
fn answered(data: &CertifiedData, answers: &str) -> Result<Vec<CertifiedRun>, Failure> {
    let unread = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("the answers: {error}"));
    let of_one = score::read::of_method(answers, None).map_err(|error| match error {
        ChoiceError::Several(methods) => {
            let error = format!("the answers are of {}, and a certificate is of one judge", methods.join(", "));
            Failure::new(Exit::Usage, error)
                .hint("ask each in a call of its own: `aegis certify DATASET --method NAME`")
        }
        error => unread(&error),
    })?;
    let mut said: BTreeMap<String, PredictedAnswer> = BTreeMap::new();
    for prediction in score::read::predictions(&of_one).map_err(|error| unread(&error))? {
        // Whoever answers twice could have the better one counted.
        if let Some(id) = said.insert(prediction.id.clone(), prediction.answer).map(|_| prediction.id) {
            return Err(unread(&format!("two are about the run `{}`", escape(&id))));
        }
    }
    let mut sure: BTreeMap<String, f64> = BTreeMap::new();
    for row in document::rows(answers) {
        let Some(id) = row.get("id").and_then(Value::as_str) else { continue };
        if document::says_nobody(&row) {
            said.insert(id.to_owned(), PredictedAnswer::Set(Vec::new()));
        }
        if let Some(share) = document::confidence(&row) {
            sure.insert(id.to_owned(), share);
        }
    }
    let runs = data.runs.iter().map(|(id, (kind, culprits))| CertifiedRun {
        kind: *kind,
        culprits: culprits.clone(),
        answer: said.get(id).cloned(),
        confidence: sure.get(id).copied(),
    });
    let runs: Vec<CertifiedRun> = runs.collect();
    if runs.iter().all(|run| run.answer.is_none()) {
        return Err(unread(&"none of them is about a run of the data set"));
    }
    Ok(runs)
}

fn write(dir: &Path, certificate: &Certificate, answers: &str) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Recording, format!("cannot write into `{}`: {error}", dir.display()))
    };
    fs::create_dir_all(dir).map_err(cannot)?;
    fs::write(dir.join(ANSWERS), answers).map_err(cannot)?;
    fs::write(dir.join(PAGE), page::page(certificate)).map_err(cannot)?;
    fs::write(dir.join(CERTIFICATE), certificate.text()).map_err(cannot)
}

/// Derives a certificate again, and says what differs.
fn check(dir: &Path, data: &CertifiedData, arguments: &CertifyArgs) -> Result<Finished, Failure> {
    let file = dir.join(CERTIFICATE);
    let unread = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()))
            .hint("`aegis certify DATASET --tracer NAME --out DIR` writes one")
    };
    let text = fs::read_to_string(&file).map_err(|error| unread(&error))?;
    let stated: Value = serde_json::from_str(&text).map_err(|error| unread(&error))?;
    let answers = fs::read_to_string(dir.join(ANSWERS)).map_err(|error| unread(&error))?;
    let least = stated.pointer("/certification/least").and_then(Value::as_f64).unwrap_or(arguments.least);
    let reveal = stated.pointer("/data/revealed_seed").is_some();
    let derived = answered(data, &answers)
        .map(|runs| Certificate::new(data, &runs, &answers, least, reveal).stated_as(&stated))
        .map(|certificate| json!(certificate));
    let mut differing = match derived {
        Ok(derived) => document::differing(&stated, &derived),
        Err(failure) => vec![failure.error.to_string()],
    };
    let page = fs::read_to_string(dir.join(PAGE)).unwrap_or_default();
    if page::of_value(&stated).is_none_or(|own| own != page) {
        differing.push(PAGE.to_owned());
    }
    let summary = if differing.is_empty() {
        format!("`{}` follows from the data set and the answers", dir.display())
    } else {
        format!("`{}` does not follow: {}", dir.display(), escape(&differing.join(", ")))
    };
    let exit = if differing.is_empty() { Exit::Ok } else { Exit::Finding };
    Ok(Finished { exit, summary, data: printed(&CheckedCertificate { differing }) })
}
