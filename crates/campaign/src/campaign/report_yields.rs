//! What the errors that were planted came to: per combination, and per mode, system, agent and position.

use std::collections::BTreeMap;

use super::{
    aim::Aim,
    ended::Class,
    file::CallPosition,
    funnel::InjectedRun,
    report::{ErrorFunnel, ModeBalance, PlantedCount, ReportedShare, Stratum, YieldRow},
};
use crate::trajectory::{AgentName, FailureMode, Need, PrincipalKind, Side, Tally};

/// A combination of what can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PlantedPlace {
    system: String,
    aim: Aim,
    position: Option<CallPosition>,
    targets: usize,
}

/// Sums over errors.
#[derive(Debug, Default)]
pub(super) struct YieldSums {
    sums: BTreeMap<PlantedPlace, ErrorFunnel>,
}

impl YieldSums {
    /// Adds the errors of an injected run.
    pub(super) fn add(&mut self, attempt: &InjectedRun) {
        for (injection, aim) in attempt.aims.iter().enumerate() {
            let place = PlantedPlace {
                system: attempt.system.clone(),
                aim: aim.clone(),
                position: attempt.position,
                targets: attempt.aims.len(),
            };
            let sum = self.sums.entry(place).or_default();
            sum.planted += 1;
            sum.delivered += usize::from(attempt.delivered);
            sum.flipped += usize::from(attempt.flipped);
            sum.necessary += usize::from(attempt.needs(injection));
        }
    }

    /// Per system, agent, mode, side and manipulator.
    pub(super) fn strata(&self) -> Vec<Stratum> {
        let sums = self.by(|place| Some((place.system.clone(), place.aim.clone())));
        let stratum = |((system, aim), funnel): ((String, Aim), ErrorFunnel)| Stratum {
            system,
            agent: aim.agent,
            mode: aim.mode.map(FailureMode::code),
            side: aim.side.map(|side| match side {
                Side::Request => "request",
                Side::Response => "response",
            }),
            manipulator: aim.operator,
            share: funnel.share(),
            funnel,
        };
        sums.into_iter().map(stratum).collect()
    }

    /// Per failure mode, all 14.
    pub(super) fn modes(&self) -> Vec<ModeBalance> {
        let sums = self.by(|place| place.aim.mode.map(FailureMode::code));
        let balance = |mode: &FailureMode| {
            let funnel = sums.get(mode.code()).copied().unwrap_or_default();
            ModeBalance { mode: mode.code(), name: mode.name(), share: funnel.share(), funnel }
        };
        FailureMode::ALL.iter().map(balance).collect()
    }

    /// Per system.
    pub(super) fn systems(&self) -> Vec<YieldRow> {
        rows(self.by(|place| Some(place.system.clone())))
    }

    /// Per agent of a system.
    pub(super) fn agents(&self) -> Vec<YieldRow> {
        rows(self.by(|place| Some(format!("{}: {}", place.system, place.aim.agent))))
    }

    /// Per kind of what erred; none where that is always an agent.
    pub(super) fn culprits(&self) -> Vec<YieldRow> {
        // What a plan aims at by a pattern is written as the plan has it: `tool *`.
        let kind = |agent: &str| match agent.split_once(' ') {
            Some(("tool", _)) => PrincipalKind::Tool,
            Some(("peer", _)) => PrincipalKind::Peer,
            _ => AgentName::parse(agent).map(|name| name.kind()).unwrap_or_default(),
        };
        let kinds = self.by(|place| Some(kind(&place.aim.agent).name().to_owned()));
        let is_agent_alone = kinds.keys().all(|name| name == PrincipalKind::Agent.name());
        if is_agent_alone { Vec::new() } else { rows(kinds) }
    }

    /// Per position of drawn plans.
    pub(super) fn positions(&self) -> Vec<YieldRow> {
        rows(self.by(|place| place.position.map(|position| position.name().to_owned())))
    }

    /// How often each combination was planted, in all systems.
    pub(super) fn design(&self) -> Vec<PlantedCount> {
        let sums = self.by(|place| {
            Some((place.aim.mode.map(FailureMode::code), place.aim.agent.clone(), place.position, place.targets))
        });
        let count = |((mode, agent, position, targets), funnel): ((_, _, _, _), ErrorFunnel)| PlantedCount {
            mode,
            agent,
            position,
            targets,
            planted: funnel.planted,
        };
        sums.into_iter().map(count).collect()
    }

    fn by<K: Ord>(&self, key: impl Fn(&PlantedPlace) -> Option<K>) -> BTreeMap<K, ErrorFunnel> {
        let mut sums: BTreeMap<K, ErrorFunnel> = BTreeMap::new();
        for (place, funnel) in &self.sums {
            if let Some(key) = key(place) {
                sums.entry(key).or_default().add(funnel);
            }
        }
        sums
    }
}

impl InjectedRun {
    /// Whether the run is a proven failure that needs this injection, by its index: the only one, or one that was shown to be
    /// necessary.
    fn needs(&self, injection: usize) -> bool {
        let of_it = |need: u32| usize::try_from(need).is_ok_and(|need| need == injection);
        let mut shown = self.necessity.iter().filter(|need| need.state == Need::Necessary);
        let is_alone = self.aims.len() == 1;
        self.class == Some(Class::Verified) && (is_alone || shown.any(|need| of_it(need.injection)))
    }
}

impl ErrorFunnel {
    fn add(&mut self, other: &Self) {
        self.planted += other.planted;
        self.delivered += other.delivered;
        self.flipped += other.flipped;
        self.necessary += other.necessary;
    }

    fn share(&self) -> ReportedShare {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let tally = Tally::new(number(self.necessary), number(self.planted));
        let (low, high) = tally.interval();
        ReportedShare { value: tally.share().unwrap_or_default(), low, high }
    }
}

fn rows(sums: BTreeMap<String, ErrorFunnel>) -> Vec<YieldRow> {
    sums.into_iter().map(|(name, funnel)| YieldRow { name, share: funnel.share(), funnel }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Executed, Necessity};

    /// A run with an error in each of these agents; of those of `needs`, by index, it is shown that the failure needs them.
    fn run(agents: &[&str], class: Class, needs: &[u32]) -> InjectedRun {
        let aim = |agent: &&str| Aim {
            agent: (*agent).to_owned(),
            mode: FailureMode::parse("FM-2.6").ok(),
            side: Some(Side::Response),
            operator: "corrupt_number".to_owned(),
        };
        let necessity = |(injection, agent): (u32, &&str)| Necessity {
            injection,
            agent: AgentName::parse(agent).expect("a name"),
            instance: 0,
            state: if needs.contains(&injection) { Need::Necessary } else { Need::NotNeeded },
            executed: Executed::default(),
            exclusion: None,
        };
        let several = agents.len() > 1 && class == Class::Verified;
        InjectedRun {
            system: "s".to_owned(),
            task: "t".to_owned(),
            plan: "p".to_owned(),
            decoy: false,
            position: Some(CallPosition::First),
            aims: agents.iter().map(aim).collect(),
            class: Some(class),
            delivered: true,
            flipped: class == Class::Verified,
            run: None,
            ended: None,
            claim: None,
            fork_step: None,
            standing: None,
            executed: None,
            necessity: if several { (0..).zip(agents).map(necessity).collect() } else { Vec::new() },
            why: None,
        }
    }

    #[test]
    fn culprits_are_counted_where_not_all_are_agents() {
        let mut sums = YieldSums::default();
        sums.add(&run(&["solver"], Class::Verified, &[]));
        assert!(sums.culprits().is_empty());
        sums.add(&run(&["tool *"], Class::Verified, &[]));
        sums.add(&run(&["mcp/calc/add"], Class::Benign, &[]));
        let rows = sums.culprits().into_iter().map(|row| (row.name, row.funnel.planted, row.funnel.necessary));
        assert_eq!(rows.collect::<Vec<_>>(), [("agent".to_owned(), 1, 1), ("tool".to_owned(), 2, 1)]);
    }

    #[test]
    fn an_error_that_was_shown_not_to_matter_counts_for_nobody() {
        let mut sums = YieldSums::default();
        for one in [
            run(&["planner", "critic"], Class::Verified, &[1]),
            run(&["planner", "critic"], Class::Verified, &[0, 1]),
            run(&["planner"], Class::Verified, &[]),
            run(&["planner"], Class::Benign, &[]),
            run(&["critic", "planner"], Class::Verified, &[]),
        ] {
            sums.add(&one);
        }
        let counts = |rows: Vec<YieldRow>| {
            let count = |row: YieldRow| (row.name, row.funnel.planted, row.funnel.flipped, row.funnel.necessary);
            rows.into_iter().map(count).collect::<Vec<_>>()
        };
        let expected = [("s: critic".to_owned(), 3, 3, 2), ("s: planner".to_owned(), 5, 4, 2)];
        assert_eq!(counts(sums.agents()), expected);
        assert_eq!(counts(sums.systems()), [("s".to_owned(), 8, 7, 4)]);
        assert_eq!(counts(sums.positions()), [("first".to_owned(), 8, 7, 4)]);
        let mode = sums.modes().into_iter().find(|row| row.mode == "FM-2.6").expect("one of the 14");
        assert_eq!((mode.funnel.planted, mode.funnel.necessary, mode.share.value), (8, 4, 0.5));
        assert_eq!(sums.modes().len(), 14);
        let design = sums.design().into_iter().map(|row| (row.agent, row.targets, row.planted)).collect::<Vec<_>>();
        let of = |agent: &str, targets, planted| (agent.to_owned(), targets, planted);
        assert_eq!(design, [of("critic", 2, 3), of("planner", 1, 2), of("planner", 2, 3)]);
    }
}
