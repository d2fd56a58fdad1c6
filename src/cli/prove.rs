//! `aegis prove RUN|DATASET -- CMD`: execute a labelled run's injection again, and the same beginning without it, until it is
//! shown that the injection made the run fail, or until that can be shown no more.

mod rows;

use crate::cli::printed::{PrintedProof, printed};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global,
    again::HowStarted,
    asking::AskingArgs,
    capability,
    corpus::CorpusArgs,
    matching::MatchArgs,
    screen,
    settings::{self, ProxyArgs},
    trial::{ExecuteArgs, JudgedProgram, failed, live, say_execution},
};
use crate::{
    attribution::{ProofOf, Proved, Proving, RecordedProof},
    capability::RunVerb,
    execution::{Console, Judge, Meter},
    plan::{self, RecordedCall},
    proof::{Terms, in_words},
    recording::{self, Masked, MaskedFile, RecordedCheck, RunFile},
    replay::Cassette,
    ruling,
    trajectory::{Evidence, Label, Standing, Step},
};

/// What was executed, beside the run: a later `prove` of the same check, command and upstream goes on from it.
const KEPT: &str = "proof.json";

/// Options of `prove`.
#[derive(Debug, Args)]
pub(super) struct ProveArgs {
    /// Labelled run's directory, a directory of runs, or a data set with recordings in `logs/` beside it. Of several
    /// runs, failures that are unverified, or verified under an earlier rule, are proven; `{question}` and `{answer}`
    /// in command and check stand for the task's.
    #[arg(value_name = "RUN|DATASET")]
    path: PathBuf,
    #[command(flatten)]
    corpus: CorpusArgs,
    /// Maximum expected share of wrong rows in a data set.
    #[arg(long, value_name = "A", default_value_t = 0.01)]
    alpha: f64,
    /// Maximum pairs per claim.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pairs: u32,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    asking: AskingArgs,
    #[command(flatten)]
    execute: ExecuteArgs,
}

pub(super) fn run(arguments: &ProveArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let terms = Terms { alpha: arguments.alpha, pairs: arguments.pairs, ..Terms::default() };
    let terms = terms.checked().map_err(|bad| Failure::new(Exit::Usage, bad))?;
    if !arguments.path.join("log.jsonl").is_file() && !arguments.path.join("log.jsonl.zst").is_file() {
        let dataset = arguments.corpus.open(&arguments.path, global.quiet)?;
        return rows::run(&dataset, arguments, terms, global);
    }
    let cassette = arguments.matching.open(&arguments.path, global.quiet)?;
    capability::require(RunVerb::Prove, cassette.recording(), &arguments.path)?;
    let (recorded, execute) = (HowStarted::read(&arguments.path)?, &arguments.execute);
    let judge = execute.trial.required_judge(&recorded, execute.again, "a proof")?;
    let program = recorded.required(&execute.command, execute.again, "prove")?;
    let upstream = live(&execute.proxy, execute.again, &cassette, &arguments.path)?;
    say_execution(&recorded, execute.again, &upstream, global.quiet);
    let meter = execute.budget.meter()?;
    let executed = JudgedProgram { program, judge };
    let (label, proved) = prove(&arguments.path, &cassette, executed, arguments, &meter, terms, global)?;
    let arms = [&proved.executed.treated, &proved.executed.control];
    if let Some(why) = arms.iter().find_map(|arm| arm.most_void()).filter(|_| !global.quiet) {
        let dir = crate::launch::shell_word(&arguments.path.to_string_lossy());
        talkln!("void     {}", super::escape(&why.remedy(&dir)));
    }
    let control = &proved.executed.control;
    if control.failed > 0 && control.passed > 0 && proved.standing != Standing::Verified && !global.quiet {
        talkln!(
            "note     {} of {} runs without the injection failed: they differ from each other in neutral changes (blanks, a neutral \
             sentence) and by chance. A check or a program that minds blanks fails by them",
            control.failed,
            control.failed + control.passed
        );
    }
    let words = in_words(&proved.executed, "without", "with");
    let name = word(proved.standing);
    let summary = format!("label {name}: {words}  {} executions made", proved.runs);
    let exit = exit(&proved);
    Ok(Finished {
        exit,
        summary,
        data: printed(&PrintedProof { label: &label, standing: proved.standing, runs: proved.runs }),
    })
}

/// Proves one run, and writes its label.
fn prove(
    dir: &Path,
    cassette: &Arc<Cassette>,
    executed: JudgedProgram,
    arguments: &ProveArgs,
    meter: &Arc<Meter>,
    terms: Terms,
    global: &Global,
) -> Result<(Label, Proved), Failure> {
    let unproven = |error: String| Failure::new(Exit::Usage, format!("`{}`: {error}", dir.display()));
    capability::require(RunVerb::Prove, cassette.recording(), dir)?;
    let label = recording::read_label(dir)?.ok_or_else(|| unproven("no label".to_owned()))?;
    let plan = planned(cassette).map_err(unproven)?;
    let proxy = live(&arguments.execute.proxy, arguments.execute.again, cassette, dir)?;
    let sentences = arguments.execute.sentences()?.digest().unwrap_or_default();
    let of = ProofOf { sentences, ..proof_of(&executed.judge, &executed.program.command, proxy.upstream.as_deref()) };
    // The run itself was executed without neutral changes.
    let made_alike =
        of_record(cassette).is_some_and(|recorded| ProofOf { sentences: of.sentences.clone(), ..recorded } == of);
    let logs = Some(proxy.beneath(dir, cassette.run()).join("proof"));
    let (proxy, _) = ProxyArgs { log_dir: logs, asking: arguments.asking.clone(), ..proxy }.proxy(None)?;
    let (kept, others) = recorded_proofs(dir, &of)?;
    let quiet = global.quiet;
    if kept.begun == 0 && !quiet {
        tell_anew(dir, &of, &others);
    }
    let proved = settings::block_on(async {
        let system = arguments
            .execute
            .system(executed, proxy, Console::default(), arguments.matching.reference(global.quiet))
            .await?;
        let (system, meter, label) = (Arc::new(system), Arc::clone(meter), label.clone());
        let proving = Proving { system, meter, cassette: Arc::clone(cassette), label, plan, terms, of, made_alike };
        proving.check().map_err(|why| Failure::new(Exit::Usage, format!("`{}`: {why}", dir.display())))?;
        let mut unwritten = None;
        let mut said = (kept.whole.treated.len(), kept.whole.control.len());
        let mut keep = |kept: &RecordedProof| {
            unwritten = write(dir, &others, kept).err().or(unwritten.take());
            let arms = (kept.whole.treated.len(), kept.whole.control.len());
            if !quiet && std::mem::replace(&mut said, arms) != arms {
                let line = format!("proved   {}  with {} runs, without {}", dir.display(), arms.0, arms.1);
                screen::say_at_once(&line);
            }
        };
        let proved = proving.run(kept, &mut keep).await.map_err(failed)?;
        unwritten.map_or(Ok(proved), Err)
    })??;
    let evidence = evidence(&label, &proved);
    let label = ruling::settle_proof(dir, label, Some(proved.standing), evidence)?;
    Ok((label, proved))
}

/// The plan that the run's record holds, with its calls counted in the run.
fn planned(cassette: &Cassette) -> Result<Option<plan::Plan>, String> {
    let recording = cassette.recording();
    let Some(text) = &recording.manifest.plan else { return Ok(None) };
    let plan = plan::parse(text, "run.json").map_err(|error| format!("its plan cannot be read: {error}"))?;
    let called = |step: &Step| RecordedCall {
        agent: step.attribution.agent.as_str().to_owned(),
        instance: step.attribution.instance,
        call: step.call,
        step: step.step,
    };
    let calls: Vec<RecordedCall> = recording.trajectory.steps.iter().map(called).collect();
    plan::resolve(&plan, &calls).map(Some).map_err(|error| error.to_string())
}

/// What the label rests on now.
fn evidence(label: &Label, proved: &Proved) -> Evidence {
    let former = label.evidence.clone().unwrap_or_default();
    let mut counts_as_equal = former.counts_as_equal;
    counts_as_equal.extend(proved.counts_as_equal.clone());
    counts_as_equal.sort();
    counts_as_equal.dedup();
    Evidence {
        counts_as_equal,
        executed: Some(proved.executed.clone()),
        necessity: proved.necessity.clone(),
        clean: former.clean,
        twin: former.twin,
        fork_step: former.fork_step,
        ..Evidence::default()
    }
}

/// What was executed when the run was recorded, and how it was judged, where its record says that.
fn of_record(cassette: &Cassette) -> Option<ProofOf> {
    let launched = cassette.recording().manifest.launched.as_ref()?;
    let judge = Judge::of_record(launched.check.as_ref()?).ok()?;
    let command: Vec<OsString> = launched.command.iter().map(OsString::from).collect();
    Some(proof_of(&judge, &command, launched.upstream.as_deref()))
}

/// What is executed, and how it is judged.
fn proof_of(judge: &Judge, command: &[OsString], upstream: Option<&str>) -> ProofOf {
    let digest = |words: &[&[u8]]| {
        let mut hash = blake3::Hasher::new();
        for word in words {
            hash.update(&(word.len() as u64).to_le_bytes()).update(word);
        }
        hash.finalize().to_hex().chars().take(16).collect()
    };
    let command: Vec<&[u8]> = command.iter().map(|word| word.as_encoded_bytes()).collect();
    let check = match judge.recorded() {
        Some(RecordedCheck::Command(line)) => line,
        Some(RecordedCheck::Checkers(checkers)) => checkers.to_string(),
        None => String::new(),
    };
    ProofOf {
        check: digest(&[check.as_bytes()]),
        command: digest(&command),
        upstream: digest(&[upstream.unwrap_or_default().as_bytes()]),
        perturbed: true,
        sentences: String::new(),
    }
}

/// Says why what lies there does not count: by what is most like what is asked now.
fn tell_anew(dir: &Path, of: &ProofOf, others: &[RecordedProof]) {
    let differs = |other: &RecordedProof| {
        let ProofOf { check, command, upstream, perturbed, sentences } = &other.of;
        let parts = [
            ("check", *check != of.check),
            ("command", *command != of.command),
            ("upstream", *upstream != of.upstream),
            ("rule (no neutral changes)", *perturbed != of.perturbed),
            ("list of neutral sentences", *sentences != of.sentences),
        ];
        parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect::<Vec<_>>()
    };
    let Some(differs) = others.iter().map(differs).min_by_key(Vec::len) else { return };
    let differs = differs.join(" and ");
    talkln!("anew     {}  what was executed before was with another {differs}: it does not count here", dir.display());
}

/// What was executed of just this before, and what of something else.
fn recorded_proofs(dir: &Path, of: &ProofOf) -> Result<(RecordedProof, Vec<RecordedProof>), Failure> {
    let path = dir.join(KEPT);
    let unread = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Recording, format!("cannot read `{}`: {error}", path.display()))
    };
    let mut all: Vec<RecordedProof> = match RunFile::bytes(&path) {
        // One object is what earlier versions wrote: it does not say what was executed, so nothing goes on from it.
        Ok(text) if text.trim_ascii_start().starts_with(b"{") => Vec::new(),
        Ok(text) => serde_json::from_slice(&text).map_err(|error| unread(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unread(&error)),
    };
    let same = all.iter().position(|one| one.of == *of);
    Ok((same.map(|at| all.remove(at)).unwrap_or_default(), all))
}

fn write(dir: &Path, others: &[RecordedProof], kept: &RecordedProof) -> Result<(), Failure> {
    let all: Vec<&RecordedProof> = others.iter().chain([kept]).collect();
    let path = dir.join(KEPT);
    let written = Masked::json_pretty(&all).and_then(|text| MaskedFile::replace(&path, &text));
    written.map_err(|error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display())))
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Verified => "verified",
        Standing::Contradicted => "contradicted",
        Standing::Unproven => "unproven",
        Standing::Void => "void",
    }
}

fn exit(proved: &Proved) -> Exit {
    match proved.standing {
        Standing::Verified => Exit::Ok,
        Standing::Void if proved.executed.is_unserved() => Exit::Infrastructure,
        Standing::Contradicted | Standing::Unproven | Standing::Void => Exit::Finding,
    }
}
