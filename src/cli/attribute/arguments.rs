//! What `attribute` can be told.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueEnum};

use crate::{
    attribution::{
        AnswerCache, JudgeSettings, LogJudge,
        methods::{self, LearnedRanker, Method, Needs},
    },
    budget::Ledger,
    cli::{
        Config, Exit, Failure,
        budget::BudgetArgs,
        corpus::CorpusArgs,
        settings::{self, ProxyArgs},
    },
    proxy::NegotiatingUpstream,
    recording,
    surface::ParameterSetting,
    trajectory::nearest,
};

/// A context that most models have, in tokens.
const CONTEXT: u64 = 32_768;
/// How often an interval may miss.
const ALPHA: f64 = 0.2;
/// Longest wait for one answer, in seconds.
const PATIENCE: f64 = 120.0;

/// Options of `attribute`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AttributeArgs {
    /// Failed run's directory, data set, directory of runs, or Who&When files.
    #[arg(value_name = "RUN|DATASET|FILES", required_unless_present = "list")]
    pub(super) path: Option<PathBuf>,
    #[command(flatten)]
    pub(super) corpus: CorpusArgs,
    /// Methods, comma-separated. Several also give a combined row.
    #[arg(long, value_name = "METHOD", value_delimiter = ',', required_unless_present = "list")]
    pub(super) method: Vec<String>,
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
}

/// The judge: a model that answers questions about logs.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct JudgeArgs {
    /// Upstream of the judge: http://…, https://… or `simulator`.
    #[arg(long, value_name = "URL")]
    pub(super) upstream: Option<String>,
    /// Model of the judge.
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Environment variable with the judge's key.
    #[arg(long, value_name = "VAR")]
    pub(super) key_env: Option<String>,
    /// Directory that records the judge's answers; recorded questions are not asked again.
    #[arg(long, value_name = "DIR")]
    pub(super) cassette: Option<PathBuf>,
    /// Directory for the judge's recordings, without --cassette.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR", conflicts_with = "cassette")]
    pub(super) log_dir: Option<PathBuf>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// PEM file of additional certificates to trust.
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// Timeout of one answer in seconds.
    #[arg(long, default_value_t = PATIENCE, value_name = "S")]
    pub(super) timeout: f64,
    #[command(flatten)]
    pub(super) spending: BudgetArgs,
    /// Request answers in words, not by JSON schema. Automatic if the upstream refuses a schema.
    #[arg(long)]
    pub(super) no_schema: bool,
    /// Request parameter of the judge; VALUE `none` omits it; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) parameter: Vec<ParameterSetting>,
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
        }
    }

    /// The same, of a run that is held against these runs too, and against what was learned.
    pub(in crate::cli) fn beside(mut self, against: Vec<PathBuf>, prior: Option<PathBuf>) -> Self {
        (self.run.against, self.prior) = (against, prior);
        self
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
    pub(super) fn ranker(&self, methods: &[&dyn Method]) -> Result<Option<LearnedRanker>, Failure> {
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
    pub(in crate::cli) fn methods(&self) -> Result<Vec<&'static dyn Method>, Failure> {
        let mut chosen: Vec<&'static dyn Method> = Vec::new();
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
                chosen.push(method);
            }
        }
        if self.compat.is_some() && self.votes > 1 {
            return Err(Failure::new(Exit::Usage, "the public Who&When script casts one vote: leave --votes out"));
        }
        Ok(chosen)
    }

    /// Longest log in a question, in characters. A token has about three and a half; what is around the log, and the answer,
    /// need room too.
    pub(super) fn longest_log(&self) -> usize {
        let tokens = self.context.saturating_sub(1_536);
        usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
    }
}

impl JudgeArgs {
    /// None, for methods that ask nobody.
    pub(in crate::cli) fn none() -> Self {
        Self { timeout: PATIENCE, ..Self::default() }
    }

    /// The upstream of a run as its judge, recorded beside it.
    pub(in crate::cli) fn of_upstream(
        upstream: String,
        model: Option<String>,
        key_env: Option<String>,
        log_dir: PathBuf,
        config: Option<PathBuf>,
    ) -> Self {
        Self {
            upstream: Some(upstream),
            model,
            key_env,
            cassette: None,
            log_dir: Some(log_dir),
            config,
            ca_file: None,
            timeout: PATIENCE,
            spending: BudgetArgs::default(),
            no_schema: false,
            parameter: Vec::new(),
        }
    }

    /// The same with parameters that are set by hand.
    #[must_use]
    pub(in crate::cli) fn with_parameters(self, parameter: Vec<ParameterSetting>) -> Self {
        Self { parameter, ..self }
    }

    /// The same with a cassette.
    pub(in crate::cli) fn with_cassette(mut self, cassette: Option<PathBuf>) -> Self {
        self.log_dir = self.log_dir.filter(|_| cassette.is_none());
        self.cassette = cassette;
        self
    }

    /// The same within a budget.
    #[must_use]
    pub(in crate::cli) fn spending(self, spending: BudgetArgs) -> Self {
        Self { spending, ..self }
    }

    /// Where the judge is and what it is called; `None` where no method asks one.
    ///
    /// # Errors
    /// A method asks one, and none is named.
    pub(super) fn named(&self, methods: &[&dyn Method]) -> Result<Option<(&str, String)>, Failure> {
        let Some(asking) = methods.iter().find(|method| method.needs() == Needs::Model) else { return Ok(None) };
        if self.upstream.is_none() {
            let error = format!("`{}` asks a model, and none is named", asking.name());
            return Err(Failure::new(Exit::Usage, error)
                .hint("--upstream URL --model NAME; `rules`, `alignment` and `spectrum` ask nobody"));
        }
        self.address()
    }

    /// Where the judge is and what it is called; `None` where no upstream is named.
    ///
    /// # Errors
    /// It has no name.
    pub(in crate::cli) fn address(&self) -> Result<Option<(&str, String)>, Failure> {
        let Some(url) = self.upstream.as_deref() else { return Ok(None) };
        let model = self.model.clone().or_else(|| (url == "simulator").then(|| url.to_owned()));
        let model = model.ok_or_else(|| {
            Failure::new(Exit::Usage, "the judge has no name").hint("--model NAME, as its upstream calls it")
        })?;
        Ok(Some((url, model)))
    }

    /// The judge at this address, which will answer from the cassette where it was asked before. `public`: asked as a public script
    /// does, in words.
    ///
    /// # Errors
    /// It cannot be used: upstream, key, cassette, budget or wait.
    pub(in crate::cli) fn open(&self, (url, model): (&str, String), public: bool) -> Result<LogJudge, Failure> {
        let (budget, patience) = (self.spending.budget()?, self.patience()?);
        let Self { key_env, cassette, log_dir, config, ca_file, no_schema, parameter, .. } = self;
        let proxied = ProxyArgs { ca_file: ca_file.clone(), simulator_seed: 7, ..ProxyArgs::default() };
        let upstream = settings::other_upstream(url, key_env.as_deref(), &proxied)?;
        let redactor = self.recording()?.redactor;
        let kept = match cassette {
            Some(dir) => AnswerCache::read(dir, redactor)?,
            None => AnswerCache::none(redactor),
        };
        let run = settings::fresh_run_id();
        let dir = cassette.as_deref().or(log_dir.as_deref());
        let ledger = Arc::new(Ledger::new(budget));
        let upstream = NegotiatingUpstream::over(upstream, Some(Arc::clone(&ledger)));
        let proxy = settings::offline(config.as_deref(), dir, upstream, run.clone())?;
        let (by_schema, parameters) = (!no_schema && !public, parameter.clone().into());
        let settings = JudgeSettings { model, patience, by_schema, parameters };
        let price = self.spending.price.unwrap_or_default();
        Ok(LogJudge::new(Arc::new(proxy), run, settings, kept, (ledger, price)))
    }

    /// How its configuration masks and writes what is recorded.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub(in crate::cli) fn recording(&self) -> Result<recording::Settings, Failure> {
        Config::load(self.config.as_deref())?.recording()
    }

    /// Longest wait for one answer.
    ///
    /// # Errors
    /// It is no time.
    pub(super) fn patience(&self) -> Result<Duration, Failure> {
        Duration::try_from_secs_f64(self.timeout).ok().filter(|wait| !wait.is_zero()).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("--timeout is {}: expected seconds above 0", self.timeout))
        })
    }
}

/// A share above 0 and below 1.
fn alpha(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a share above 0 and below 1".to_owned())
}
