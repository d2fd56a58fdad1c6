//! What `trace` can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{dataset::DatasetArgs, prior::PriorArgs};
use crate::{
    attribution::{LabelRule, order_name},
    cli::{Exit, Failure, choice::one_of, matching::MatchArgs, trial::ExecuteArgs},
    proof::{Order, Terms},
    surface::ParameterSetting,
};

/// Options of `trace`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TraceArgs {
    /// The failed run's directory.
    #[arg(value_name = "RUN_DIR")]
    pub(super) dir: PathBuf,
    #[command(flatten)]
    pub(super) source: SourceArgs,
    #[command(flatten)]
    pub(super) analyzer: AnalyzerArgs,
    #[command(flatten)]
    pub(super) terms: TermsArgs,
    /// Which step is tested next: `scan` without it, `best-first` with --prior. It moves the price, never what is concluded.
    #[arg(long, value_enum)]
    pub(super) order: Option<OrderArg>,
    #[command(flatten)]
    pub(super) prior: PriorArgs,
    /// Do not look for the last decisive step: stop when the earliest is known.
    #[arg(long)]
    pub(super) first: bool,
    /// Where no step heals the run alone, try pairs of them together.
    #[arg(long)]
    pub(super) coupled: bool,
    /// Describe each agent as a whole too: its replies all corrected, or emptied, call by call.
    #[arg(long)]
    pub(super) agents: bool,
    /// The rule whose step becomes the run's label. Where it names none, a step whose own effect is shown is a flip.
    #[arg(long, value_parser = one_of(LabelRule::ALL, LabelRule::name), default_value = LabelRule::EarliestFlip.name(), value_name = "RULE")]
    pub(super) label: LabelRule,
    /// Say what the trace would cost, and execute nothing.
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
    /// JSON lines: {"step": N, "reply": "…", "reason": "…"}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["twin", "redraw", "analyzer"])]
    pub(super) corrections: Option<PathBuf>,
    /// A recorded run of the same task that succeeded: each step is corrected with its twin's reply. With --redraw,
    /// steps of which it says nothing are asked once more; with --analyzer, it clears the steps that said the same.
    #[arg(long, value_name = "RUN_DIR")]
    pub(super) twin: Option<PathBuf>,
    /// Ask the live model once more at each step: finds an error that chance made, never one that it makes again.
    #[arg(long, conflicts_with = "analyzer")]
    pub(super) redraw: bool,
    /// Ask an analyzer model for a correction of each step: http://…, https://… or `simulator`. Its questions and
    /// answers are recorded as a run of their own. What it proposes shows flips, never the earliest one.
    #[arg(long, value_name = "URL")]
    pub(super) analyzer: Option<String>,
}

/// The analyzer model, and what it may know.
#[derive(Debug, Clone, Args)]
pub(super) struct AnalyzerArgs {
    /// Its name.
    #[arg(long, default_value = "gpt-4o-mini", value_name = "NAME", requires = "analyzer")]
    pub(super) analyzer_model: String,
    /// Environment variable that holds its key.
    #[arg(long, value_name = "VAR", requires = "analyzer")]
    pub(super) analyzer_key_env: Option<String>,
    /// The right result, for it to know; corrections that give it away are refused.
    #[arg(long, value_name = "TEXT", requires = "analyzer")]
    pub(super) gold: Option<String>,
    /// Do not tell it what the verifier said of the run.
    #[arg(long, requires = "analyzer")]
    pub(super) no_feedback: bool,
    /// Set a parameter of its requests by hand: temperature=1, or temperature=none to leave it out; may be said several times.
    /// What its upstream refuses is left out or exchanged by itself.
    #[arg(long, visible_alias = "parameter", value_name = "NAME=VALUE", requires = "analyzer")]
    pub(super) analyzer_parameter: Vec<ParameterSetting>,
}

/// On what terms something counts as shown.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct TermsArgs {
    /// Most pairs of executions of a step.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pairs: u32,
    /// The highest probability with which the trace may blame any step without effect.
    #[arg(long, default_value_t = 0.01, value_name = "A")]
    alpha: f64,
    /// The effect that other steps are cleared of.
    #[arg(long, default_value_t = 0.5, value_name = "D")]
    effect: f64,
    /// How probable it may be that such an effect of another step was missed.
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
