//! What `attribute` can be told.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::judge::JudgeArgs;
use crate::{
    attribution::methods::{self, LearnedRanker, Method, Needs},
    cli::{
        Exit, Failure,
        corpus::CorpusArgs,
        tracer::{ChosenMethod, TracerArgs},
    },
    trajectory::nearest,
};

/// A context that most models have, in tokens.
const CONTEXT: u64 = 32_768;
/// How often an interval may miss.
const ALPHA: f64 = 0.2;

/// Options of `attribute`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AttributeArgs {
    /// Failed run's directory, data set, directory of runs, or Who&When files.
    #[arg(value_name = "RUN|DATASET|FILES", required_unless_present = "list")]
    pub(super) path: Option<PathBuf>,
    #[command(flatten)]
    pub(super) corpus: CorpusArgs,
    /// Methods, comma-separated. Several also give a combined row.
    #[arg(long, value_name = "METHOD", value_delimiter = ',', required_unless_present_any = ["list", "tracer"])]
    pub(super) method: Vec<String>,
    #[command(flatten)]
    pub(super) tracers: TracerArgs,
    /// List the methods.
    #[arg(long)]
    pub(super) list: bool,
    #[command(flatten)]
    pub(super) judge: JudgeArgs,
    #[command(flatten)]
    pub(super) run: RunFacts,
    /// Whether judges see the right answer, which tends to mislead them.
    #[arg(long, alias = "gold", value_enum, default_value_t = ShowAnswerArg::Off, value_name = "on|off")]
    pub(super) show_answer: ShowAnswerArg,
    /// Dialogues per judge method, at temperature 0.7. A prediction's score is its share of them.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(super) votes: u32,
    /// Reproduce that project's public script, quirks included.
    #[arg(long, value_enum, value_name = "whowhen")]
    pub(super) compat: Option<CompatArg>,
    /// Write predictions for `aegis score`, one JSON row per run and method.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Write figures and answers as an HTML page.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace existing files of `--out` and `--html`.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Context window of the judge in tokens. Longer logs are cut in layers.
    #[arg(long, default_value_t = CONTEXT, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(2_048..))]
    pub(super) context: u64,
    /// Runs to attribute in parallel.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) jobs: u32,
    /// Rows of `--out` for the same methods and system, on labelled runs. Predictions then get an interval of steps.
    #[arg(long, value_name = "ROWS", requires = "calibrate_gold")]
    pub(super) calibrate: Option<PathBuf>,
    /// Labels of those rows.
    #[arg(long, value_name = "DATASET", requires = "calibrate")]
    pub(super) calibrate_gold: Option<PathBuf>,
    /// Probability that this interval misses the true step.
    #[arg(long, default_value_t = ALPHA, value_name = "A", requires = "calibrate", value_parser = alpha)]
    pub(super) alpha: f64,
    /// Print the maximum number of questions and ask none.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Ranker of `aegis learn`, for the method `learned`.
    #[arg(long, value_name = "FILE")]
    pub(super) prior: Option<PathBuf>,
    /// Ask about clean runs, benign runs and decoys too, as `certify` does, and tell no method which runs failed.
    #[arg(long)]
    pub(super) every_kind: bool,
}

/// What a recorded run does not say of itself.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunFacts {
    /// Task of the run. Default: the first message to its first agent.
    #[arg(long, value_name = "TEXT")]
    pub(super) question: Option<String>,
    /// Right answer, for judges that see it (--show-answer on).
    #[arg(long, value_name = "TEXT", requires = "question")]
    pub(super) answer: Option<String>,
    /// Other runs of the task, for `alignment` and `spectrum`: runs, directories of runs, data sets. Default: those
    /// beside this run or in its data set.
    #[arg(long, value_name = "RUN|DIR|DATASET")]
    pub(super) against: Vec<PathBuf>,
}

/// Whether judges know the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ShowAnswerArg {
    /// Judges see it.
    On,
    /// Judges do not see it.
    Off,
}

/// Whose script is reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CompatArg {
    /// Who&When's `Automated_FA`.
    Whowhen,
}

impl AttributeArgs {
    /// What a run that has just failed is attributed with: this judge, and defaults for the rest.
    pub(in crate::cli) fn after(run: &Path, method: Vec<String>, judge: JudgeArgs) -> Self {
        Self {
            path: Some(run.to_owned()),
            corpus: CorpusArgs::default(),
            method,
            tracers: TracerArgs::default(),
            list: false,
            judge,
            run: RunFacts::default(),
            show_answer: ShowAnswerArg::Off,
            votes: 1,
            compat: None,
            out: None,
            html: None,
            overwrite: false,
            context: CONTEXT,
            jobs: 1,
            calibrate: None,
            calibrate_gold: None,
            alpha: ALPHA,
            dry_run: false,
            prior: None,
            every_kind: false,
        }
    }

    /// The same of a whole data set, so many runs at once, those with harmless changes included.
    pub(in crate::cli) fn of_every_kind(self, jobs: u32) -> Self {
        Self { every_kind: true, jobs, ..self }
    }

    /// The same, of a run that is held against these runs too, and against what was learned.
    pub(in crate::cli) fn with_references(mut self, against: Vec<PathBuf>, prior: Option<PathBuf>) -> Self {
        (self.run.against, self.prior) = (against, prior);
        self
    }

    /// The same, of these tracers too.
    pub(in crate::cli) fn traced_by(self, tracers: TracerArgs) -> Self {
        Self { tracers, ..self }
    }

    /// Says before anything is paid for whether the methods can be had.
    ///
    /// # Errors
    /// As [`methods`](Self::methods) and [`ranker`](Self::ranker).
    pub(in crate::cli) fn check(&self) -> Result<(), Failure> {
        let methods = self.methods()?;
        self.ranker(&methods).map(|_| ())
    }

    /// What was learned, where a file of it is named.
    ///
    /// # Errors
    /// It cannot be read; `learned` is asked for, and none is named.
    pub(super) fn ranker(&self, methods: &[ChosenMethod]) -> Result<Option<LearnedRanker>, Failure> {
        let Some(path) = &self.prior else {
            if methods.iter().any(|method| method.needs() == Needs::Ranker) {
                return Err(Failure::new(
                    Exit::Usage,
                    "`learned` ranks by what was learned, and no file of it is named",
                )
                .hint("--prior prior.toml, which `aegis learn DATASET --out prior.toml` writes"));
            }
            return Ok(None);
        };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{name}`: {error}")))?;
        LearnedRanker::parse(&text, &name.to_string()).map(Some).map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// The methods that are asked for.
    ///
    /// # Errors
    /// A name that no method has; one that `--compat` says nothing about; votes that the script does not cast.
    pub(in crate::cli) fn methods(&self) -> Result<Vec<ChosenMethod>, Failure> {
        let mut chosen: Vec<ChosenMethod> = Vec::new();
        for name in &self.method {
            let name = name.trim();
            let Some(method) = methods::method(name) else {
                let near = nearest(name, methods::ALL.iter().map(|method| method.name()));
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(Failure::new(Exit::Usage, format!("there is no method `{name}`{near}"))
                    .hint("`aegis attribute --list` says which there are"));
            };
            if self.compat.is_some() && !method.is_public() {
                let error =
                    format!("the public Who&When script has no `{name}`, so --compat whowhen says nothing about it");
                return Err(Failure::new(Exit::Usage, error));
            }
            if chosen.iter().all(|known| known.name() != name) {
                chosen.push(ChosenMethod::Listed(method));
            }
        }
        if self.compat.is_some() && self.votes > 1 {
            return Err(Failure::new(Exit::Usage, "the public Who&When script casts one vote: leave --votes out"));
        }
        for tracer in self.tracers.named()? {
            let name = tracer.tracer.name();
            if self.compat.is_some() {
                let error = "a tracer is asked in its own words, so --compat whowhen says nothing about it";
                return Err(Failure::new(Exit::Usage, error).hint("`--tracer whowhen` asks as that script asks"));
            }
            if tracer.tells_answer && self.show_answer == ShowAnswerArg::Off {
                let error = format!("the rows of `{name}` tell the right answer, so its tracer expects it");
                return Err(Failure::new(Exit::Usage, error).hint("`aegis attribute` can tell it: --show-answer on"));
            }
            if chosen.iter().any(|known| known.name() == name) {
                return Err(Failure::new(Exit::Usage, format!("two methods are called `{name}`")));
            }
            chosen.push(ChosenMethod::Traced(tracer.tracer));
        }
        Ok(chosen)
    }

    /// The judge: at the place that a tracer's file names, and as the options say in all else.
    ///
    /// # Errors
    /// As [`TracerArgs::named`].
    pub(super) fn judge_args(&self) -> Result<JudgeArgs, Failure> {
        let Some(tracer) = self.tracers.named()?.into_iter().next() else { return Ok(self.judge.clone()) };
        let (mut judge, place) = (self.judge.clone(), tracer.place);
        if place.upstream.is_some() {
            // What is known of another upstream says nothing about this one.
            (judge.upstream, judge.key_env) = (place.upstream, place.key_env);
        }
        judge.model = place.model.or(judge.model);
        judge.parameter.extend(place.parameters);
        Ok(judge)
    }

    /// Longest log in a question, in characters. A token has about three and a half; what is around the log, and the answer,
    /// need room too.
    pub(super) fn longest_log(&self) -> usize {
        let tokens = self.context.saturating_sub(1_536);
        usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
    }
}

/// A share above 0 and below 1.
fn alpha(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a share above 0 and below 1".to_owned())
}
