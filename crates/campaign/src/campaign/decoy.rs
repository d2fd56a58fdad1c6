//! Decoys: neutral changes, planted where errors are and proven like them. They turn no outcome but by chance, so how many of them
//! are verified is the measured rate of labels that say nothing.

use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};

use super::{chain::Chain, definition::Campaign, treatment::TargetedPlan};
use crate::{
    dataset::DecoyCounts,
    plan::{self, Operator, RecordedCall},
    trajectory::Side,
};

/// What keeps a share of a whole number whole: 0.29 of 100 is 29.
const ROUNDING: f64 = 1e-9;

/// What the name of a decoy's plan begins with; the name of the plan in whose place it is planted follows.
const DECOY: &str = "decoy of ";

/// Whether a plan of this name is a decoy.
pub(super) fn is_decoy(plan: &str) -> bool {
    plan.starts_with(DECOY)
}

impl Campaign {
    /// Which of so many planned runs of a chain get a decoy beside them, by their index: as many as are due up to this chain, so that all
    /// chains together have the share that is wanted, and any one of a chain's plans as likely as another.
    pub(super) fn decoys_of(&self, chain: Chain, planned: usize) -> Vec<usize> {
        let runs_of = |system: usize| {
            let fixed = self.plans.iter().filter(|fixed| fixed.systems.contains(&system));
            let drawn = self.sample.iter().filter(|sample| sample.systems.contains(&system));
            let runs = fixed.map(|fixed| u64::from(fixed.repeats)).chain(drawn.map(|drawn| u64::from(drawn.per_task)));
            runs.sum::<u64>()
        };
        let length = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let systems_before: u64 = (0..chain.system).map(|system| runs_of(system) * length(self.tasks.len())).sum();
        let own = runs_of(chain.system);
        let before = systems_before + own * length(chain.task);
        let mut drawn: Vec<usize> = (0..planned).collect();
        let wanted = usize::try_from(self.decoys_for(before + own) - self.decoys_for(before)).unwrap_or(usize::MAX);
        drawn.shuffle(&mut self.decoy_draws(chain));
        drawn.truncate(wanted);
        drawn.sort_unstable();
        drawn
    }

    /// How many decoys so many planned runs get.
    pub(super) fn decoys_for(&self, runs: u64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share, from 0 to below 1, of a number of runs"
        )]
        let due = (self.decoys * runs as f64 + ROUNDING) as u64;
        due
    }

    fn decoy_draws(&self, chain: Chain) -> ChaCha8Rng {
        let words = format!("{} {} {}", self.seed, chain.system, chain.task);
        ChaCha8Rng::from_seed(blake3::derive_key("aegis decoys 1", words.as_bytes()))
    }
}

/// The counts with a decoy of a chain beside them.
pub(super) fn counted(counts: DecoyCounts, decoy: &super::funnel::InjectedRun) -> DecoyCounts {
    if !decoy.delivered {
        return counts;
    }
    let verified = decoy.class == Some(super::ended::Class::Verified);
    DecoyCounts::new(
        counts.planted + 1,
        counts.flipped + u64::from(decoy.flipped),
        counts.verified + u64::from(verified),
    )
}

impl TargetedPlan {
    /// The same plan with a neutral change in the place of each edit; `None` where it edits nothing.
    pub(super) fn as_decoy(&self, called: &[RecordedCall]) -> Option<Self> {
        let mut table: toml::Table = toml::from_str(&self.plan.text).ok()?;
        table.remove("check");
        let entries = table.get_mut("injection")?.as_array_mut()?;
        let mut sides = self.plan.injections.iter().map(|injection| match &injection.operator {
            Operator::Manipulator { side, .. } => Some(*side),
            Operator::Fault(_) => None,
        });
        entries.retain_mut(|entry| {
            let (Some(Some(side)), Some(entry)) = (sides.next(), entry.as_table_mut()) else { return false };
            // What is said to a tool holds arguments alone; its results have blanks.
            let side = match side {
                Side::Request if !entry.contains_key("tool") => "request",
                Side::Request | Side::Response => "response",
            };
            let neutral = toml::Table::from_iter([("neutral_change".to_owned(), toml::Table::new().into())]);
            entry.insert("side".to_owned(), side.into());
            entry.insert("manipulator".to_owned(), neutral.into());
            true
        });
        if entries.is_empty() {
            return None;
        }
        let name = format!("{DECOY}{}", self.name);
        let plan = plan::parse(&toml::to_string(&table).ok()?, &name).ok()?;
        Some(Self { name, plan: plan::resolve(&plan, called).ok()?, position: self.position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "format = 1\nseed = 3\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
        manipulator.corrupt_number = { by = 10 }\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.hang = {}\n\
        [[injection]]\nagent = \"critic\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\n\
        manipulator.append_instruction = { role = \"system\", text = \"Stop.\" }\n";

    #[test]
    fn a_decoy_aims_where_the_plan_does_and_means_nothing() {
        let call = |agent: &str, step| RecordedCall { agent: agent.to_owned(), instance: 0, call: 0, step };
        let aimed = |text: &str| TargetedPlan {
            name: "wrong".to_owned(),
            plan: plan::parse(text, "wrong").expect("a plan"),
            position: None,
        };
        let decoy = aimed(PLAN).as_decoy(&[call("solver", 0), call("critic", 1)]).expect("a decoy");
        assert_eq!(decoy.name, "decoy of wrong");
        assert!(is_decoy(&decoy.name) && !is_decoy("wrong"));
        let injections = decoy.plan.injections.iter().map(|one| (one.name.as_str(), one.agents.0[0].to_string()));
        assert_eq!(
            injections.collect::<Vec<_>>(),
            [("neutral_change", "solver".to_owned()), ("neutral_change", "critic".to_owned())]
        );
        let of_tool = "format = 1\n[[injection]]\ntool = \"add\"\nside = \"request\"\nwhen = { always = true, max_times = 1 }\n\
            manipulator.edit_tool_call = { set = { \"/b\" = 31 } }\n";
        let decoy = aimed(of_tool).as_decoy(&[]).expect("a decoy of a tool's result");
        assert!(matches!(decoy.plan.injections[0].operator, Operator::Manipulator { side: Side::Response, .. }));
        let only_fault = "format = 1\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.hang = {}\n";
        assert!(aimed(only_fault).as_decoy(&[]).is_none());
    }
}
