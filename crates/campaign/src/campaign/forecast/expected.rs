//! What is expected of a campaign, and what that rests on, in words.

use serde::Serialize;

use super::{
    super::{definition::Campaign, impossible::ImpossibleRow, label_cost::LabelCost},
    CostBand, FEWEST, ForetoldCost,
    draws::{FLIPS, LIVE},
    measured::{MeasuredCampaign, MeasuredRuns, SystemRuns, real},
};

/// Most lines of what cannot be planted.
const IMPOSSIBLE_LISTED: usize = 10;

/// What a campaign is expected to cost, by what was made of it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExpectedCost {
    /// Less than nine of ten campaigns of this kind cost in all.
    pub low: ForetoldCost,
    /// More than nine of ten cost.
    pub high: ForetoldCost,
    /// What was made before, which both contain.
    pub made: ForetoldCost,
    /// The same if no system that is declared to repeat itself (`proof.repeatable`) does; `null` where none is declared to, or nothing is
    /// left to be made.
    pub if_not_repeatable: Option<CostBand>,
    /// What that is told from, by system.
    pub systems: Vec<ForetoldSystem>,
    /// What cannot be planted in the reference runs that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub impossible: Vec<ImpossibleRow>,
    /// What clean runs cost in the mean.
    pub measured: MeasuredRuns,
    /// Calls of all clean and injected runs, each as much as a clean one, whatever records answer.
    pub calls: f64,
    /// Tokens of their requests.
    pub input_tokens: f64,
    /// Tokens of their replies.
    pub output_tokens: f64,
    /// Money, at the highest price that is given.
    pub money: Option<f64>,
    /// Calls that each label costs beyond them, by noise as in `label`.
    pub calls_per_label: [f64; 4],
    /// Questions to the model that judges: one about each clean and injected run.
    pub judgements: f64,
    /// The same about the runs that each label costs beyond them.
    pub judgements_per_label: [f64; 4],
}

/// What was measured of a system.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ForetoldSystem {
    /// The system.
    pub system: String,
    /// Its tasks.
    pub tasks: u64,
    /// Of them, those of which nothing is left to be made.
    pub whole: u64,
    /// Of them, those with finished clean runs.
    pub measured_tasks: u64,
    /// Calls of a clean run, in the mean over tasks; `null` where none is finished, and those of other systems are taken.
    pub clean_calls: Option<f64>,
    /// The same of the task with the fewest, and with the most.
    pub fewest_calls: Option<f64>,
    /// See above.
    pub most_calls: Option<f64>,
    /// Finished injected runs.
    pub injected: u64,
    /// Of them, those whose outcome flipped.
    pub flipped: u64,
    /// The share of their calls that records answered; `null` where none was made.
    pub recorded: Option<f64>,
    /// Runs that were made to prove flips, those of decoys included.
    pub proof: u64,
}

impl ForetoldSystem {
    fn from_runs(system: &str, runs: &SystemRuns, judged: f64) -> Self {
        let chains = || runs.chains.iter();
        let each: Vec<f64> = chains().filter_map(|chain| chain.clean_calls(judged)).collect();
        let some = |value: f64| (!each.is_empty()).then_some(value);
        let (recorded, paid) =
            chains().fold((0, 0), |(was, paid), chain| (was + chain.recorded, paid + chain.injected.cost.calls));
        Self {
            system: system.to_owned(),
            tasks: runs.tasks,
            whole: runs.whole(),
            measured_tasks: each.len() as u64,
            clean_calls: some(each.iter().sum::<f64>() / real(each.len().max(1) as u64)),
            fewest_calls: some(each.iter().copied().fold(f64::MAX, f64::min)),
            most_calls: some(each.iter().copied().fold(0.0, f64::max)),
            injected: chains().map(|chain| chain.injected.runs).sum(),
            flipped: chains().map(|chain| chain.flipped).sum(),
            recorded: (recorded + paid > 0).then(|| real(recorded) / real(recorded + paid)),
            proof: chains().map(|chain| chain.proof.runs).sum(),
        }
    }

    fn text(&self) -> String {
        let Self { system, whole, tasks, measured_tasks, injected, flipped, proof, .. } = self;
        let calls = match (self.clean_calls, self.fewest_calls, self.most_calls) {
            (Some(mean), Some(fewest), Some(most)) => {
                format!("{mean:.1} calls a clean run ({fewest:.1} to {most:.1}, {})", many(*measured_tasks, "task"))
            }
            _ => "no clean run: calls as of the other systems".to_owned(),
        };
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let flips = if *injected >= FEWEST {
            format!("{flipped} of {injected} injected runs flipped")
        } else {
            let (low, high) = (percent(FLIPS.0), percent(FLIPS.1));
            format!("{}: {low} to {high} are taken to flip", few(*injected))
        };
        let records = self.recorded.filter(|_| *injected > 0).map_or_else(
            || format!("records are taken to answer up to {} of their calls", percent(1.0 - LIVE.0)),
            |share| format!("records answered {} of their calls", percent(share)),
        );
        let proof = if *proof == 0 { String::new() } else { format!(", {} of proofs", many(*proof, "run")) };
        format!("   {system:<12} {calls}, {flips}, {records}{proof}; {whole} of {} at the end\n", many(*tasks, "task"))
    }
}

fn few(injected: u64) -> String {
    if injected == 0 { "no injected run".to_owned() } else { format!("only {}", many(injected, "injected run")) }
}

/// So many of a thing.
fn many(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

impl Campaign {
    /// What is expected of so many clean and injected runs, by what was made.
    pub(in crate::campaign) fn expected_by(
        &self,
        runs: u64,
        label: &[LabelCost; 4],
        measured: &MeasuredCampaign,
    ) -> ExpectedCost {
        let runs = real(runs);
        let clean = measured.clean;
        let judged = self.judgements_of_run();
        let highest = |price: fn(&super::super::ModelPrice) -> f64| self.prices.iter().map(price).fold(0.0, f64::max);
        let (input_tokens, output_tokens) = (runs * clean.input_tokens, runs * clean.output_tokens);
        let money = (input_tokens * highest(|price| price.input) + output_tokens * highest(|price| price.output)) / 1e6;
        let CostBand { made, low, high } = self.band(measured, label, self.repeats_itself);
        let may_turn_out = |system: &SystemRuns| !system.is_revoked && system.whole() < system.tasks;
        let is_open = self.repeats_itself && measured.systems.iter().any(may_turn_out);
        let if_not_repeatable = is_open.then(|| self.band(measured, label, false));
        let systems = self.systems.iter().zip(&measured.systems);
        ExpectedCost {
            low,
            high,
            made,
            if_not_repeatable,
            systems: systems.map(|(system, runs)| ForetoldSystem::from_runs(&system.name, runs, judged)).collect(),
            impossible: measured.impossible.rows(),
            measured: clean,
            calls: runs * clean.calls,
            input_tokens,
            output_tokens,
            money: (!self.prices.is_empty()).then_some(money),
            calls_per_label: label.map(|label| label.runs * clean.calls),
            judgements: runs * judged,
            judgements_per_label: label.map(|label| label.runs * judged),
        }
    }
}

impl ExpectedCost {
    /// Whether nothing is left to be made.
    fn is_made(&self) -> bool {
        self.systems.iter().all(|system| system.whole == system.tasks)
    }

    /// In words.
    pub fn text(&self) -> String {
        let Self { low, high, made, .. } = self;
        let between = |of: fn(&ForetoldCost) -> f64| {
            let (low, high) = (of(low), of(high));
            if self.is_made() { format!("{low:.0}") } else { format!("{low:.0} to {high:.0}") }
        };
        let money = match (low.money, high.money) {
            (Some(low), Some(_)) if self.is_made() => format!(", money {low:.2}"),
            (Some(low), Some(high)) => format!(", money {low:.2} to {high:.2}"),
            _ => String::new(),
        };
        let what = if self.is_made() {
            "all of it is made".to_owned()
        } else {
            format!("so in 9 of 10 such campaigns; {:.0} of these calls are made", made.calls)
        };
        let (calls, input) = (between(|cost| cost.calls), between(|cost| cost.input_tokens));
        let output = between(|cost| cost.output_tokens);
        let other = self.if_not_repeatable.map_or_else(String::new, |other| {
            let (low, high) = (other.low.calls, other.high.calls);
            format!("   otherwise    {low:.0} to {high:.0} model calls, if a system turns out not to repeat itself\n")
        });
        let systems: String = self.systems.iter().map(ForetoldSystem::text).collect();
        let (labels, judged) = (self.label_text(), self.judged_text());
        let chaotic = match self.measured.chaotic_tasks {
            0 => String::new(),
            tasks => format!(
                "   chaotic      {tasks} of the tasks: neutral changes alone turn their outcome, and they get no label\n"
            ),
        };
        format!(
            "expected       {calls} model calls, {input} tokens in, {output} out{money}\n   {:<12} {what}\n{other}\
             {systems}{labels}{judged}{chaotic}{}",
            "band",
            self.impossible_text()
        )
    }

    fn impossible_text(&self) -> String {
        let mut lines: Vec<String> =
            self.impossible.iter().take(IMPOSSIBLE_LISTED).map(ImpossibleRow::in_words).collect();
        let more = self.impossible.len().saturating_sub(IMPOSSIBLE_LISTED);
        if more > 0 {
            lines.push(format!("and {more} more: `--format json` has all of them"));
        }
        let mut text = String::new();
        for line in lines {
            text.extend(["   not possible ", &line, "\n"]);
        }
        text
    }

    fn label_text(&self) -> String {
        let [repeating, _, _, noisy] = self.calls_per_label;
        format!("   each label   about {repeating:.0} calls more if it repeats itself, {noisy:.0} at 20 % noise\n")
    }

    fn judged_text(&self) -> String {
        match (self.judgements, self.judgements_per_label) {
            (0.0, _) => String::new(),
            (asked, [few, _, _, more]) => format!(
                "   judged       about {asked:.0} questions to the model that judges among them, {few:.0} to {more:.0} each \
                 label\n"
            ),
        }
    }
}
