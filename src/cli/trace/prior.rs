//! What makes steps suspicious before anything is executed: methods that read the log, predictions, what was learned.

use std::path::{Path, PathBuf};

use super::{TraceArgs, prior_args::PriorArgs};
use crate::{
    attribution::{
        Attributed, LabelRule, Prior, PriorRanking,
        methods::{self, LoggedRun, Needs},
        order_name,
    },
    cli::{
        Exit, Failure, Global,
        attribute::{self, AttributeArgs, JudgeArgs},
        budget::BudgetArgs,
        escape, trial,
    },
    dataset::Task,
    launch::shell_word,
    proof::Order,
    replay::Cassette,
    score::read,
    trajectory::{Usage, nearest},
};

/// A prior, and the questions that it took.
#[derive(Debug)]
pub(super) struct PriorResult {
    pub(super) prior: Prior,
    /// Asked live.
    pub(super) calls: u64,
    /// Their tokens.
    pub(super) usage: Usage,
}

/// The parts of a prior, by what they are.
#[derive(Debug, Default)]
struct PriorSources {
    methods: Vec<String>,
    files: Vec<PathBuf>,
    ranker: Option<PathBuf>,
}

impl TraceArgs {
    /// The order of the search.
    ///
    /// # Errors
    /// A prior, and an order that does not heed it.
    pub(super) fn order(&self) -> Result<Order, Failure> {
        match self.order.map(Order::from) {
            None if !self.prior.is_asked() => Ok(Order::default()),
            None | Some(Order::BestFirst) => Ok(Order::BestFirst),
            Some(order) if !self.prior.is_asked() => Ok(order),
            Some(order) => {
                let error = format!("--order {} heeds no prior", order_name(order));
                Err(Failure::new(Exit::Usage, error).hint("leave --order out: --prior searches best-first"))
            }
        }
    }
}

/// Makes the prior that is asked for.
///
/// # Errors
/// A name that nothing has, a file that cannot be read, a judge that cannot be asked.
pub(super) fn ask(arguments: &TraceArgs, cassette: &Cassette, global: &Global) -> Result<Option<PriorResult>, Failure> {
    if !arguments.prior.is_asked() {
        return Ok(None);
    }
    let sources = sources(&arguments.prior.prior)?;
    let asked = |judge| {
        AttributeArgs::after(&arguments.dir, sources.methods.clone(), judge).traced_by(arguments.prior.tracers.clone())
    };
    let chosen = asked(JudgeArgs::none()).methods()?;
    let asking = chosen.iter().find(|method| method.needs() == Needs::Model);
    if let Some(asking) = asking.filter(|_| arguments.dry_run) {
        let error = format!("`{}` asks a model, and a dry run asks nobody", asking.name());
        let (run, method) = (shell_word(&arguments.dir.to_string_lossy()), asking.option());
        return Err(Failure::new(Exit::Usage, error).hint(format!(
            "`aegis attribute {run} {method} --upstream URL --model NAME --dry-run` says what it would ask"
        )));
    }
    let recording = cassette.recording();
    let (run, rows, calls) = if chosen.is_empty() {
        (LoggedRun::recorded(recording, Task::default(), false)?, Vec::new(), 0)
    } else {
        let judge = if asking.is_some() { judge(arguments, cassette)? } else { JudgeArgs::none() };
        let against: Vec<PathBuf> = arguments.source.twin.iter().cloned().collect();
        attribute::of_recording(&asked(judge).with_references(against, sources.ranker.clone()), global)?
    };
    let mut said: Vec<PriorRanking> = rows.iter().map(of_row).collect();
    for file in &sources.files {
        said.push(of_file(file, recording.manifest.run.as_str())?);
    }
    let prior = Prior::fused(&run, said);
    if !global.quiet {
        talk(&prior, arguments);
    }
    Ok(Some(PriorResult { prior, calls, usage: attribute::usage_of(&rows) }))
}

/// Tells methods from files.
fn sources(named: &[String]) -> Result<PriorSources, Failure> {
    let mut sources = PriorSources::default();
    for name in named.iter().map(|name| name.trim()) {
        let ends = |end: &str| Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
        match () {
            () if ends("toml") => {
                if sources.ranker.replace(name.into()).is_some() {
                    return Err(Failure::new(
                        Exit::Usage,
                        "--prior takes one file that `aegis learn` wrote, not several",
                    ));
                }
                sources.methods.push("learned".to_owned());
            }
            () if ends("jsonl") || ends("json") => sources.files.push(name.into()),
            () if name == "learned" => {
                return Err(Failure::new(Exit::Usage, "`learned` ranks by a file that `aegis learn` wrote")
                    .hint("name the file: --prior prior.toml"));
            }
            () if methods::method(name).is_some() => sources.methods.push(name.to_owned()),
            () => {
                let near = nearest(name, methods::ALL.iter().map(|method| method.name()));
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let error = format!("--prior `{name}` is no method, no .jsonl and no .toml{near}");
                return Err(
                    Failure::new(Exit::Usage, error).hint("`aegis attribute --list` says which methods there are")
                );
            }
        }
    }
    Ok(sources)
}

/// The trace's own upstream as the judge, within what is left to spend.
fn judge(arguments: &TraceArgs, cassette: &Cassette) -> Result<JudgeArgs, Failure> {
    let PriorArgs { prior_model, prior_cassette, prior_parameter, .. } = &arguments.prior;
    let proxy = trial::live(&arguments.execute.proxy, arguments.execute.again, cassette, &arguments.dir)?;
    let model = prior_model.clone().or_else(|| attribute::model_of(cassette.recording()));
    let logs = super::beneath(proxy.clone(), arguments, cassette).log_dir.unwrap_or_default();
    let config = crate::cli::config::Config::load(proxy.config.as_deref())?;
    let judge =
        JudgeArgs::of_upstream(proxy.upstream_url(&config), model, config.upstream.key_env, logs, proxy.config.clone());
    let judge = judge.with_parameters(prior_parameter.clone());
    let budget = &arguments.execute.budget;
    let spending = BudgetArgs::from_budget(budget.limits()?.budget, budget.price);
    Ok(judge.with_cassette(prior_cassette.clone()).spending(spending))
}

fn of_row(row: &Attributed) -> PriorRanking {
    PriorRanking {
        by: row.method.clone(),
        steps: row.predictions.iter().filter_map(|found| found.step).collect(),
        abstained: row.abstained.as_ref().map(|why| format!("{}: {}", why.name(), why.reason())),
    }
}

/// What a file of predictions says of this run, all its methods one after the other.
fn of_file(path: &Path, run: &str) -> Result<PriorRanking, Failure> {
    let by = path.display().to_string();
    let unread = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("cannot read `{by}`: {error}"));
    let text = std::fs::read_to_string(path).map_err(|error| unread(&error))?;
    let predictions = read::predictions(&text).map_err(|error| unread(&error))?;
    let mut steps: Vec<u32> = Vec::new();
    let own = predictions.iter().filter(|prediction| prediction.id == run);
    for step in own.flat_map(|prediction| prediction.answer.guesses()).filter_map(|guess| guess.step) {
        if let Some(step) = u32::try_from(step).ok().filter(|step| !steps.contains(step)) {
            steps.push(step);
        }
    }
    if steps.is_empty() {
        let error = format!("`{by}` names no step of the run `{run}`");
        return Err(Failure::new(Exit::Usage, error)
            .hint("its rows name their run as `id`; aegis attribute RUN --out writes such"));
    }
    Ok(PriorRanking { by, steps, abstained: None })
}

/// Says what the prior is, and where it is of no use.
fn talk(prior: &Prior, arguments: &TraceArgs) {
    for said in &prior.rankings {
        let steps = said.steps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let what = said.abstained.clone().unwrap_or_else(|| format!("steps {steps}"));
        talkln!("{}", escape(&format!("prior    {}: {what}", said.by)));
    }
    if arguments.label != LabelRule::Flip {
        talkln!(
            "note     --label {} has every other step cleared, in whatever order: a prior saves executions with --label flip",
            arguments.label.name()
        );
    }
}
