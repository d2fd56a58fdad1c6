//! What `trace` can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{dataset::DatasetArgs, prior_args::PriorArgs};
use crate::{
    attribution::{LabelRule, order_name},
    cli::{Exit, Failure, choice::one_of, matching::MatchArgs, trial::ExecuteArgs},
    proof::{Order, Terms},
    surface::ParameterSetting,
};

/// Options of `trace`.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct TraceArgs {
    /// Directory of the failed run, or a directory of runs: its failures without a plan, each once, within one budget.
    #[arg(value_name = "RUN_DIR")]
    pub(super) dir: PathBuf,
    #[command(flatten)]
    pub(super) source: SourceArgs,
    #[command(flatten)]
    pub(super) analyzer: AnalyzerArgs,
    #[command(flatten)]
    pub(super) terms: TermsArgs,
    /// Order of testing steps; affects only the cost. Default: `scan`, with --prior `best-first`.
    #[arg(long, value_enum)]
    pub(super) order: Option<OrderArg>,
    #[command(flatten)]
    pub(super) prior: PriorArgs,
    /// Stop at the earliest decisive step.
    #[arg(long)]
    pub(super) first: bool,
    /// If no single step makes the run pass, test pairs of steps.
    #[arg(long)]
    pub(super) coupled: bool,
    /// Also test each agent as a whole, with all its replies corrected or emptied, call by call.
    #[arg(long)]
    pub(super) agents: bool,
    /// Rule that selects the labelled step. If it selects none, a step with a proven effect of its own is labelled
    /// `flip`.
    #[arg(long, value_parser = one_of(LabelRule::ALL, LabelRule::name), default_value = LabelRule::EarliestFlip.name(), value_name = "RULE")]
    pub(super) label: LabelRule,
    /// Print the cost and execute nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) kept: DatasetArgs,
    #[command(flatten)]
    pub(super) matching: MatchArgs,
    #[command(flatten)]
    pub(super) execute: ExecuteArgs,
}

/// Where corrections come from.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
pub(super) struct SourceArgs {
    /// Corrections as JSON lines: {"step": N, "reply": "…", "reason": "…"}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["twin", "redraw", "analyzer"])]
    pub(super) corrections: Option<PathBuf>,
    /// Successful recorded run of the same task; its replies correct the steps. With --redraw, other steps are drawn
    /// again; with --analyzer, steps with equal replies are cleared.
    #[arg(long, value_name = "RUN_DIR")]
    pub(super) twin: Option<PathBuf>,
    /// Ask the live model again at each step. Finds errors of chance, not systematic ones.
    #[arg(long, conflicts_with = "analyzer")]
    pub(super) redraw: bool,
    /// Upstream of a model that proposes corrections, recorded as a separate run. Its proposals show flips, never the
    /// earliest one.
    #[arg(long, value_name = "URL")]
    pub(super) analyzer: Option<String>,
    /// Test the agents that spoke after a proven error: could another reply of one have saved the run? Without another source,
    /// the clean run of the label's proof corrects them, where a campaign made it. The result is a fact of the run; its label stays.
    #[arg(long, conflicts_with_all = ["coupled", "agents", "first", "order", "dataset", "prior", "tracer"])]
    pub(super) missed_catch: bool,
}

impl SourceArgs {
    /// Whether a source of corrections is named.
    pub(super) fn names_one(&self) -> bool {
        self.corrections.is_some() || self.twin.is_some() || self.redraw || self.analyzer.is_some()
    }
}

/// The analyzer model, and what it may know.
#[derive(Debug, Clone, Args)]
pub(super) struct AnalyzerArgs {
    /// Model of the analyzer.
    #[arg(long, default_value = "gpt-4o-mini", value_name = "NAME", requires = "analyzer")]
    pub(super) analyzer_model: String,
    /// Environment variable with the analyzer's key.
    #[arg(long, value_name = "VAR", requires = "analyzer")]
    pub(super) analyzer_key_env: Option<String>,
    /// Right answer, shown to the analyzer. Corrections that reveal it are refused.
    #[arg(long, alias = "gold", value_name = "TEXT", requires = "analyzer")]
    pub(super) answer: Option<String>,
    /// Hide the checker's evidence from the analyzer.
    #[arg(long, requires = "analyzer")]
    pub(super) no_feedback: bool,
    /// Request parameter of the analyzer; VALUE `none` omits it; repeatable.
    #[arg(long, visible_alias = "parameter", value_name = "NAME=VALUE", requires = "analyzer")]
    pub(super) analyzer_parameter: Vec<ParameterSetting>,
}

/// On what terms something counts as shown.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct TermsArgs {
    /// Maximum pairs per step.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pairs: u32,
    /// Maximum probability of blaming any step without effect (type I error).
    #[arg(long, default_value_t = 0.01, value_name = "A")]
    alpha: f64,
    /// Smallest effect that must be ruled out before a step is reported as not responsible.
    #[arg(long, default_value_t = 0.5, value_name = "D")]
    effect: f64,
    /// Probability of missing such an effect (type II error).
    #[arg(long, default_value_t = 0.05, value_name = "P")]
    miss: f64,
}

impl TermsArgs {
    /// The same, checked.
    pub(super) fn terms(self) -> Result<Terms, Failure> {
        let Self { pairs, alpha, effect, miss } = self;
        let terms = Terms { alpha, pairs, effect, miss, ..Terms::default() };
        terms.checked().map_err(|error| Failure::new(Exit::Usage, error))
    }
}

/// An order on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderArg(Order);

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        order.0
    }
}

impl ValueEnum for OrderArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[OrderArg(Order::Scan), OrderArg(Order::Bisect), OrderArg(Order::BestFirst)]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(order_name(self.0)))
    }
}
