//! The rosters fit the agents.

use super::*;

#[test]
fn rosters_name_each_agent_once() {
    for example in Example::ALL {
        for agent in example.agents() {
            assert_eq!(example.roster().matches(&format!("name = \"{agent}\"")).count(), 1, "{agent}");
        }
    }
    let prompts =
        debate::DEBATERS.iter().chain([&debate::JUDGE, &pipeline::PLANNER, &pipeline::SOLVER, &pipeline::CRITIC]);
    let rules = || {
        let lines = Example::ALL.iter().flat_map(|example| example.roster().lines());
        lines.filter_map(|line| line.strip_prefix("system_contains = "))
    };
    for agent in prompts {
        let matching = rules().filter(|rule| agent.prompt.contains(rule.trim_matches('"'))).count();
        assert_eq!(matching, 1, "{}", agent.name);
    }
}
