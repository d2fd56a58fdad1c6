//! What a test says: a line a run as it ends, the report by plan, call and agent, the `JUnit` file.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use super::{ConcludedTest, tested::TestedRun};
use crate::{
    cli::{Exit, Finished, client_verdict, escape},
    verdict::{
        self, JudgedRun, SurvivalResult,
        suite::{CaseResult, Suite, TestCase},
    },
    viewer::word,
};

/// The line of a run that has ended: `number` of `all`, and how long the rest will take about.
pub(super) fn line(run: &TestedRun, number: u32, all: usize, left: Duration) -> String {
    let width = all.to_string().len();
    let met = run.survival.client.calls.len();
    let rest = if (number as usize) < all { format!("  about {} left", spoken(left)) } else { String::new() };
    let (title, result) = (escape(&run.title()), run.survival.result.name());
    let (steps, took) = (run.steps, spoken(Duration::from_secs_f64(run.seconds)));
    let outcome = word(&run.outcome.verdict);
    format!(
        "{number:>width$}/{all}  {title:<24}  {result:<12}  outcome {outcome}  {steps} steps, {met} met trouble  {took}{rest}"
    )
}

/// A duration as people say it.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

/// The report: a block a plan. Of runs that passed it says how often which agent met trouble and what came of it, of the
/// others why, call by call; of each run call by call where `all` says so.
pub(super) fn write(test: &ConcludedTest, all: bool, out: &mut dyn Write) -> io::Result<()> {
    if let Some(baseline) = &test.baseline {
        writeln!(out, "{}", baseline.line())?;
    }
    for plan in &test.plans {
        let runs: Vec<&TestedRun> = test.runs.iter().filter(|run| run.plan == plan.name).collect();
        let passed = runs.iter().filter(|run| run.survival.is_passed()).count();
        let about =
            if plan.description.is_empty() { String::new() } else { format!("  {}", escape(&plan.description)) };
        writeln!(out, "{}  {passed} of {} passed{about}", escape(&plan.name), runs.len())?;
        agents(&runs, out)?;
        for run in runs.iter().filter(|run| all || !run.survival.is_passed()) {
            of_run(run, out)?;
        }
    }
    writeln!(out, "recorded in {}", test.dir.display())
}

/// A line an agent: its calls that met trouble over all runs of a plan, and which rules held.
fn agents(runs: &[&TestedRun], out: &mut dyn Write) -> io::Result<()> {
    let mut agents: BTreeMap<&str, (u32, u32, BTreeMap<&str, u32>)> = BTreeMap::new();
    for agent in runs.iter().flat_map(|run| &run.survival.client.agents) {
        let (calls, tries, rules) = agents.entry(agent.agent.as_str()).or_default();
        *calls += agent.calls;
        *tries += agent.tries;
        for (rule, count) in &agent.rules {
            *rules.entry(rule).or_default() += count;
        }
    }
    for (agent, (calls, tries, rules)) in agents {
        let rules: Vec<String> = rules.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        let rules = if rules.is_empty() { "nothing to remark".to_owned() } else { rules.join(", ") };
        writeln!(out, "  {}  {calls} calls met trouble, {tries} tries: {rules}", escape(agent))?;
    }
    Ok(())
}

fn of_run(run: &TestedRun, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  {}: {}   aegis show {} --verdict",
        escape(&run.title()),
        run.survival.result.name(),
        run.dir.display()
    )?;
    let found = run.survival.findings.iter().map(|finding| {
        let at = finding.at.as_ref();
        let at = at.map(|at| format!("{} at step {}: ", at.agent, at.step)).unwrap_or_default();
        escape(&format!("{at}{}", finding.says)).replace('\n', " ")
    });
    // Injections of one kind that stayed away for one reason are told once.
    let mut found: Vec<String> = found.collect();
    found.dedup();
    found.iter().try_for_each(|line| writeln!(out, "    ! {line}"))?;
    // Where nothing of the plan applies, the findings say it.
    let is_skipped = run.survival.result == SurvivalResult::Skipped;
    let left_out = run.survival.injections.iter().filter(|_| !is_skipped);
    for (injection, why) in left_out.filter_map(|one| Some((one, one.does_not_apply.as_ref()?))) {
        writeln!(out, "    - {} does not apply: {}", escape(&injection.operator), escape(why))?;
    }
    for call in &run.survival.client.calls {
        client_verdict::write_call(call, out)?;
    }
    for line in &run.stderr_end {
        writeln!(out, "    | {}", escape(line))?;
    }
    Ok(())
}

/// The file. It is red exactly where the test's exit code is not 0: where no case says why, the last one does.
pub(super) fn junit(test: &ConcludedTest, finished: &Finished) -> String {
    let of_plan = |plan: &super::ChosenPlan| {
        let runs: Vec<(String, &TestedRun)> =
            test.runs.iter().filter(|run| run.plan == plan.name).map(|run| (run.number_in_words(), run)).collect();
        let judged: Vec<JudgedRun<'_>> = runs
            .iter()
            .map(|(title, run)| JudgedRun { title, survival: &run.survival, seconds: run.seconds })
            .collect();
        verdict::cases(&plan.name, &judged, test.strictness)
    };
    let mut cases: Vec<TestCase> = test.plans.iter().flat_map(of_plan).collect();
    let is_red = |case: &TestCase| matches!(case.came, CaseResult::Failed(_) | CaseResult::Errored(_));
    let named = |name: &str, came| TestCase {
        class: "test".to_owned(),
        name: name.to_owned(),
        came,
        details: String::new(),
        seconds: None,
    };
    let left = test.planned - test.runs.len();
    if left > 0 {
        cases.push(named("runs not made", CaseResult::Skipped(format!("{left} of {} runs", test.planned))));
    }
    if finished.exit != Exit::Ok && !cases.iter().any(is_red) {
        cases.push(named("end", CaseResult::Errored(format!("{}: {}", finished.exit.word(), finished.summary))));
    }
    Suite { name: test.name.to_string(), seconds: Some(test.seconds), began: Some(test.began.clone()), cases }
        .to_string()
}

/// Why a run did not pass, in one line.
pub(super) fn why(run: &TestedRun) -> String {
    let said = run.survival.findings.iter().map(|finding| match &finding.at {
        Some(at) => format!("{}, call {} (step {}): {}", at.agent, at.call, at.step, finding.says),
        None => finding.says.clone(),
    });
    said.collect::<Vec<_>>().join("; ")
}

/// Whether a run says that the program is wrong, not only that nothing is known.
pub(super) fn is_wrong(run: &TestedRun) -> bool {
    run.survival.result == SurvivalResult::Failed
}
