//! A run that is watched.

use std::{collections::HashSet, sync::Arc};

use super::{Look, Past, Sighting, WatchRule, WatchSettings, WatchedStep, WireExchange, ending, wire};
use crate::trajectory::{AgentName, FailureMode, WatchSign};

/// Signs of which is remembered that they were told. Agents of a run are bounded, and so are rules.
const TOLD: usize = 1 << 14;

/// What is known of a run under way, and what was said of it.
#[derive(Debug)]
pub struct Watching {
    settings: Arc<WatchSettings>,
    past: Past,
    reported: HashSet<(&'static str, String, u32)>,
}

impl Watching {
    /// Nothing has happened yet.
    pub fn new(settings: Arc<WatchSettings>) -> Self {
        Self { settings, past: Past::default(), reported: HashSet::default() }
    }

    /// The run's task, where it is known apart from what agents are asked.
    pub fn knows(&mut self, task: &str) {
        self.past.knows(task);
    }

    /// An exchange has ended. One whose request cannot be read, or that asks for no words, says nothing.
    pub fn observe(&mut self, exchange: &WireExchange<'_>) -> Vec<WatchSign> {
        wire::step(&self.past, exchange).map(|step| self.see(step)).unwrap_or_default()
    }

    /// A step has ended: what its rules see, and what joins the past.
    pub fn see(&mut self, step: WatchedStep) -> Vec<WatchSign> {
        let settings = Arc::clone(&self.settings);
        let step = WatchedStep { window: settings.window, ..step };
        let mut signs = Vec::new();
        for (rule, stops) in &settings.rules {
            if let Look::Step(look) = rule.look
                && let Some(seen) = look(&self.past, &step)
            {
                signs.extend(self.tell(rule, *stops, seen, &step.agent, step.instance, step.step));
            }
        }
        if step.refused.is_none() {
            let ends = ending::is_end(&step.reply)
                || settings.end.as_ref().is_some_and(|end| end.regex().is_match(&step.reply));
            self.past.learn(&step, ends);
        }
        signs
    }

    /// The run is over. `roster`: the names of the agents that it may have.
    pub fn end(&mut self, roster: &[String]) -> Vec<WatchSign> {
        let settings = Arc::clone(&self.settings);
        let Some((step, agent, instance)) = self.past.last.clone() else { return Vec::new() };
        let mut signs = Vec::new();
        for (rule, _) in &settings.rules {
            if let Look::End(look) = rule.look
                && let Some(seen) = look(&self.past, roster)
            {
                signs.extend(self.tell(rule, false, seen, &agent, instance, step));
            }
        }
        signs
    }

    /// A sign, unless this rule has spoken of the agent.
    fn tell(
        &mut self,
        rule: &WatchRule,
        stops: bool,
        seen: Sighting,
        agent: &str,
        instance: u32,
        step: u32,
    ) -> Option<WatchSign> {
        // A log of others may call its agents as no name of ours may be.
        let name = AgentName::parse(agent).unwrap_or_else(|_| AgentName::unnamed(0));
        if !self.settings.repeats
            && (self.reported.len() >= TOLD || !self.reported.insert((rule.name, agent.to_owned(), instance)))
        {
            return None;
        }
        Some(WatchSign {
            rule: rule.name.to_owned(),
            agent: name,
            instance,
            step,
            failure_mode: FailureMode::parse(rule.mode).ok(),
            seen: seen.seen,
            quote: seen.quote,
            stops,
        })
    }
}
