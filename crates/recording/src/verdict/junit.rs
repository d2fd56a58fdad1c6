//! The verdict as a `JUnit` file, for CI servers: the same cases each time, so that they can tell new failures from old ones.

use super::{
    CallVerdict, ClientVerdict, FindingKind, RULES, Survival, SurvivalFinding, SurvivalResult, Weight,
    suite::{CaseResult, Suite, TestCase},
};

/// What makes a test red beside what is wrong with the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strictness {
    /// A plan that does not apply to the program counts as not passed.
    pub strict: bool,
    /// A run of which nothing is known counts as passed.
    pub allow_inconclusive: bool,
}

/// One run of a plan.
#[derive(Debug, Clone, Copy)]
pub struct JudgedRun<'a> {
    /// What it is called in messages; empty where it is the only one.
    pub title: &'a str,
    /// What came of it.
    pub survival: &'a Survival,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Strictness {
    /// Whether a run with this result is no reason to be red.
    pub fn accepts(self, result: SurvivalResult) -> bool {
        match result {
            SurvivalResult::Passed => true,
            SurvivalResult::Skipped => !self.strict,
            SurvivalResult::Inconclusive => self.allow_inconclusive,
            SurvivalResult::Failed | SurvivalResult::Void => false,
        }
    }

    fn case_result(self, result: SurvivalResult, message: String) -> CaseResult {
        match result {
            SurvivalResult::Passed => CaseResult::Passed,
            SurvivalResult::Failed => CaseResult::Failed(message),
            _ if self.accepts(result) => CaseResult::Skipped(message),
            SurvivalResult::Skipped | SurvivalResult::Inconclusive | SurvivalResult::Void => {
                CaseResult::Errored(message)
            }
        }
    }
}

/// The file of one recorded run. `failed` is why the verb's exit code is not 0, if it is not: where no other case says it, the
/// case `program` does. So the file is red exactly where the exit code is, and never without a case.
pub fn junit(run: &str, verdict: &ClientVerdict, failed: Option<&str>) -> String {
    let any = verdict.is_delivered();
    let never = verdict.faults.iter().filter(|fault| fault.delivered == 0 && !(any && fault.by_chance()));
    let never: Vec<String> = never
        .map(|fault| format!("{} at {} (injection {})", fault.operator(), fault.agents(), fault.injection()))
        .collect();
    let came = if never.is_empty() {
        CaseResult::Passed
    } else {
        CaseResult::Errored(format!("inconclusive, never delivered: {}", never.join("; ")))
    };
    let mut told = vec![case("client", "plan fired", came)];
    told.extend(RULES.iter().filter(|rule| rule.weight == Weight::Defect).map(|rule| {
        let seen: Vec<String> = verdict.calls.iter().filter_map(|call| defect(call, rule.name)).collect();
        let came = if seen.is_empty() { CaseResult::Passed } else { CaseResult::Failed(seen.join("; ")) };
        TestCase { details: ways(verdict, rule.name), ..case("client", rule.name, came) }
    }));
    if failed.is_none() {
        // The upstream's own trouble, in a run without a plan: it is told, and nobody is judged by it.
        for case in &mut told {
            if let CaseResult::Failed(why) | CaseResult::Errored(why) = &mut case.came {
                case.came = CaseResult::Skipped(std::mem::take(why));
            }
        }
    }
    let is_red = told.iter().any(|case| matches!(case.came, CaseResult::Failed(_) | CaseResult::Errored(_)));
    let came = failed.filter(|_| !is_red).map_or(CaseResult::Passed, |why| CaseResult::Failed(why.to_owned()));
    let cases = std::iter::once(case("client", "program", came)).chain(told).collect();
    Suite { name: run.to_owned(), seconds: None, began: None, cases }.to_string()
}

/// The cases of a plan: what came of the program, whether the plan fired, and each rule. One cause is one failure: where a rule
/// says how the program ended, the program's own case does not say it again.
pub fn cases(class: &str, runs: &[JudgedRun<'_>], strictness: Strictness) -> Vec<TestCase> {
    let seconds = runs.iter().map(|run| run.seconds).sum();
    let program = of_findings(runs, strictness, |survival, finding| {
        let is_told = finding.kind == FindingKind::ProgramFailed && ends_by_rule(survival);
        !is_told
            && !matches!(finding.kind, FindingKind::Defect | FindingKind::NeverDelivered | FindingKind::DoesNotApply)
    });
    let fired = of_findings(runs, strictness, |_, finding| {
        matches!(finding.kind, FindingKind::NeverDelivered | FindingKind::DoesNotApply)
    });
    let rules = RULES.iter().filter(|rule| rule.weight == Weight::Defect).map(|rule| {
        let seen: Vec<String> =
            runs.iter().filter(|run| is_judged(run)).flat_map(|run| of_rule(run, rule.name)).collect();
        let said: Vec<String> = runs.iter().map(|run| ways(&run.survival.client, rule.name)).collect();
        let came = if seen.is_empty() { CaseResult::Passed } else { CaseResult::Failed(seen.join("; ")) };
        TestCase { details: said.join("\n").trim().to_owned(), ..case(class, rule.name, came) }
    });
    let program = TestCase { seconds: Some(seconds), ..case(class, "program", program) };
    [program, case(class, "plan fired", fired)].into_iter().chain(rules).collect()
}

fn case(class: &str, name: &str, came: CaseResult) -> TestCase {
    TestCase { class: class.to_owned(), name: name.to_owned(), came, details: String::new(), seconds: None }
}

/// Where nothing was answered, no rule has judged the calls.
fn is_judged(run: &JudgedRun<'_>) -> bool {
    !run.survival.has(FindingKind::Unanswered)
}

/// Whether a defect says how the program ended.
fn ends_by_rule(survival: &Survival) -> bool {
    let ends = |rule: &str| survival.client.calls.iter().any(|call| defect(call, rule).is_some());
    ends("crashed") || ends("stuck")
}

fn of_findings(
    runs: &[JudgedRun<'_>],
    strictness: Strictness,
    is_meant: impl Fn(&Survival, &SurvivalFinding) -> bool,
) -> CaseResult {
    let meant = runs.iter().flat_map(|run| {
        let findings = run.survival.findings.iter().filter(|finding| is_meant(run.survival, finding));
        findings.map(|finding| (finding.kind.result(), titled(run.title, &finding.says)))
    });
    let (results, says): (Vec<SurvivalResult>, Vec<String>) = meant.unzip();
    strictness.case_result(results.into_iter().max().unwrap_or(SurvivalResult::Passed), says.join("; "))
}

fn of_rule<'a>(run: &'a JudgedRun<'_>, rule: &'a str) -> impl Iterator<Item = String> + 'a {
    run.survival.client.calls.iter().filter_map(move |call| Some(titled(run.title, &defect(call, rule)?)))
}

fn titled(title: &str, says: &str) -> String {
    if title.is_empty() { says.to_owned() } else { format!("{title}: {says}") }
}

/// What a rule holds against a call, with its place.
fn defect(call: &CallVerdict, rule: &str) -> Option<String> {
    let remark = call.remarks.iter().find(|remark| remark.rule == rule && remark.weight == Weight::Defect)?;
    Some(format!("{}, call {} (step {}): {}", call.agent, call.call, call.step, remark.seen))
}

/// What the calls met that a rule is about, a line each.
fn ways(verdict: &ClientVerdict, rule: &str) -> String {
    let about = |call: &&CallVerdict| call.remarks.iter().any(|remark| remark.rule == rule);
    let lines = verdict.calls.iter().filter(about).map(|call| format!("step {}: {}", call.step, call.way()));
    lines.collect::<Vec<_>>().join("\n")
}
