//! What a campaign would do and could cost at most, without doing any of it.

use serde::Serialize;

use super::{
    budget::{PICO, pico_for},
    definition::{Campaign, Sample},
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
    /// Controls, if every injected run flips at a place of its own.
    pub controls: u64,
    /// Runs less one injection, if every plan of several is proven.
    pub narrow: u64,
    /// Model calls, if every run makes as many as it may and no record answers any.
    pub calls: u64,
    /// Tokens of requests, each as long as it is taken to be at most.
    pub input_tokens: u64,
    /// Tokens of replies, each as long as it may be.
    pub output_tokens: u64,
    /// Money, at the highest price that is given; `null` without prices.
    pub money: Option<f64>,
}

impl Campaign {
    /// The greatest extent; what the budget cuts is cut.
    pub fn extent(&self) -> Extent {
        let mut extent = Extent::default();
        let tasks = count(self.tasks.len());
        for (number, system) in self.systems.iter().enumerate() {
            let clean = tasks * u64::from(self.clean);
            let fixed = self.plans.iter().filter(|fixed| fixed.systems.contains(&number));
            let (mut injected, mut narrow) = (0, 0);
            for fixed in fixed {
                let runs = tasks * u64::from(fixed.repeats);
                injected += runs;
                narrow += several(count(fixed.plan.injections.len())) * runs;
            }
            if let Some(sample) = self.sample.as_ref().filter(|sample| sample.systems.contains(&number)) {
                let runs = tasks * u64::from(sample.per_task);
                injected += runs;
                narrow += several(most_targets(sample)) * runs;
            }
            let controls = injected * u64::from(self.controls);
            extent.clean += clean;
            extent.injected += injected;
            extent.controls += controls;
            extent.narrow += narrow;
            extent.calls += (clean + injected + controls + narrow).saturating_mul(system.max_calls);
        }
        self.cost(extent)
    }

    fn cost(&self, mut extent: Extent) -> Extent {
        let budget = &self.budget;
        extent.calls = extent.calls.min(budget.calls.unwrap_or(u64::MAX));
        let input = budget.max_input_tokens.unwrap_or(MAX_INPUT_TOKENS);
        extent.input_tokens = extent.calls.saturating_mul(input);
        extent.output_tokens = extent.calls.saturating_mul(budget.max_output_tokens);
        if let Some(tokens) = budget.tokens {
            extent.input_tokens = extent.input_tokens.min(tokens);
            extent.output_tokens = extent.output_tokens.min(tokens);
        }
        let highest = |price: fn(&super::Price) -> f64| self.prices.iter().map(price).fold(0.0, f64::max);
        let pico = pico_for(extent.input_tokens, highest(|price| price.input))
            .saturating_add(pico_for(extent.output_tokens, highest(|price| price.output)));
        #[expect(clippy::cast_precision_loss, reason = "an amount that is shown to people")]
        let money = pico as f64 / PICO;
        extent.money = (!self.prices.is_empty()).then(|| money.min(budget.money.unwrap_or(f64::MAX)));
        extent
    }
}

impl Extent {
    /// In words, a line each.
    pub fn text(&self) -> String {
        let Self { clean, injected, controls, narrow, calls, input_tokens, output_tokens, money } = self;
        let runs = clean + injected + controls + narrow;
        let money = money.map_or("unknown: no [[price]] is given".to_owned(), |money| format!("{money:.2}"));
        format!(
            "clean runs     {clean}\ninjected runs  at most {injected}\ncontrols       at most {controls}\n\
             narrowing      at most {narrow}\nruns           at most {runs}\nmodel calls    at most {calls}\n\
             tokens         at most {input_tokens} in, {output_tokens} out\nmoney          at most {money}\n"
        )
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A plan of one injection is not narrowed.
fn several(injections: u64) -> u64 {
    if injections > 1 { injections } else { 0 }
}

fn most_targets(sample: &Sample) -> u64 {
    sample.targets.iter().copied().max().map_or(1, u64::from)
}
