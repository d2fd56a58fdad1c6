//! What a campaign would do and could cost at most, without doing any of it.

use serde::Serialize;

use super::{
    definition::{Campaign, SampleSpace},
    file::CallPosition,
    forecast::{ExpectedCost, MeasuredCampaign, several},
    label_cost::LabelCost,
};
use crate::{
    budget::{PICO, pico_for},
    dataset::Task,
    verify::Check,
};

/// Tokens that a request is taken to have, where the file says nothing.
const MAX_INPUT_TOKENS: u64 = 8192;

/// The greatest extent of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
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
    /// Executions that trace clean runs which fail, if every one of them fails; 0 where none is traced.
    pub natural: u64,
    /// Executions that search failures for missed catches, if every failure that may be shown is; 0 where none is searched.
    pub missed_catch: u64,
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
    /// What is expected, by runs that were made already; `null` where no clean run is among them.
    pub expected: Option<ExpectedCost>,
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

    /// So many of the tasks that are chosen, from all over the file, as `--only` names them: by their systems, too, where only
    /// some are chosen.
    pub fn some_tasks(&self, only: &[regex::Regex], many: usize) -> Vec<String> {
        let chains = self.chains(only);
        let mut names: Vec<String> = Vec::new();
        for chain in chains {
            let name = if only.is_empty() { self.names_of(chain).1.to_owned() } else { self.named(chain) };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let many = many.min(names.len());
        (0..many).filter_map(|number| names.get(number * names.len() / many).cloned()).collect()
    }

    /// Whether a pattern names a task of any system.
    pub fn has_task(&self, pattern: &regex::Regex) -> bool {
        let only = std::slice::from_ref(pattern);
        self.systems.iter().any(|system| self.chosen(&system.name, only).next().is_some())
    }

    /// The greatest extent on the tasks that are chosen; what the budget cuts is cut.
    pub fn extent(&self, only: &[regex::Regex]) -> Extent {
        let mut extent = Extent { label: LabelCost::for_terms(&self.proof), ..Extent::default() };
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
            let natural = self.natural.as_ref().map_or(0, |search| clean * u64::from(search.runs));
            let failures = injected + self.natural.as_ref().map_or(0, |_| clean);
            let catches = self.missed_catch.as_ref().map_or(0, |search| failures * u64::from(search.runs));
            let runs = clean + injected + verify + narrow + natural + catches;
            extent.natural += tasks * natural;
            extent.missed_catch += tasks * catches;
            extent.clean += tasks * clean;
            extent.injected += tasks * injected;
            extent.verify += tasks * verify;
            extent.narrow += tasks * narrow;
            extent.questions = extent.questions.saturating_add(tasks.saturating_mul(asked));
            extent.judgements += judged * runs;
            extent.calls += (tasks * runs).saturating_mul(system.max_calls);
        }
        extent.decoys = self.decoys_for(extent.injected);
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
    /// The same with what is expected, by what was made.
    #[must_use]
    pub fn expecting(mut self, campaign: &Campaign, measured: Option<&MeasuredCampaign>) -> Self {
        let runs = self.clean + self.injected + self.decoys;
        self.expected = measured.map(|measured| campaign.expected_by(runs, &self.label, measured));
        self
    }

    /// Runs in all, at most.
    pub fn runs(&self) -> u64 {
        self.clean + self.injected + self.decoys + self.verify + self.narrow + self.natural + self.missed_catch
    }

    /// Runs of searches that depend on which runs fail, at most: what is expected leaves them out.
    pub fn searches(&self) -> u64 {
        self.natural + self.missed_catch
    }

    /// In words, a line each: the runs, and what a label takes.
    pub fn text(&self) -> String {
        let Self { clean, injected, decoys, verify, narrow, natural, missed_catch, .. } = self;
        let runs = self.runs();
        let labels: String = self.label.iter().map(LabelCost::text).collect();
        let planted = if *decoys == 0 { String::new() } else { format!("decoys         at most {decoys}\n") };
        let traced = if *natural == 0 { String::new() } else { format!("tracing        at most {natural}\n") };
        let caught =
            if *missed_catch == 0 { String::new() } else { format!("missed catch   at most {missed_catch}\n") };
        format!(
            "clean runs     {clean}\ninjected runs  at most {injected}\n{planted}verifying      at most {verify}\n\
             narrowing      at most {narrow}\n{traced}{caught}runs           at most {runs}\n\
             a label, once the outcome has flipped, is expected to cost\n{labels}"
        )
    }

    /// The most that it can cost, in words, on one line.
    pub fn worst_case(&self) -> String {
        let Self { calls, questions, judgements, input_tokens, output_tokens, money, .. } = self;
        let money = money.map_or("unknown, for no [[price]] is given".to_owned(), |money| format!("{money:.2}"));
        let asked = [(questions, "of models that rewrite"), (judgements, "of a model that judges")];
        let asked = asked.iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!("{count} {what}"));
        let asked = asked.collect::<Vec<_>>().join(" and ");
        let asked = if asked.is_empty() { asked } else { format!(" (of them {asked})") };
        format!(
            "worst case     at most {calls} model calls{asked}, {input_tokens} tokens in, {output_tokens} out, money {money}\n"
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

fn most_targets(sample: &SampleSpace) -> u64 {
    sample.targets.iter().copied().max().map_or(1, u64::from)
}
