//! The failures of a dataset, one after another; their rows are written anew with what was shown.

use crate::cli::printed::{ProvenRows, printed};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ProveArgs, exit, prove, word};
use crate::{
    attribution::Proved,
    cli::{Exit, Failure, Finished, Global, again::HowStarted, corpus_work::CorpusWork, trial::JudgedProgram},
    dataset::{Claims, Dataset, Sample, SampleKind, Task, UnrecordedFacts, Writer},
    execution::{Judge, Meter, Program},
    proof::Terms,
    recording,
    trajectory::{Evidence, LabelStatus, Standing},
};

/// Proves each failure that needs it, and writes the dataset anew.
pub(super) fn run(
    dataset: &Dataset,
    arguments: &ProveArgs,
    terms: Terms,
    global: &Global,
) -> Result<Finished, Failure> {
    // Each run of a corpus says itself how it was made.
    let as_recorded = dataset.harvest().is_some() && arguments.execute.again.again;
    let trial = &arguments.execute.trial;
    if trial.check.is_none() && trial.verify.is_none() && !as_recorded {
        let error = "a proof needs --check CMD: without it nobody can tell whether an execution succeeded";
        return Err(Failure::new(Exit::Usage, error).hint("`{question}` and `{answer}` in it are the task's"));
    }
    if arguments.execute.command.is_empty() && !as_recorded {
        let error = "no command was given: expected `-- CMD [ARG]…` with `{question}` where the task goes";
        return Err(Failure::new(Exit::Usage, error));
    }
    arguments.execute.budget.budget()?;
    let open = dataset.samples().filter(|placed| placed.as_ref().is_ok_and(|placed| needs(&placed.sample))).count();
    let mut work = CorpusWork::begin("proven", open, arguments.execute.budget, global)?;
    let (mut samples, mut made, mut lost) = (Vec::new(), Vec::new(), 0);
    for placed in dataset.samples() {
        let placed = placed?;
        let dir = dataset.recording_dir(&placed);
        let mut sample = placed.sample;
        match dir.filter(|_| needs(&sample)) {
            None => lost += usize::from(needs(&sample)),
            Some(dir) => match proven(&sample, &dir, arguments, &work.meter, terms, global) {
                Ok((new, proved)) => {
                    work.say_done(&dir, word(proved.standing));
                    made.push(proved);
                    sample = new;
                }
                Err(failure) if dataset.harvest().is_some() => drop(work.refuse(&dir, failure)?),
                Err(failure) => return Err(failure),
            },
        }
        samples.push(sample);
    }
    if dataset.harvest().is_none() {
        rewrite(&samples, arguments, &terms)?;
    }
    let refused = work.refused;
    let count = |standing| made.iter().filter(|one| one.standing == standing).count();
    let (verified, all) = (count(Standing::Verified), made.len());
    let mut summary = vec![format!("{verified} of {all} failures verified")];
    for standing in [Standing::Contradicted, Standing::Unproven, Standing::Void] {
        if count(standing) > 0 {
            summary.push(format!("{} {}", count(standing), word(standing)));
        }
    }
    if lost > 0 {
        summary.push(format!("{lost} without a recording in logs/"));
    }
    if refused > 0 {
        summary.push(format!("{refused} could not be executed"));
    }
    let exit = match () {
        () if all > 0 && made.iter().all(|one| exit(one) == Exit::Infrastructure) => Exit::Infrastructure,
        () if verified < all || lost + refused > 0 => Exit::Finding,
        () => Exit::Ok,
    };
    Ok(Finished {
        exit,
        summary: summary.join(", "),
        data: printed(&ProvenRows { verified, proven: all, lost, refused }),
    })
}

/// Whether a row's label is not shown, or by a former rule alone.
fn needs(sample: &Sample) -> bool {
    let Some(label) = sample.label.as_ref().filter(|_| sample.kind == SampleKind::Failure) else { return false };
    let former = !label.evidence.as_ref().is_some_and(Evidence::is_perturbed);
    label.definition == "injected" && (former || label.status != LabelStatus::Verified)
}

/// The row anew.
fn proven(
    sample: &Sample,
    dir: &Path,
    arguments: &ProveArgs,
    meter: &Arc<Meter>,
    terms: Terms,
    global: &Global,
) -> Result<(Sample, Proved), Failure> {
    let execute = &arguments.execute;
    let recorded = HowStarted::read(dir)?;
    let command: Vec<OsString> = execute.command.iter().map(|word| filled(word, &sample.task)).collect();
    let program = match command.as_slice() {
        [] => recorded.required(&[], execute.again, "prove")?,
        _ => Program { command, ..Program::default() },
    };
    let check = arguments.execute.trial.check.as_ref().map(|check| {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        check.replace("{question}", &quoted(&sample.task.question)).replace("{answer}", &quoted(&sample.task.answer))
    });
    let judge = match &check {
        None => execute.trial.required_judge(&recorded, execute.again, "a proof")?,
        check => Judge::of_command(check.as_deref()),
    };
    let cassette = arguments.matching.open(dir, true)?;
    let (_, proved) = prove(dir, &cassette, JudgedProgram { program, judge }, arguments, meter, terms, global)?;
    let about = UnrecordedFacts {
        kind: sample.kind,
        system: sample.system.clone(),
        split: sample.split,
        task: sample.task.clone(),
        final_answer: sample.final_answer.clone(),
        clean_twin: sample.clean_twin.clone(),
    };
    Ok((Sample::from_recording(&recording::read(dir)?, about)?, proved))
}

fn filled(word: &OsString, task: &Task) -> OsString {
    let Some(text) = word.to_str() else { return word.clone() };
    text.replace("{question}", &task.question).replace("{answer}", &task.answer).into()
}

/// The directory of the dataset.
fn root(arguments: &ProveArgs) -> PathBuf {
    if arguments.path.is_dir() {
        return arguments.path.clone();
    }
    arguments.path.parent().map(PathBuf::from).unwrap_or_default()
}

/// Every failure that is not shown stays in the rows, by its status: `export` leaves it out.
fn rewrite(samples: &[Sample], arguments: &ProveArgs, terms: &Terms) -> Result<(), Failure> {
    let mut writer = Writer::create(&root(arguments))?;
    let (mut e_values, mut begun, mut repeatable) = (Vec::new(), 0, 0);
    for sample in samples {
        if let Some(label) = sample.label.as_ref().filter(|label| label.definition == "injected") {
            let evidence = label.evidence.as_ref();
            let repeats = evidence.is_some_and(Evidence::is_repeatable);
            begun += usize::from(!repeats);
            repeatable += usize::from(repeats && sample.kind == SampleKind::Failure);
            let shown = sample.kind == SampleKind::Failure && label.status == LabelStatus::Verified;
            e_values.extend(evidence.filter(|_| shown).and_then(Evidence::e));
        }
        writer.push(sample)?;
    }
    // Claims that were begun and left no row count all the same, where the manifest knows of them.
    let known = Dataset::open(&root(arguments)).ok().and_then(|dataset| dataset.manifest());
    let begun = known.and_then(|manifest| manifest.claims).map_or(begun, |claims| claims.begun.max(begun));
    writer.state(Claims::from_e_values(terms.alpha, begun, &e_values, repeatable));
    writer.finish()?;
    Ok(())
}
