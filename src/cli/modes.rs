//! `aegis modes [DIR…]`: is a planted change the failure mode that it is called? Counts what plans, people and judges say, and asks
//! a judge where one is named.

use crate::cli::printed::{JudgedModes, ModeAgreement, ModeOfChange, PairAgreement, ShownModes, printed};
use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global, OutputFormat, attribute::JudgeArgs, counted, escape, settings, terminal,
    trial::failed,
};
use crate::{
    attribution::{JudgedMode, LogJudge, ModeVoting, PlantedChange, judge_mode},
    dataset,
    recording::{self, Amendment, AmendmentSource, FactSource, Recording},
    score::{Agreement, RESAMPLED_MIN, Share, agreement},
    trajectory::{FailureMode, ModeClaim, ModeState, ModeVerdict},
    viewer::{Listing, planted},
};

/// What stands for a change that shows none of the modes that were offered.
const NONE: &str = "none";

/// Options of `modes`.
#[derive(Debug, Args)]
#[command(
    after_help = "With --upstream, a model is shown each change whose mode is possible, and chooses among three modes. An answer with \
        enough votes is written to facts.jsonl beside the run, and read with its label. Without --upstream, nothing is asked or written."
)]
pub(super) struct ModesArgs {
    /// Runs, campaigns, or directories of them.
    #[arg(value_name = "DIR", env = "AEGIS_LOG_DIR", default_value = "logs")]
    dirs: Vec<PathBuf>,
    #[command(flatten)]
    judge: JudgeArgs,
    /// Votes on a change: K of at most N answers must agree.
    #[arg(long, value_name = "K/N", default_value = "2/3", requires = "upstream")]
    votes: GivenVotes,
}

/// `K/N`.
#[derive(Debug, Clone, Copy)]
struct GivenVotes(ModeVoting);

impl FromStr for GivenVotes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(k, n)| Some((k.trim().parse().ok()?, n.trim().parse().ok()?)));
        let voting = numbers.map(|(agreeing, cast)| ModeVoting { agreeing, cast });
        let is_majority = |voting: &ModeVoting| voting.agreeing * 2 > voting.cast && voting.agreeing <= voting.cast;
        voting
            .filter(|voting| voting.cast <= 99 && is_majority(voting))
            .map(Self)
            .ok_or_else(|| "expected K/N, more than half of at most 99 answers: 2/3, 1/1, 4/5".to_owned())
    }
}

/// A change, what its label says of its mode, and who said what of it.
#[derive(Debug)]
struct ClaimedChange {
    change: PlantedChange,
    dir: PathBuf,
    claim: ModeClaim,
    verdicts: BTreeMap<String, Option<FailureMode>>,
}

/// What came of asking a judge.
#[derive(Debug, Default)]
struct JudgingCounts {
    changes: usize,
    confirmed: usize,
    refuted: usize,
    undecided: usize,
    nothing: BTreeMap<&'static str, usize>,
    live: u64,
    replayed: u64,
}

pub(super) fn run(arguments: &ModesArgs, global: &Global) -> Result<Finished, Failure> {
    if let Some(missing) = arguments.dirs.iter().find(|dir| !dir.exists()) {
        let error = format!("there is nothing at `{}`", missing.display());
        return Err(Failure::new(Exit::Usage, error).hint("`aegis modes DIR`, where DIR holds recordings"));
    }
    let address = arguments.judge.address()?;
    if address.as_ref().is_some_and(|(url, _)| *url == "simulator") {
        let error = "the simulator is a script, and cannot say which failure mode a change shows";
        return Err(Failure::new(Exit::Usage, error).hint("name a model: --upstream URL --model NAME"));
    }
    let mut changes = claimed(&arguments.dirs)?;
    let mut asked = None;
    if let Some((url, model)) = address {
        let judge = arguments.judge.open(url, model, false)?;
        let (said, verdicts) = settings::block_on(ask(&changes, judge, arguments.votes.0, global))??;
        keep(&verdicts, arguments)?;
        let rows = arguments.dirs.iter().filter(|dir| !verdicts.is_empty() && dir.join(dataset::FILE).is_file());
        for dir in rows.filter(|_| !global.quiet) {
            let dir = dir.display();
            talkln!(
                "the rows of {dir} say what was known before: `aegis campaign FILE --out {dir} --resume` writes them anew"
            );
        }
        changes = claimed(&arguments.dirs)?;
        asked = Some(said);
    }
    let compared = VerdictAgreement::between(&changes);
    if global.format == OutputFormat::Text {
        write(&changes, &compared, &mut terminal::stdout())
            .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let data = printed(&ShownModes {
        changes: changes.iter().map(ClaimedChange::data).collect(),
        agreement: compared.data(),
        asked: asked.as_ref().map(JudgingCounts::data),
    });
    Ok(Finished { exit: exit(asked.as_ref()), summary: summary(&changes, asked.as_ref()), data })
}

/// The planted changes of all runs.
fn claimed(dirs: &[PathBuf]) -> Result<Vec<ClaimedChange>, Failure> {
    let mut changes = Vec::new();
    for row in Listing::scan(dirs).runs.into_iter().filter(|row| row.trial_of.is_none() && row.label.is_some()) {
        let recording = recording::read(&row.dir)?;
        changes.extend(of_run(&recording).map(|(change, claim, verdicts)| ClaimedChange {
            change,
            dir: row.dir.clone(),
            claim,
            verdicts,
        }));
    }
    Ok(changes)
}

/// The planted changes of a run, each with what its label says of its mode, and what everybody said of that.
fn of_run(
    recording: &Recording,
) -> impl Iterator<Item = (PlantedChange, ModeClaim, BTreeMap<String, Option<FailureMode>>)> {
    planted(recording).into_iter().map(|one| {
        let error = &one.entry.error;
        let change = PlantedChange {
            run: recording.manifest.run.to_string(),
            step: error.step,
            injection: error.injection,
            agent: error.agent.to_string(),
            side: error.side,
            declared: one.declared,
            change: one.change_text(),
            context: one.context_text(),
        };
        let given = recording.mode_verdicts();
        let about = given.iter().filter(|given| given.verdict.is_about(error));
        let said = about.map(|given| (given.by.to_owned(), given.verdict.shown)).collect();
        (change, one.entry.mode_claim.clone().unwrap_or(ModeClaim::DECLARED), said)
    })
}

type Verdicts = Vec<(PathBuf, ModeVerdict)>;

/// Asks the judge about each change of which nothing is missing that its mode needs.
async fn ask(
    changes: &[ClaimedChange],
    judge: LogJudge,
    voting: ModeVoting,
    global: &Global,
) -> Result<(JudgingCounts, Verdicts), Failure> {
    let (mut asked, mut verdicts) = (JudgingCounts::default(), Vec::new());
    let possible: Vec<_> = changes.iter().filter(|one| one.claim.unmet.is_none()).collect();
    for (number, one) in possible.iter().enumerate() {
        let judged = judge_mode(&one.change, &judge, voting).await.map_err(failed)?;
        asked.changes += 1;
        let said = match &judged {
            JudgedMode::Verdict(verdict) if verdict.confirms() => {
                asked.confirmed += 1;
                "confirmed".to_owned()
            }
            JudgedMode::Verdict(verdict) => {
                asked.refuted += 1;
                format!("refuted: {}", verdict.shown.map_or(NONE, FailureMode::code))
            }
            JudgedMode::Undecided => {
                asked.undecided += 1;
                "undecided".to_owned()
            }
            JudgedMode::Nothing(why) => {
                *asked.nothing.entry(why.name()).or_default() += 1;
                format!("no answer: {}", why.name())
            }
        };
        if !global.quiet {
            let PlantedChange { run, step, agent, declared, .. } = &one.change;
            let line = format!(
                "judged {:>4} of {}  {run} step {step} {agent} {}  {said}",
                number + 1,
                possible.len(),
                declared.code()
            );
            talkln!("{}", escape(&line));
        }
        if let JudgedMode::Verdict(verdict) = judged {
            verdicts.push((one.dir.clone(), verdict));
        }
    }
    (asked.live, asked.replayed) = judge.counts();
    judge.finish().await.map_err(failed)?;
    Ok((asked, verdicts))
}

/// Writes what the judge says beside the runs.
fn keep(verdicts: &Verdicts, arguments: &ModesArgs) -> Result<(), Failure> {
    let (settings, by) = (arguments.judge.recording()?, arguments.judge.address()?.map(|(_, model)| model));
    let giver = AmendmentSource { source: FactSource::Judge, by };
    for (dir, verdict) in verdicts {
        let amendment = Amendment { modes: vec![verdict.clone()], ..Amendment::default() };
        recording::amend(dir, &amendment, &giver, &settings)?;
    }
    Ok(())
}

/// How far those who looked at the same changes agree.
struct VerdictAgreement {
    all: Agreement,
    /// By pairs of names: equal answers, of changes that both looked at.
    pairs: BTreeMap<(String, String), Share>,
}

impl VerdictAgreement {
    fn between(changes: &[ClaimedChange]) -> Self {
        let word = |shown: &Option<FailureMode>| shown.map_or(NONE, FailureMode::code).to_owned();
        let answers: Vec<Vec<String>> = changes.iter().map(|one| one.verdicts.values().map(word).collect()).collect();
        let mut counts: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
        for one in changes {
            for (at, (first, said)) in one.verdicts.iter().enumerate() {
                for (second, other) in one.verdicts.iter().skip(at + 1) {
                    let count = counts.entry((first.clone(), second.clone())).or_default();
                    *count = (count.0 + usize::from(said == other), count.1 + 1);
                }
            }
        }
        let pairs = counts.into_iter().map(|(names, (same, of))| (names, Share::new(same, of))).collect();
        Self { all: agreement(&answers, |one, other| one == other), pairs }
    }

    fn data(&self) -> ModeAgreement<'_> {
        let pairs = self.pairs.iter().map(|((first, second), same)| PairAgreement { between: [first, second], same });
        ModeAgreement { all: &self.all, pairs: pairs.collect() }
    }
}

/// Counts of changes by mode and state.
fn counts(changes: &[ClaimedChange]) -> BTreeMap<FailureMode, BTreeMap<ModeState, usize>> {
    let mut counts: BTreeMap<FailureMode, BTreeMap<ModeState, usize>> = BTreeMap::new();
    for one in changes {
        *counts.entry(one.change.declared).or_default().entry(one.claim.state).or_default() += 1;
    }
    counts
}

const STATES: [ModeState; 4] = [ModeState::Declared, ModeState::Applicable, ModeState::Confirmed, ModeState::Refuted];

fn write(changes: &[ClaimedChange], compared: &VerdictAgreement, out: &mut dyn Write) -> io::Result<()> {
    if changes.is_empty() {
        return writeln!(out, "no run here has a label that says what was planted");
    }
    let heads = STATES.map(ModeState::word);
    writeln!(
        out,
        "{:<44} {:>7}  {:>8}  {:>10}  {:>9}  {:>7}",
        "mode", "planted", heads[0], heads[1], heads[2], heads[3]
    )?;
    for (mode, of) in counts(changes) {
        let count = |state: ModeState| of.get(&state).copied().unwrap_or_default();
        let [declared, applicable, confirmed, refuted] = STATES.map(count);
        let name = format!("{} {}", mode.code(), mode.name());
        let all: usize = of.values().sum();
        writeln!(out, "{name:<44} {all:>7}  {declared:>8}  {applicable:>10}  {confirmed:>9}  {refuted:>7}")?;
    }
    let Agreement { units, pairs, alpha, interval } = &compared.all;
    if *units == 0 {
        return Ok(());
    }
    let alpha = match (alpha, interval) {
        (Some(alpha), Some(interval)) => format!("alpha {alpha:.2} ({:.2} to {:.2})", interval.low, interval.high),
        (Some(alpha), None) => format!("alpha {alpha:.2} (no interval: fewer than {RESAMPLED_MIN} changes)"),
        (None, _) => "alpha cannot be told: all answers are one".to_owned(),
    };
    writeln!(
        out,
        "\n{} that several looked at: {} of {} pairs of answers agree, {alpha}",
        counted(*units, "change"),
        pairs.hits,
        pairs.of
    )?;
    for ((first, second), share) in &compared.pairs {
        let (low, high) = (100.0 * share.interval.low, 100.0 * share.interval.high);
        let line = format!("  {first} and {second}: {} of {} ({low:.0} to {high:.0} %)", share.hits, share.of);
        writeln!(out, "{}", escape(&line))?;
    }
    Ok(())
}

fn summary(changes: &[ClaimedChange], asked: Option<&JudgingCounts>) -> String {
    let all = counted(changes.len(), "planted change");
    let Some(asked) = asked else { return all };
    let none: usize = asked.nothing.values().sum();
    let none = if none > 0 { format!(", {none} without an answer") } else { String::new() };
    format!(
        "{all}, {} judged: {} confirmed, {} refuted, {} undecided{none}; answers replayed {} of {}",
        asked.changes,
        asked.confirmed,
        asked.refuted,
        asked.undecided,
        asked.replayed,
        asked.live + asked.replayed
    )
}

/// Nothing left to spend, nobody there, or no answer that says anything: each ends the verb in its own way.
fn exit(asked: Option<&JudgingCounts>) -> Exit {
    let Some(asked) = asked else { return Exit::Ok };
    let is = |why: &str| asked.nothing.contains_key(why);
    let none: usize = asked.nothing.values().sum();
    match () {
        () if is("budget") => Exit::Budget,
        () if none < asked.changes || asked.changes == 0 => Exit::Ok,
        () if is("unanswered") || is("timed out") => Exit::Infrastructure,
        () => Exit::Finding,
    }
}

impl ClaimedChange {
    fn data(&self) -> ModeOfChange<'_> {
        let PlantedChange { run, step, injection, agent, side, declared, .. } = &self.change;
        let said = self.verdicts.iter().map(|(by, shown)| (by.as_str(), shown.map_or(NONE, FailureMode::code)));
        ModeOfChange {
            run,
            step: *step,
            injection: *injection,
            agent,
            side: *side,
            mode: declared.code(),
            mode_claim: &self.claim,
            said: said.collect(),
        }
    }
}

impl JudgingCounts {
    fn data(&self) -> JudgedModes<'_> {
        JudgedModes {
            changes: self.changes,
            confirmed: self.confirmed,
            refuted: self.refuted,
            undecided: self.undecided,
            nothing: &self.nothing,
            live_calls: self.live,
            replayed_calls: self.replayed,
        }
    }
}
