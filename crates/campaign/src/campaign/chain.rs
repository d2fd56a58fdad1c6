//! Chains: all that is made of one task by one system, from its clean runs to what shows its claims. Nothing of a chain
//! depends on another, so it is the unit of work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{definition::Campaign, error::CampaignError};

/// One task of one system, by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) system: usize,
    pub(super) task: usize,
}

/// Whether a program called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Silence {
    /// It did.
    Broken,
    /// No clean run made a call.
    #[serde(rename = "kept")]
    Unbroken {
        /// Whether all of them ran out of time.
        late: bool,
        /// What it last said on its standard error.
        said: String,
    },
}

impl Campaign {
    /// The chains of the campaign, in the order of its data: system by system, and each in the order of the tasks.
    pub(super) fn chains(&self, only: &[regex::Regex]) -> Vec<Chain> {
        let of_system = |(system, named): (usize, &super::CampaignSystem)| {
            self.chosen(&named.name, only).map(move |(task, _)| Chain { system, task }).collect::<Vec<_>>()
        };
        self.systems.iter().enumerate().flat_map(of_system).collect()
    }

    /// A chain's system and task.
    pub(super) fn names_of(&self, chain: Chain) -> (&str, &str) {
        let system = self.systems.get(chain.system).map_or("", |system| system.name.as_str());
        (system, self.tasks.get(chain.task).map_or("", |task| task.id.as_str()))
    }

    /// A chain as people name it: SYSTEM/TASK.
    pub(super) fn named(&self, chain: Chain) -> String {
        let (system, task) = self.names_of(chain);
        format!("{system}/{task}")
    }
}

/// A system whose programs never reach the proxy is set up wrongly: what it came to proves nothing.
#[derive(Debug, Default)]
pub(super) struct SystemSilences(BTreeMap<usize, Silence>);

impl SystemSilences {
    /// Hears of a chain. The first that was silent is told of, where none made a call.
    pub(super) fn add(&mut self, chain: Chain, silence: Option<&Silence>) {
        match silence {
            None => {}
            Some(Silence::Broken) => drop(self.0.insert(chain.system, Silence::Broken)),
            Some(Silence::Unbroken { late, said }) => {
                let known = self.0.entry(chain.system);
                let known = known.or_insert_with(|| Silence::Unbroken { late: true, said: said.clone() });
                if let Silence::Unbroken { late: all, .. } = known {
                    *all &= *late;
                }
            }
        }
    }

    /// # Errors
    /// A system none of whose clean runs made a call.
    pub(super) fn refuse_silence(&self, campaign: &Campaign) -> Result<(), CampaignError> {
        for (number, silence) in &self.0 {
            let (Silence::Unbroken { late, said }, Some(system)) = (silence, campaign.systems.get(*number)) else {
                continue;
            };
            let limit = system.timeout.as_secs_f64();
            let late =
                if *late { format!("all runs were ended after `timeout_s` = {limit} first; ") } else { String::new() };
            return Err(CampaignError::NoCall { system: system.name.clone(), said: format!("{late}{said}") });
        }
        Ok(())
    }
}
