//! What a campaign would do and could cost at most, without doing any of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    definition::{Campaign, SampleSpace},
    ended::{EndedCell, Ran},
    file::CallPosition,
};
use crate::{
    budget::{Cost, PICO, pico_for},
    dataset::Task,
    proof::{Foretold, ProofSample, Terms, foretell, is_chaotic},
    verify::Check,
};

/// Tokens that a request is taken to have, where the file says nothing.
const MAX_INPUT_TOKENS: u64 = 8192;

/// The greatest extent of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Extent {
    /// Clean runs.
    pub clean: u64,
    /// Injected runs, if every task passes.
    pub injected: u64,
    /// Runs with and without the injection again, if every injected run flips at a place of its own and each claim gets as
    /// many pairs as it may.
    pub verify: u64,
    /// Decoys: runs into which a neutral change is planted; most of them fail in no way and are not verified.
    pub decoys: u64,
    /// Runs less one injection and those with all that are made in turn with them, if every plan of several is verified and each
    /// of its errors gets as many pairs as it may.
    pub narrow: u64,
    /// What a label is expected to cost where the outcome flips, by how noisy the system is.
    pub label: [LabelCost; 4],
    /// Model calls in all: those of the programs, if every run makes as many as it may and no record answers any, and
    /// the next two.
    pub calls: u64,
    /// Of them, questions to the model that manipulators ask: if every call that a plan may hit needs every try.
    pub questions: u64,
    /// Of them, questions to the model that judges.
    pub judgements: u64,
    /// Tokens of requests, each as long as it is taken to be at most.
    pub input_tokens: u64,
    /// Tokens of replies, each as long as it may be.
    pub output_tokens: u64,
    /// Money, at the highest price that is given; `null` without prices.
    pub money: Option<f64>,
    /// What is expected, by clean runs that were made already; `null` where there are none.
    pub expected: Option<ExpectedCost>,
}

/// What clean runs cost in the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredRuns {
    /// Clean runs that were looked at.
    pub runs: u64,
    /// Calls of one.
    pub calls: f64,
    /// Tokens of its requests.
    pub input_tokens: f64,
    /// Tokens of its replies.
    pub output_tokens: f64,
    /// Tasks that were seen to be chaotic: neutral changes alone turn their outcome too often, and they get no label.
    pub chaotic_tasks: u64,
}

/// What a campaign is expected to cost: each run as much as a clean one. What records answer comes off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExpectedCost {
    /// What it is told from.
    pub measured: MeasuredRuns,
    /// Calls of all clean and injected runs.
    pub calls: f64,
    /// Tokens of their requests.
    pub input_tokens: f64,
    /// Tokens of their replies.
    pub output_tokens: f64,
    /// Money, at the highest price that is given.
    pub money: Option<f64>,
    /// Calls that each label costs beyond them, by noise as in `label`.
    pub calls_per_label: [f64; 4],
    /// Questions to the model that judges, beside these calls: one about each clean and injected run.
    pub judgements: f64,
    /// The same about the runs that each label costs beyond them.
    pub judgements_per_label: [f64; 4],
}

/// What the clean runs cost that a campaign's directory holds; `None` where it holds none of this campaign's systems.
pub fn measured(campaign: &Campaign, root: &std::path::Path) -> Option<MeasuredRuns> {
    let cells = std::fs::read_dir(root.join("cells")).ok()?;
    let ended = cells.filter_map(|entry| serde_json::from_slice(&std::fs::read(entry.ok()?.path()).ok()?).ok());
    let own = ended.filter(|ended: &EndedCell| campaign.systems.iter().any(|system| system.name == ended.system));
    let (mut runs, mut cost) = (0_u64, Cost::default());
    let mut controls: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for ended in own {
        match (&ended.kind, ended.says()) {
            (Ran::Clean { .. }, _) => {
                runs += 1;
                cost.add(&ended.spent);
            }
            (Ran::Null { .. }, ProofSample::Passed) => controls.entry((ended.system, ended.task)).or_default().0 += 1,
            (Ran::Null { .. }, ProofSample::Failed) => controls.entry((ended.system, ended.task)).or_default().1 += 1,
            _ => {}
        }
    }
    let chaotic = controls.values().filter(|(passed, failed)| is_chaotic(*passed, *failed, campaign.chaotic)).count();
    #[expect(clippy::cast_precision_loss, reason = "a mean that is shown to people")]
    let mean = |count: u64| count as f64 / runs as f64;
    let mean = MeasuredRuns {
        runs,
        calls: mean(cost.calls),
        input_tokens: mean(cost.input),
        output_tokens: mean(cost.output),
        chaotic_tasks: count(chaotic),
    };
    (runs > 0).then_some(mean)
}

/// What a label is expected to cost, once the first injected run has flipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LabelCost {
    /// How often a run comes out wrong by chance; `None` for a system that repeats itself.
    pub noise: Option<f64>,
    /// Runs beyond the injected one, in the mean.
    pub runs: f64,
    /// Of them, those without the injection, which claims that leave the reference at the same step share.
    pub shared: f64,
    /// How often a real effect comes to be shown.
    pub shown: f64,
}

impl LabelCost {
    fn of(terms: &Terms) -> [Self; 4] {
        let repeating = Self { noise: None, runs: 3.0, shared: 2.0, shown: 1.0 };
        let noisy = |noise: f64| {
            let Foretold { shown, executions, null } = foretell(terms, 1.0 - noise, noise);
            Self { noise: Some(noise), runs: executions - 1.0, shared: null, shown }
        };
        [repeating, noisy(0.0), noisy(0.1), noisy(0.2)]
    }

    fn text(&self) -> String {
        let kind =
            self.noise.map_or("if it repeats itself".to_owned(), |noise| format!("at {:.0} % noise", noise * 100.0));
        let Self { runs, shared, shown, .. } = self;
        format!("   {kind:<21} {runs:>4.1} runs more, {shared:.1} of them shared; {:.0} % are shown\n", shown * 100.0)
    }
}

impl Campaign {
    /// Most runs of one arm of a claim: where a third of them may say nothing.
    fn arm(&self) -> u64 {
        let pairs = u64::from(self.proof.pairs);
        pairs + pairs.div_ceil(2)
    }

    /// The tasks that a system is to be run on, with their places in the file: those that one of these patterns names by
    /// TASK or SYSTEM/TASK, and all where there is none.
    pub(super) fn chosen<'a>(
        &'a self,
        system: &'a str,
        only: &'a [regex::Regex],
    ) -> impl Iterator<Item = (usize, &'a Task)> {
        self.tasks.iter().enumerate().filter(move |(_, task)| {
            let full = format!("{system}/{}", task.id);
            only.is_empty() || only.iter().any(|one| one.is_match(&task.id) || one.is_match(&full))
        })
    }

    /// Whether a pattern names a task of any system.
    pub fn has_task(&self, pattern: &regex::Regex) -> bool {
        let only = std::slice::from_ref(pattern);
        self.systems.iter().any(|system| self.chosen(&system.name, only).next().is_some())
    }

    /// The greatest extent on the tasks that are chosen; what the budget cuts is cut.
    pub fn extent(&self, only: &[regex::Regex]) -> Extent {
        let mut extent = Extent { label: LabelCost::of(&self.proof), ..Extent::default() };
        for (number, system) in self.systems.iter().enumerate() {
            let tasks = count(self.chosen(&system.name, only).count());
            let judged: u64 = self.chosen(&system.name, only).map(|(_, task)| self.judgements(task)).sum();
            let clean = u64::from(self.clean);
            let fixed = self.plans.iter().filter(|fixed| fixed.systems.contains(&number));
            let (mut injected, mut narrow, mut asked) = (0, 0, 0_u64);
            for fixed in fixed {
                let runs = u64::from(fixed.repeats);
                let less = several(count(fixed.plan.injections.len())) * runs;
                let questions: u64 = fixed.plan.injections.iter().map(|one| u64::from(one.questions())).sum();
                injected += runs;
                narrow += less;
                asked = asked.saturating_add((runs + less).saturating_mul(questions * system.max_calls));
            }
            if let Some(sample) = self.sample.as_ref().filter(|sample| sample.systems.contains(&number)) {
                let runs = u64::from(sample.per_task);
                let less = several(most_targets(sample)) * runs;
                injected += runs;
                narrow += less;
                asked = asked.saturating_add((runs + less).saturating_mul(drawn(sample, system.max_calls)));
            }
            let verify = injected * 2 * self.arm();
            let narrow = narrow * 2 * self.arm();
            let runs = clean + injected + verify + narrow;
            extent.clean += tasks * clean;
            extent.injected += tasks * injected;
            extent.verify += tasks * verify;
            extent.narrow += tasks * narrow;
            extent.questions = extent.questions.saturating_add(tasks.saturating_mul(asked));
            extent.judgements += judged * runs;
            extent.calls += (tasks * runs).saturating_mul(system.max_calls);
        }
        extent.decoys = self.decoys_due(extent.injected);
        let runs = extent.decoys.saturating_mul(1 + 2 * self.arm());
        let most = self.systems.iter().map(|system| system.max_calls).max().unwrap_or_default();
        extent.calls = extent.calls.saturating_add(runs.saturating_mul(most));
        extent.verify += extent.decoys * 2 * self.arm();
        extent.calls = extent.calls.saturating_add(extent.questions).saturating_add(extent.judgements);
        self.cost(extent)
    }

    /// Tasks that bring a command of their own, which would run here.
    pub fn task_commands(&self) -> usize {
        let is_command = |task: &&Task| matches!(task.check, Some(Check::Command(_)));
        self.tasks.iter().filter(is_command).count()
    }

    /// How often a judge is asked, at most, about one run of a task.
    fn judgements(&self, task: &Task) -> u64 {
        let attempts = |check: &Check| if let Check::ModelJudge(judge) = check { u64::from(judge.attempts) } else { 0 };
        task.check.as_ref().map_or_else(|| self.verify.checks.iter().map(attempts).sum(), attempts)
    }

    /// How often a judge is asked about one run where it answers at once, in the mean over tasks.
    fn judgements_of_run(&self) -> f64 {
        let judges = |task: &Task| {
            let checks = task.check.as_ref().map_or(self.verify.checks.as_slice(), std::slice::from_ref);
            checks.iter().filter(|check| matches!(check, Check::ModelJudge(_))).count()
        };
        #[expect(clippy::cast_precision_loss, reason = "a mean, for an estimate")]
        let mean = |sum: usize| sum as f64 / self.tasks.len().max(1) as f64;
        mean(self.tasks.iter().map(judges).sum())
    }

    fn cost(&self, mut extent: Extent) -> Extent {
        let budget = &self.budget;
        let bound = budget.calls.unwrap_or(u64::MAX);
        for calls in [&mut extent.calls, &mut extent.questions, &mut extent.judgements] {
            *calls = bound.min(*calls);
        }
        let input = budget.max_input_tokens.unwrap_or(MAX_INPUT_TOKENS);
        extent.input_tokens = extent.calls.saturating_mul(input);
        extent.output_tokens = extent.calls.saturating_mul(budget.max_output_tokens);
        if let Some(tokens) = budget.tokens {
            extent.input_tokens = extent.input_tokens.min(tokens);
            extent.output_tokens = extent.output_tokens.min(tokens);
        }
        let highest = |price: fn(&super::ModelPrice) -> f64| self.prices.iter().map(price).fold(0.0, f64::max);
        let pico = pico_for(extent.input_tokens, highest(|price| price.input))
            .saturating_add(pico_for(extent.output_tokens, highest(|price| price.output)));
        #[expect(clippy::cast_precision_loss, reason = "an amount that is shown to people")]
        let money = pico as f64 / PICO;
        extent.money = (!self.prices.is_empty()).then(|| money.min(budget.money.unwrap_or(f64::MAX)));
        extent
    }
}

impl Extent {
    /// The same with what is expected, by what clean runs cost.
    #[must_use]
    pub fn expecting(mut self, campaign: &Campaign, measured: Option<MeasuredRuns>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a number of runs, for an estimate")]
        let runs = (self.clean + self.injected + self.decoys) as f64;
        self.expected = measured.map(|measured| {
            let highest = |price: fn(&super::ModelPrice) -> f64| campaign.prices.iter().map(price).fold(0.0, f64::max);
            let (input_tokens, output_tokens) = (runs * measured.input_tokens, runs * measured.output_tokens);
            let money =
                (input_tokens * highest(|price| price.input) + output_tokens * highest(|price| price.output)) / 1e6;
            ExpectedCost {
                measured,
                calls: runs * measured.calls,
                input_tokens,
                output_tokens,
                money: (!campaign.prices.is_empty()).then_some(money),
                calls_per_label: self.label.map(|label| label.runs * measured.calls),
                judgements: runs * campaign.judgements_of_run(),
                judgements_per_label: self.label.map(|label| label.runs * campaign.judgements_of_run()),
            }
        });
        self
    }

    /// In words, a line each.
    pub fn text(&self) -> String {
        let Self { clean, injected, decoys, verify, narrow, calls, questions, judgements, .. } = self;
        let Self { input_tokens, output_tokens, money, .. } = self;
        let runs = clean + injected + decoys + verify + narrow;
        let expected = self.expected.as_ref().map(ExpectedCost::text).unwrap_or_default();
        let labels: String = self.label.iter().map(LabelCost::text).collect();
        let money = money.map_or("unknown: no [[price]] is given".to_owned(), |money| format!("{money:.2}"));
        let asked = |count: &u64, what: &str| match count {
            0 => String::new(),
            count => format!("   of them     at most {count} {what}\n"),
        };
        let planted = if *decoys == 0 { String::new() } else { format!("decoys         at most {decoys}\n") };
        let (asked, judged) = (asked(questions, "of models that rewrite"), asked(judgements, "of a model that judges"));
        format!(
            "clean runs     {clean}\ninjected runs  at most {injected}\n{planted}verifying      at most {verify}\n\
             narrowing      at most {narrow}\nruns           at most {runs}\nmodel calls    at most {calls}\n\
             {asked}{judged}tokens         at most {input_tokens} in, {output_tokens} out\nmoney          at most {money}\n\
             {expected}a label, once the outcome has flipped, is expected to cost\n{labels}"
        )
    }
}

impl ExpectedCost {
    fn text(&self) -> String {
        let Self { measured, calls, input_tokens, output_tokens, money, .. } = self;
        let [repeating, _, _, noisy] = self.calls_per_label;
        let judged = match (self.judgements, self.judgements_per_label) {
            (0.0, _) => String::new(),
            (asked, [few, _, _, more]) => format!(
                "   judged       about {asked:.0} questions to the model that judges beside them, {few:.0} to {more:.0} more \
                 each label\n"
            ),
        };
        let MeasuredRuns { runs, calls: each, chaotic_tasks, .. } = measured;
        let chaotic = match chaotic_tasks {
            0 => String::new(),
            tasks => format!(
                "   chaotic      {tasks} of the tasks: neutral changes alone turn their outcome, and they get no label\n"
            ),
        };
        let money = money.map(|money| format!(", money {money:.2}")).unwrap_or_default();
        format!(
            "expected       about {calls:.0} calls, {input_tokens:.0} tokens in, {output_tokens:.0} out{money} for clean and \
             injected runs\n   by           {each:.1} calls a clean run, in {runs} of them\n   each label   about \
             {repeating:.0} calls more if it repeats itself, {noisy:.0} at 20 % noise\n{judged}{chaotic}"
        )
    }
}

/// How often a model is asked, at most, in a run of a drawn plan: each agent that is hit, in all its calls or in one.
fn drawn(sample: &SampleSpace, max_calls: u64) -> u64 {
    let questions = sample.templates.iter().map(|template| u64::from(template.questions)).max().unwrap_or_default();
    let every = sample.positions.contains(&CallPosition::Every);
    let hit = if every { max_calls } else { most_targets(sample).min(max_calls) };
    questions * hit
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A plan of one injection is not narrowed.
fn several(injections: u64) -> u64 {
    if injections > 1 { injections } else { 0 }
}

fn most_targets(sample: &SampleSpace) -> u64 {
    sample.targets.iter().copied().max().map_or(1, u64::from)
}
