//! The judge: the model that methods and tracers ask.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;

use crate::{
    attribution::{AnswerCache, JudgeSettings, LogJudge, methods::Needs},
    budget::Ledger,
    cli::{
        Config, Exit, Failure,
        budget::BudgetArgs,
        settings::{self, ProxyArgs},
        tracer::ChosenMethod,
    },
    proxy::NegotiatingUpstream,
    recording,
    surface::ParameterSetting,
};

/// Longest wait for one answer, in seconds.
const PATIENCE: f64 = 120.0;

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
    pub(super) fn named(&self, methods: &[ChosenMethod]) -> Result<Option<(&str, String)>, Failure> {
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
    pub(in crate::cli) fn open(&self, url: &str, model: String, public: bool) -> Result<LogJudge, Failure> {
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
        Ok(LogJudge::new(Arc::new(proxy), run, settings, kept, ledger, price))
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
