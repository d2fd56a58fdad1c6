//! `aegis retry RUN --check CMD -- CMD…`: does it help the blamed agent to be told what it did wrong? Four arms say so; no label
//! is written.

mod arguments;
mod corpus;
mod pairs;
mod table;

use crate::cli::printed::{ForetoldArm, ForetoldRetry, RetryFile, printed};
use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

pub(super) use self::arguments::RetryArgs;
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    again::HowStarted,
    attribute::{self, AttributeArgs, JudgeArgs},
    budget::BudgetArgs,
    capability, counted,
    output::{OutputFile, Replaces},
    settings,
    settings::ProxyArgs,
    terminal,
    trial::{ExecutionSpec, ExecutionTalk, JudgedProgram, cannot_check, failed, live, say_execution},
};
use crate::{
    attribution::{
        Critique, FailedRun, RetryConductor, RetryRound, RetryRounds, RetrySpent, RetrySubject, foretell_round,
        methods::{self, Needs},
    },
    capability::RunVerb,
    dataset::{Corpus, formats},
    execution::{Console, Meter},
    plan,
    proof::ProofSample,
    recording::{Masked, MaskedFile},
    replay::Cassette,
    ruling::{self, Ruling},
    trajectory::{Label, LabelStatus, Void},
};

/// What came of it, beside the run.
const KEPT: &str = "retry.json";

/// A retry under way.
struct Retrying<'a> {
    arguments: &'a RetryArgs,
    global: &'a Global,
    executed: JudgedProgram,
    /// Where live calls go.
    proxy: ProxyArgs,
    meter: Arc<Meter>,
    spent: RetrySpent,
    pairs: Vec<Value>,
    /// Where they go, if anywhere.
    file: Option<OutputFile<'a>>,
}

pub(super) fn run(arguments: &RetryArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    if !formats::is_recording(&arguments.dir) && Corpus::is_at(&arguments.dir) {
        return corpus::run(arguments, global);
    }
    if arguments.tracers.tracer.len() > 1 {
        return Err(Failure::new(Exit::Usage, "the retry of one run asks one tracer").hint("one --tracer"));
    }
    retry_run(arguments, None, global).map(|(finished, _)| finished)
}

/// Retries one run; its first round, where one was made. One of several spends from a meter of them all.
fn retry_run(
    arguments: &RetryArgs,
    shared: Option<&Arc<Meter>>,
    global: &Global,
) -> Result<(Finished, Option<RetryRound>), Failure> {
    let replaces = Replaces::OnRequest(arguments.overwrite);
    let file = arguments.preferences.as_deref().map(|path| OutputFile::named(path, replaces)).transpose()?;
    let cassette = arguments.matching.open(&arguments.dir, global.quiet)?;
    require(arguments, &cassette)?;
    let (recorded, execute) = (HowStarted::read(&arguments.dir)?, &arguments.execute);
    let mut proxy = live(&execute.proxy, execute.again, &cassette, &arguments.dir)?;
    proxy.log_dir = Some(proxy.beneath(&arguments.dir, cassette.run()).join("retry"));
    let limits = execute.budget.limits()?;
    let meter = shared.map_or_else(|| Meter::within(limits.budget, execute.budget.price), |all| all.part());
    let spent = RetrySpent::default();
    let executed = execute.executed(&recorded, "retry", "a retry", arguments.dry_run)?;
    // What the first round would be refused for.
    proxy.proxy(None)?;
    match &arguments.critique {
        Some(file) => require_place(&of_file(file, arguments, &cassette)?, &cassette)?,
        None => method(arguments, &arguments.dir, judge(arguments, &proxy, &meter, &cassette)).require_judge()?,
    }
    say_execution(&recorded, execute.again, &proxy, global.quiet);
    let executed = match executed {
        ExecutionSpec::Whole(executed) if !arguments.dry_run => executed,
        executed => return dry(arguments, global, &cassette, &executed).map(|finished| (finished, None)),
    };
    let mut retrying = Retrying { arguments, global, executed, proxy, meter, spent, pairs: Vec::new(), file };
    let most = if arguments.critique.is_some() { 1 } else { arguments.rounds };
    let failed = FailedRun { dir: arguments.dir.clone(), cassette };
    let retried = RetryRounds::conduct(&mut retrying, failed, most)?;
    let finished = retrying.finish(&retried)?;
    Ok((finished, retried.rounds.into_iter().next()))
}

/// What cannot be retried is said before anything is executed.
fn require(arguments: &RetryArgs, cassette: &Cassette) -> Result<(), Failure> {
    capability::require(RunVerb::Retry, cassette.recording(), &arguments.dir)?;
    require_method(arguments)?;
    arguments.settings().map(|_| ())
}

/// A method that there is not, or that gives the answer away, is refused.
fn require_method(arguments: &RetryArgs) -> Result<(), Failure> {
    if arguments.critique.is_some() {
        return Ok(());
    }
    let taken = || methods::ALL.iter().filter(|method| method.needs() != Needs::OtherRuns).map(|method| method.name());
    let hint = || format!("--method {}", taken().collect::<Vec<_>>().join("|"));
    let named = method(arguments, &arguments.dir, JudgeArgs::default());
    let named = named.methods().map_err(|failure| failure.hint(hint()))?;
    if named.first().is_some_and(|method| method.needs() == Needs::OtherRuns) {
        let method = arguments.method_name();
        let error = format!("`{method}` speaks with the words of runs that passed: they give the answer away");
        return Err(Failure::new(Exit::Usage, error).hint(hint()));
    }
    Ok(())
}

/// What the method is asked of a run.
fn method(arguments: &RetryArgs, dir: &Path, judge: JudgeArgs) -> AttributeArgs {
    let methods =
        if arguments.tracers.tracer.is_empty() { vec![arguments.method_name().to_owned()] } else { Vec::new() };
    AttributeArgs::after(dir, methods, judge).traced_by(arguments.tracers.clone())
}

/// The judge of a method that asks one: the run's own upstream, or another that is named, within what is left.
fn judge(arguments: &RetryArgs, proxy: &ProxyArgs, meter: &Meter, cassette: &Cassette) -> JudgeArgs {
    let named = &arguments.judge;
    let url = named.judge.clone().or_else(|| proxy.upstream.clone()).unwrap_or_default();
    let model = named.judge_model.clone().or_else(|| attribute::model_of(cassette.recording()));
    let logs = proxy.log_dir.clone().unwrap_or_else(|| PathBuf::from("logs"));
    let config = arguments.execute.proxy.config.clone();
    JudgeArgs::of_upstream(url, model, named.judge_key_env.clone(), logs, config)
        .with_parameters(named.judge_parameter.clone())
        .spending(BudgetArgs::from_budget(meter.remaining(), arguments.execute.budget.price))
}

/// Whether a label is the verified claim of a trace: the correction of its step turned the outcome.
fn is_traced(label: &Label) -> bool {
    label.status == LabelStatus::Verified && label.definition != ruling::PLANTED
}

/// The critique of a file.
fn of_file(file: &Path, arguments: &RetryArgs, cassette: &Cassette) -> Result<Critique, Failure> {
    let usage = |error: String| Failure::new(Exit::Usage, format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| usage(error.to_string()))?;
    let steps = &cassette.recording().trajectory.steps;
    Critique::from_file(&text, arguments.at, steps, arguments.answer.as_deref())
        .map_err(|error| usage(error.to_string()))
}

/// A note that the blamed step cannot take is said now: three arms without it would say nothing.
fn require_place(critique: &Critique, cassette: &Cassette) -> Result<(), Failure> {
    let step = cassette.recording().trajectory.steps.iter().find(|step| step.step == critique.step);
    let why = step.map_or(Ok(()), |step| plan::note(step, &critique.note).map(|_| ()));
    why.map_err(|why| {
        Failure::new(Exit::Usage, format!("step {} of {} can take no note: {why}", critique.step, critique.agent))
    })
}

/// What it would cost at most. A method's judge is not asked for it: the dearest step stands for the one that it would name.
fn dry(
    arguments: &RetryArgs,
    global: &Global,
    cassette: &Cassette,
    executed: &ExecutionSpec,
) -> Result<Finished, Failure> {
    let supposed = match &arguments.critique {
        Some(file) => vec![of_file(file, arguments, cassette)?],
        None => cassette
            .recording()
            .trajectory
            .steps
            .iter()
            .map(|step| Critique {
                agent: step.attribution.agent.clone(),
                step: step.step,
                note: "a note".to_owned(),
                source: arguments.critic_name().to_owned(),
            })
            .collect(),
    };
    let priced = supposed.iter().map(|critique| (critique, foretell_round(cassette, critique, arguments.samples)));
    let dearest = priced.max_by_key(|(_, arms)| arms.values().map(|(_, calls)| calls).sum::<u64>());
    let Some((critique, arms)) = dearest else {
        return Err(Failure::new(Exit::Usage, "no step of the run can take a note"));
    };
    let rounds = if arguments.critique.is_some() { 1 } else { u64::from(arguments.rounds) };
    let (executions, calls) = arms.values().fold((0, 0), |(runs, calls), (more, cost)| (runs + more, calls + cost));
    if global.format == OutputFormat::Text {
        let mut out = terminal::stdout();
        let lines = arms
            .iter()
            .map(|(arm, (runs, calls))| format!("  {:<20} {runs} executions, {calls} live calls\n", arm.name()));
        let text = lines.collect::<String>();
        write!(
            out,
            "a round that blames step {}, where each execution makes as many calls as were recorded\n{text}",
            critique.step
        )
        .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let (executions, calls) = (rounds * executions, rounds * calls);
    let judged = if arguments.critique.is_some() { "" } else { ", and what the method's judge is asked" };
    let summary = format!(
        "at most {executions} executions, {calls} live calls in {}, where none makes more calls than were recorded{judged}; \
         nothing was executed{}",
        counted(usize::try_from(rounds).unwrap_or(usize::MAX), "round"),
        executed.needs()
    );
    let arms = arms.iter().map(|(arm, (runs, calls))| ForetoldArm { arm: *arm, executions: *runs, calls: *calls });
    let data = printed(&ForetoldRetry { rounds, executions, calls, step: critique.step, arms: arms.collect() });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

impl RetryConductor for Retrying<'_> {
    type Error = Failure;

    fn critique(&mut self, failed: &FailedRun) -> Result<Result<Critique, String>, Failure> {
        let FailedRun { dir, cassette } = failed;
        let arguments = self.arguments;
        if let Some(file) = &arguments.critique {
            return of_file(file, arguments, cassette).map(Ok);
        }
        let steps = &cassette.recording().trajectory.steps;
        let ruling = Ruling::new(cassette.recording());
        // What was executed outranks what is suspected, but not whoever is named.
        let holds = |label: &&Label| arguments.takes_label() && is_traced(label) && ruling.objects_to(label).is_none();
        if let Some(label) = cassette.recording().label.as_ref().filter(holds) {
            let critique = Critique::from_label(label, steps, arguments.answer.as_deref());
            return Ok(critique.map_err(|why| format!("the label gives no note for {}: {why}", dir.display())));
        }
        let asked = method(arguments, dir, judge(arguments, &self.proxy, &self.meter, cassette));
        let (_, rows, calls) = attribute::of_recording(&asked, self.global)?;
        let usage = attribute::usage_of(&rows);
        self.meter.charge(calls, usage);
        self.spent.calls += calls;
        self.spent.tokens += usage.input + usage.output;
        self.spent.money += rows.iter().filter_map(|row| row.cost).sum::<f64>();
        let why = match rows.first() {
            None => "it says nothing".to_owned(),
            Some(row) => match (row.predictions.first(), &row.abstained) {
                (Some(found), _) => {
                    match Critique::from_prediction(found, &row.method, steps, arguments.answer.as_deref()) {
                        Ok(critique) => return Ok(Ok(critique)),
                        Err(error) => error.to_string(),
                    }
                }
                (None, why) => serde_json::to_string(why).unwrap_or_default(),
            },
        };
        Ok(Err(format!("`{}` gives no note for {}: {why}", arguments.critic_name(), dir.display())))
    }

    fn round(&mut self, number: u32, critique: Critique, failed: &FailedRun) -> Result<RetryRound, Failure> {
        require_place(&critique, &failed.cassette)?;
        self.say_begin(number, &critique);
        let round = self.execute(number, critique, &failed.cassette)?;
        if let Some(said) = round.unrunnable_check.as_ref().filter(|_| round.gain.is_none()) {
            return Err(cannot_check(said));
        }
        self.pairs.extend(pairs::for_round(&round, failed.cassette.recording())?);
        Ok(round)
    }

    fn open(&self, dir: &Path) -> Result<Arc<Cassette>, Failure> {
        self.arguments.matching.open(dir, true)
    }
}

impl Retrying<'_> {
    fn execute(&mut self, number: u32, critique: Critique, cassette: &Arc<Cassette>) -> Result<RetryRound, Failure> {
        let settings = self.arguments.settings()?;
        let (proxy, _) = self.proxy.proxy(None)?;
        let (meter, mut spent) = (Arc::clone(&self.meter), self.spent);
        let round = settings::block_on(async {
            let reference = self.arguments.matching.reference(self.global.quiet);
            let system =
                self.arguments.execute.system(self.executed.clone(), proxy, Console::default(), reference).await?;
            let subject = RetrySubject { system: Arc::new(system), cassette: Arc::clone(cassette), settings, meter };
            let talk = ExecutionTalk { quiet: self.global.quiet };
            subject.round(number, critique, &mut spent, &talk).await.map_err(failed)
        })??;
        self.spent = spent;
        Ok(round)
    }

    fn say_begin(&self, number: u32, critique: &Critique) {
        if !self.global.quiet {
            let from = if number == 1 { "; tools and all they do run again in each execution" } else { "" };
            let line = format!(
                "round {number}  {} at step {} is told: {}{from}",
                critique.agent, critique.step, critique.note
            );
            talkln!("{}", super::escape(&line));
            if number == 1 && self.arguments.answer.is_none() {
                talkln!("         without --answer nobody can tell whether the note gives the right answer away");
            }
        }
    }

    fn finish(self, RetryRounds { rounds, ended }: &RetryRounds) -> Result<Finished, Failure> {
        let repaired = rounds.iter().find(|round| round.is_repaired());
        let out_of_budget = rounds.iter().any(|round| round.out_of_budget);
        if self.global.format == OutputFormat::Text {
            let mut out = terminal::stdout();
            let written = rounds.iter().try_for_each(|round| table::write(round, &mut out));
            written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
        if let Some(why) = ended {
            talkln!("ended    {}", super::escape(why));
        }
        let data = printed(&RetryFile {
            format: 1,
            run: self.arguments.dir.file_name().map(|name| name.to_string_lossy().into_owned()),
            origin: "feedback",
            repaired_in_round: repaired.map(|round| round.round),
            rounds,
            spent: self.spent,
            out_of_budget,
            ended,
            pairs: self.pairs.len(),
        });
        let path = self.arguments.dir.join(KEPT);
        let unkept = |error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display()));
        Masked::json_pretty(&data).and_then(|text| MaskedFile::replace(&path, &text)).map_err(unkept)?;
        let mut parts = vec![match repaired.or(rounds.last()) {
            Some(round) if round.is_repaired() => format!("passed with the note in round {}", round.round),
            Some(round) if !round.is_tried() => format!("not known in round {}: {}", round.round, round.untold()),
            Some(round) => format!("never passed with the note in {}", counted(round.round as usize, "round")),
            None => "not retried: there is no note".to_owned(),
        }];
        parts.extend(repaired.or(rounds.last()).map(|round| format!("gain {}", table::gain(round))));
        parts.push(format!("{} executions, {} live calls", self.spent.runs, self.spent.calls));
        if let Some(file) = &self.file {
            pairs::write(file, &self.pairs)?;
            parts.push(format!("{} pairs", self.pairs.len()));
        }
        Ok(Finished { exit: exit(rounds, out_of_budget), summary: parts.join("  "), data })
    }
}

/// Repaired is well; nothing known because nobody answered, or because the budget ended it, is neither.
fn exit(rounds: &[RetryRound], out_of_budget: bool) -> Exit {
    let samples: Vec<ProofSample> = rounds.iter().flat_map(|round| &round.executions).map(|one| one.sample).collect();
    let unserved = |sample: &ProofSample| matches!(sample, ProofSample::Void(Void::Unanswered | Void::TimedOut));
    match () {
        () if rounds.iter().any(RetryRound::is_repaired) => Exit::Ok,
        () if out_of_budget => Exit::Budget,
        () if !samples.is_empty() && samples.iter().all(unserved) => Exit::Infrastructure,
        () => Exit::Finding,
    }
}
