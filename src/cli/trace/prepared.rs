//! A trace up to its first execution: whatever it is refused for is said here, to a dry run as to the line itself.

use std::{path::PathBuf, sync::Arc};

use super::{
    arguments::{AnalyzerArgs, TraceArgs},
    dataset::TracedDataset,
    prior::{self, PriorResult},
    proven,
};
use crate::{
    attribution::{Analyzer, Corrections, LabelRule, TraceSettings},
    capability::RunVerb,
    cli::{
        Exit, Failure, Global,
        again::HowStarted,
        capability,
        settings::{self, ProxyArgs},
        trial::{ExecutionSpec, live, say_execution},
    },
    proof::NeutralSentences,
    proxy::Proxy,
    recording,
    replay::Cassette,
    trajectory::Verdict,
};

/// Executions of each arm of an agent as a whole.
const AGENT_EXECUTIONS: u32 = 3;

/// A trace that nothing is known to refuse.
pub(super) struct PreparedTrace {
    pub(super) cassette: Arc<Cassette>,
    pub(super) executed: ExecutionSpec,
    pub(super) entry: Option<TracedDataset>,
    pub(super) search: PreparedSearch,
}

/// What is searched, and where live calls go.
pub(super) struct PreparedSearch {
    pub(super) given: Corrections,
    pub(super) settings: TraceSettings,
    pub(super) prior: Option<PriorResult>,
    pub(super) analyzer: Option<Analyzer>,
    pub(super) proxy: Proxy,
    /// The sentences of neutral changes.
    pub(super) sentences: NeutralSentences,
}

impl PreparedTrace {
    /// Reads and checks all that a trace needs. No program is executed.
    ///
    /// # Errors
    /// Whatever the trace is refused for.
    pub(super) fn prepare(arguments: &TraceArgs, global: &Global) -> Result<Self, Failure> {
        let cassette = arguments.matching.open(&arguments.dir, global.quiet)?;
        capability::require(RunVerb::Trace, cassette.recording(), &arguments.dir)?;
        if arguments.source.missed_catch {
            proven::require(arguments, &cassette)?;
        }
        let (recorded, execute) = (HowStarted::read(&arguments.dir)?, &arguments.execute);
        let executed = execute.executed(&recorded, "trace", "a trace", arguments.dry_run)?;
        let entry = arguments.kept.entry()?;
        let mut known = given_corrections(arguments, &cassette)?;
        let settings = trace_settings(arguments)?;
        let prior = prior::ask(arguments, &cassette, global)?;
        if let Some(asked) = &prior {
            asked.prior.suspect(&mut known);
        }
        let live = live(&execute.proxy, execute.again, &cassette, &arguments.dir)?;
        say_execution(&recorded, execute.again, &live, global.quiet);
        let analyzer = analyzer(arguments, &cassette)?;
        let (proxy, _) = beneath(live, arguments, &cassette).proxy(None)?;
        // Where nobody spoke later in other words, there is nothing to catch: that is an answer.
        if analyzer.is_none() && !arguments.source.missed_catch {
            require_corrections(&known)?;
        }
        let sentences = execute.sentences()?;
        let search = PreparedSearch { given: known, settings, prior, analyzer, proxy, sentences };
        Ok(Self { cassette, executed, entry, search })
    }
}

/// Trials are the trace's, not the user's runs.
pub(super) fn beneath(proxy: ProxyArgs, arguments: &TraceArgs, cassette: &Cassette) -> ProxyArgs {
    let dir = proxy.beneath(&arguments.dir, cassette.run());
    ProxyArgs { log_dir: Some(dir.join("trials")), ..proxy }
}

/// Corrections that nobody need be asked for.
fn given_corrections(arguments: &TraceArgs, cassette: &Cassette) -> Result<Corrections, Failure> {
    let (run, source) = (&cassette.recording().trajectory, &arguments.source);
    if let Some(file) = &source.corrections {
        let unread = |error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let read = Corrections::from_lines(&text, &file.display().to_string(), run);
        return read.map_err(|error| Failure::new(Exit::Usage, error));
    }
    let of_proof = twin_of_proof(arguments, cassette);
    if let Some(twin) = source.twin.as_ref().or(of_proof.as_ref()) {
        let twin = recording::read(twin)?.trajectory;
        if twin.outcome.verdict == Verdict::Failure {
            let error = format!("the twin `{}` failed: its replies correct nothing", twin.run);
            return Err(Failure::new(Exit::Usage, error).hint("give a run of the same task that succeeded"));
        }
        let corrections = Corrections::from_twin(cassette, &twin);
        return Ok(if source.redraw { corrections.or_redrawn(run) } else { corrections });
    }
    Ok(if source.redraw { Corrections::redrawn(run) } else { Corrections::default() })
}

/// The clean run that the proof of a label left, beside the run: it corrects later agents where nothing else is to.
fn twin_of_proof(arguments: &TraceArgs, cassette: &Cassette) -> Option<PathBuf> {
    let is_only = arguments.source.missed_catch && !arguments.source.names_one();
    let twin = cassette.recording().label.as_ref()?.evidence.as_ref()?.twin.as_ref().filter(|_| is_only)?;
    // A path of the shell may have no parent in it.
    let dir = arguments.dir.canonicalize().ok()?;
    Some(dir.parent()?.join(twin.as_str())).filter(|twin| twin.is_dir())
}

/// The analyzer, where it is the source.
fn analyzer(arguments: &TraceArgs, cassette: &Cassette) -> Result<Option<Analyzer>, Failure> {
    let Some(url) = &arguments.source.analyzer else { return Ok(None) };
    let AnalyzerArgs { analyzer_model, analyzer_key_env, answer, no_feedback, analyzer_parameter } =
        &arguments.analyzer;
    let upstream = settings::other_upstream(url, analyzer_key_env.as_deref(), &arguments.execute.proxy)?;
    let said = &cassette.recording().trajectory.outcome.evidence;
    let feedback = Some(said.clone()).filter(|said| !no_feedback && !said.is_empty());
    let parameters = analyzer_parameter.clone().into();
    Ok(Some(Analyzer { upstream, model: analyzer_model.clone(), gold: answer.clone(), feedback, parameters }))
}

fn trace_settings(arguments: &TraceArgs) -> Result<TraceSettings, Failure> {
    Ok(TraceSettings {
        terms: arguments.terms.terms()?,
        order: arguments.order()?,
        earliest: arguments.label != LabelRule::Flip,
        last: arguments.label != LabelRule::Flip && !arguments.first,
        coupled: arguments.coupled,
        runs: arguments.execute.budget.limits()?.runs,
        jobs: arguments.execute.trial.jobs,
        agents: if arguments.agents { AGENT_EXECUTIONS } else { 0 },
        salt: settings::fresh_token(),
    })
}

pub(super) fn require_corrections(corrections: &Corrections) -> Result<(), Failure> {
    if let Some(why) = &corrections.unanswered {
        let error = format!("the analyzer answered no question: {why}");
        return Err(Failure::new(Exit::Infrastructure, error).hint("nothing was executed, and the run keeps its label"));
    }
    if corrections.by_step.is_empty() {
        let why = corrections.left_out.iter().next().map(|(step, why)| format!(": step {step}: {why}"));
        let error = format!("no step has a correction that changes anything{}", why.unwrap_or_default());
        return Err(Failure::new(Exit::Usage, error)
            .hint("with --twin, give a run of the same task that succeeded; aegis diff shows both"));
    }
    Ok(())
}
