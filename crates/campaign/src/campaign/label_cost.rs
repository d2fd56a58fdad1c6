//! What a label costs: the runs that are made once an outcome has flipped.

use serde::Serialize;

use crate::proof::{Foretold, Terms, foretell};

/// What a label is expected to cost, once the first injected run has flipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
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
    pub(super) fn for_terms(terms: &Terms) -> [Self; 4] {
        let repeating = Self { noise: None, runs: 3.0, shared: 2.0, shown: 1.0 };
        let noisy = |noise: f64| {
            let Foretold { shown, executions, control } = foretell(terms, 1.0 - noise, noise);
            Self { noise: Some(noise), runs: executions - 1.0, shared: control, shown }
        };
        [repeating, noisy(0.0), noisy(0.1), noisy(0.2)]
    }

    pub(super) fn text(&self) -> String {
        let kind =
            self.noise.map_or("if it repeats itself".to_owned(), |noise| format!("at {:.0} % noise", noise * 100.0));
        let Self { runs, shared, shown, .. } = self;
        format!("   {kind:<21} {runs:>4.1} runs more, {shared:.1} of them shared; {:.0} % are shown\n", shown * 100.0)
    }
}
