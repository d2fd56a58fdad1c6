//! Conversations in the shapes that agent frameworks give them.

use super::*;

const SOLVE: &str =
    "system: You solve. Follow the plan, compute with the calculator, and end with a line `ANSWER: <number>`.";

fn task() -> String {
    format!("user: {PENCILS}")
}

#[test]
fn calculators_are_called_once_and_their_result_counts() {
    let tools = [calculator()];
    let call = r#"calculator{"expression":"12 * 7 - 9"}"#;
    let check =
        |lines: &[&str], expected: &str| assert_eq!(reply_text(&with_tools(lines, &tools)), expected, "{lines:?}");
    let asked = format!("call calculator {}", r#"{"expression": "12 * 7 - 9"}"#);
    check(&[SOLVE, &task()], call);
    check(&[SOLVE, &task(), &asked, "tool: 75"], "The calculator gives 75.\nANSWER: 75");
    check(&[SOLVE, &task(), &asked, "tool: 91"], "The calculator gives 91.\nANSWER: 91");
    check(
        &[SOLVE, &task(), "user/planner: 1. Multiply 12 by 8.\n2. Subtract 9 from that."],
        r#"calculator{"expression":"12 * 8 - 9"}"#,
    );
    check(&[SOLVE, &task(), "call transfer_to_solver {}", "tool: Successfully transferred to solver"], call);
    check(&[SOLVE, &task(), "call transfer_to_solver {}", r#"tool: {"assistant": "Solver"}"#], call);
    check(&[SOLVE, &task(), &asked, "tool: 91", "assistant: ANSWER: 91", "user/critic: This is wrong."], call);
    let failed = reply_text(&with_tools(&[SOLVE, &task(), &asked, "tool: Error: no such tool"], &tools));
    assert!(!failed.contains("calculator{"), "{failed}");
    let gone = says(&[SOLVE, &task(), &asked, "tool: 91"]);
    assert_eq!(gone, "The calculator gives 91.\nANSWER: 91");
}

#[test]
fn tool_choice_is_obeyed() {
    let offered = || with_tools(&["system: You plan.", &task()], &[transfer("x", ""), calculator()]);
    let named = reply_text(&choosing(offered(), ToolChoice::Named("calculator".to_owned())));
    assert_eq!(named, r#"calculator{"expression":"12 * 7 - 9"}"#);
    assert!(reply_text(&choosing(offered(), ToolChoice::Required)).contains('{'));
    assert!(reply_text(&choosing(offered(), ToolChoice::None)).starts_with("1. Multiply"));
}

#[test]
fn tools_for_single_operations_are_called_step_by_step() {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let tools = [
        tool("multiply", "Multiply two numbers.", parameters.clone()),
        tool("subtract", "Subtract b from a.", parameters),
    ];
    let check =
        |lines: &[&str], expected: &str| assert_eq!(reply_text(&with_tools(lines, &tools)), expected, "{lines:?}");
    let (first, second) = (r#"call multiply {"a":12,"b":7}"#, r#"call subtract {"a":90,"b":9}"#);
    check(&[SOLVE, &task()], r#"multiply{"a":12,"b":7}"#);
    check(&[SOLVE, &task(), first, "tool: 90"], r#"subtract{"a":90,"b":9}"#);
    check(&[SOLVE, &task(), first, "tool: 90", second, "tool: 81"], "The subtract gives 81.\nANSWER: 81");
}

#[test]
fn selectors_name_who_has_not_spoken() {
    let check = |talk: &str, names: &str, expected: &str| {
        let prompt = format!(
            "system: You are in a role play game. The following roles are available:\nplanner: Makes the plan.\nsolver: \
             Solves.\ncritic: Checks.\nRead the following conversation. Then select the next role from [{names}] to play. Only \
             return the role.\n\nuser: {PENCILS}\n\n{talk}\n\nRead the above conversation. Then select the next role from \
             [{names}] to play. Only return the role.\n"
        );
        assert_eq!(says(&[&prompt]), expected, "{talk}");
    };
    check("", "'planner', 'solver', 'critic'", "planner");
    check("", "'solver', 'critic', 'planner'", "planner");
    check("planner: 1. Multiply.", "'solver', 'critic'", "solver");
    check("planner: 1. Multiply.\n\nsolver: ANSWER: 75", "'planner', 'critic'", "critic");
    check(
        "planner: 1.\n\nsolver: ANSWER: 70\n\ncritic: REVISE: the answer should be 75.",
        "'planner', 'solver'",
        "solver",
    );
}

#[test]
fn supervisors_hand_over_in_order_and_end_with_the_answer_that_they_got() {
    let prompt = "system: You supervise a planner and a solver. First the planner, then the solver. Repeat its line `ANSWER: <number>`.";
    let tools =
        [transfer("solver", "Ask agent 'solver' for help"), transfer("planner", "Ask agent 'planner' for help")];
    let check =
        |lines: &[&str], expected: &str| assert_eq!(reply_text(&with_tools(lines, &tools)), expected, "{lines:?}");
    let to_planner = [
        "call transfer_to_planner {}",
        "tool: Successfully transferred to planner",
        "assistant/planner: 1. Multiply 12 by 7.",
    ];
    let to_solver =
        ["call transfer_to_solver {}", "tool: Successfully transferred to solver", "assistant/solver: ANSWER: 91"];
    let task = task();
    let mut lines = vec![prompt, &task];
    check(&lines, "transfer_to_planner{}");
    lines.extend(to_planner);
    check(&lines, "transfer_to_solver{}");
    lines.extend(to_solver);
    check(&lines, "ANSWER: 91");
}

#[test]
fn triage_picks_who_fits() {
    let prompt = "system: You are a triage agent. Hand the request off to the agent that fits it.";
    let tools = [transfer("poet", "Writes short poems."), transfer("solver", "Solves arithmetic word problems.")];
    assert_eq!(reply_text(&with_tools(&[prompt, &task()], &tools)), "transfer_to_solver{}");
}

#[test]
fn workers_of_a_swarm_say_their_part_and_hand_over() {
    let tools = [transfer("solver", ""), transfer("critic", "")];
    let planned = reply_text(&with_tools(&["system: You plan, then hand over to the solver.", &task()], &tools));
    assert!(planned.starts_with("1. Multiply") && planned.ends_with("transfer_to_solver{}"), "{planned}");
    let critic = "system: You are the critic. Say TERMINATE if the answer is right, else transfer to the solver.";
    let tools = [transfer("solver", "")];
    let right = reply_text(&with_tools(&[critic, &task(), "user/solver: ANSWER: 75"], &tools));
    assert!(right.ends_with("TERMINATE"), "{right}");
}

#[test]
fn managers_delegate_to_each_coworker_and_then_answer() {
    let parameters = json!({
        "type": "object",
        "properties": {"task": {"type": "string"}, "context": {"type": "string"}, "coworker": {"type": "string"}},
        "required": ["task", "context", "coworker"],
    });
    let description = "Delegate a specific task to one of the following coworkers: Planner, Solver\nThe input…";
    let tools = [tool("delegate_work_to_coworker", description, parameters)];
    let manager = "system: You are Crew Manager. You are a seasoned manager.";
    let task = task();
    let first = reply_text(&with_tools(&[manager, &task], &tools));
    assert!(first.contains(r#""coworker":"Planner""#) && first.contains("12 boxes"), "{first}");
    let delegated = r#"call delegate_work_to_coworker {"coworker":"Planner"}"#;
    let second = reply_text(&with_tools(&[manager, &task, delegated, "tool: 1. Multiply 12 by 8."], &tools));
    assert!(second.contains(r#""coworker":"Solver""#) && second.contains("Multiply 12 by 8"), "{second}");
    let solved = r#"call delegate_work_to_coworker {"coworker":"Solver"}"#;
    let last =
        reply_text(&with_tools(&[manager, &task, delegated, "tool: 1. Multiply.", solved, "tool: ANSWER: 91"], &tools));
    assert_eq!(last, "ANSWER: 91");
}

#[test]
fn coworkers_are_found_where_a_framework_lists_them() {
    let parameters = |name: &str| {
        json!({"type": "object", "properties": {name: {"type": "string"}, "task": {"type": "string"}},
            "required": [name, "task"]})
    };
    let called = |prompt: &str, tool| reply_text(&with_tools(&[prompt, &task()], &[tool]));
    let agents =
        "Useful for handing off.\n\nCurrently available agents:\n{'checker': 'Checks, twice.', 'other': 'x'}\n";
    let handed = called("system: You report.", tool("handoff", agents, parameters("to_agent")));
    assert!(handed.starts_with("handoff{") && handed.contains(r#""to_agent":"checker""#), "{handed}");
    let leader = "system: You coordinate.\n<member id=\"planner\" name=\"P\">\n<member id=\"solver\" name=\"S\">";
    let given = called(leader, tool("delegate_task_to_member", "Delegate a task.", parameters("member_id")));
    assert!(given.contains(r#""member_id":"planner""#) && given.contains("12 boxes"), "{given}");
}

#[test]
fn agents_as_tools_are_called_in_turn() {
    let parameters = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
    let tools = [tool("solve", "Solve it", parameters.clone()), tool("check", "Check it", parameters)];
    let prompt = "system: You orchestrate: use solve, then check.";
    let task = task();
    assert!(reply_text(&with_tools(&[prompt, &task], &tools)).starts_with("solve{"));
    let solved = ["call solve {}", "tool: ANSWER: 91"];
    let next = reply_text(&with_tools(&[prompt, &task, solved[0], solved[1]], &tools));
    assert!(next.starts_with("check{") && next.contains("ANSWER: 91"), "{next}");
    let last = reply_text(&with_tools(
        &[prompt, &task, solved[0], solved[1], "call check {}", "tool: APPROVE\nANSWER: 91"],
        &tools,
    ));
    assert_eq!(last, "ANSWER: 91");
}

#[test]
fn the_react_protocol_acts_once_and_then_concludes() {
    let prompt = "system: You solve. You can use: calculator(expression).\nUse this format:\nThought: …\nAction: one of [calculator]\nAction Input: …\nObservation: …\nFinal Answer: …";
    let acted = says(&[prompt, &task()]);
    assert!(acted.contains("Action: calculator\nAction Input: {\"expression\":\"12 * 7 - 9\"}"), "{acted}");
    let ended = says(&[prompt, &task(), &format!("assistant: {acted}"), "user: Observation: 91"]);
    assert!(ended.ends_with("Final Answer: 91"), "{ended}");
}

#[test]
fn other_tools_are_called_once_when_the_prompt_speaks_of_them() {
    let parameters = json!({"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]});
    let tools = [tool("lookup_fact", "Look a fact up.", parameters)];
    let prompt = "system: You are a fact finder. Use lookup_fact.";
    let called = reply_text(&with_tools(&[prompt, "user: Tell me of ferries."], &tools));
    assert_eq!(called, r#"lookup_fact{"topic":"Tell me of ferries."}"#);
    let after = reply_text(&with_tools(
        &[prompt, "user: Tell me of ferries.", "call lookup_fact {}", "tool: They float."],
        &tools,
    ));
    assert!(!after.contains("lookup_fact{"), "{after}");
}

#[test]
fn a_planner_whose_plan_was_carried_out_closes() {
    let planner = "system: You are a planning agent. When done say TERMINATE.";
    let lines = [planner, &task(), "assistant: 1. Multiply 12 by 7.", "user/solver: ANSWER: 75"];
    assert!(says(&lines).ends_with("ANSWER: 75\nTERMINATE"), "{}", says(&lines));
    let objected = [&lines[..], &["user/critic: This is wrong."]].concat();
    assert!(says(&objected).starts_with("1. Multiply"), "{}", says(&objected));
}

#[test]
fn surroundings_that_a_program_states_are_no_task() {
    let skills = "developer: Skills lie in `/srv/check/plan/skills`; read them at https://docs.example/review/judge.";
    let place = "user: <environment_context>\n  <cwd>/srv/check/solve/tmp9</cwd>\n  <current_date>2026-11-29</current_date>\n</environment_context>";
    let answer = says(&[skills, place, "user: What is 12 + 30?"]);
    assert!(answer.contains("ANSWER: 42"), "{answer}");
}
