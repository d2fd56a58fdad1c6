//! The verdict as a `JUnit` file, for CI servers: a case a call, a case a fault that was never delivered.

use super::{
    CallVerdict, ClientVerdict, FindingKind, Survival, SurvivalResult, Weight,
    suite::{Came, Suite, TestCase},
};

/// The file. A defect is a failure, a fault that was never delivered an error, unless it is drawn by chance and another was
/// delivered (then its case is skipped). `failed` is why the verb's exit code is not 0, if it is not: where no other case says
/// it, the run's own does. So the file is red exactly where the exit code is, and never without a case.
pub fn junit(run: &str, verdict: &ClientVerdict, failed: Option<&str>) -> String {
    let any = verdict.faults.iter().any(|fault| fault.delivered > 0);
    let never = verdict.faults.iter().filter(|fault| fault.delivered == 0).map(|fault| {
        let why = "inconclusive: never delivered".to_owned();
        TestCase {
            class: fault.agents().to_owned(),
            name: format!("{} (injection {})", fault.operator(), fault.injection()),
            came: if fault.by_chance() && any { Came::Skipped(why) } else { Came::Errored(why) },
            said: String::new(),
        }
    });
    let mut told: Vec<TestCase> = verdict.calls.iter().map(|call| case(verdict, call)).chain(never).collect();
    if failed.is_none() {
        // The upstream's own trouble, in a run without a plan: it is told, and nobody is judged by it.
        for case in &mut told {
            if let Came::Failed(why) | Came::Errored(why) = &mut case.came {
                case.came = Came::Skipped(std::mem::take(why));
            }
        }
    }
    let is_red = told.iter().any(|case| matches!(case.came, Came::Failed(_) | Came::Errored(_)));
    let came = match failed.filter(|_| !is_red) {
        Some(why) => Came::Failed(why.to_owned()),
        None => Came::Passed,
    };
    let whole = TestCase { class: "run".to_owned(), name: run.to_owned(), came, said: String::new() };
    let cases = std::iter::once(whole).chain(told).collect();
    Suite { name: run.to_owned(), seconds: None, cases }.to_string()
}

/// The cases of one run of a test, of this class: the program, each call that met trouble, each injection that never came
/// to work. One of them is red exactly where the program did not survive.
pub fn cases(class: &str, survival: &Survival) -> Vec<TestCase> {
    let of_program =
        |finding: &&super::SurvivalFinding| !matches!(finding.kind, FindingKind::Defect | FindingKind::NeverDelivered);
    let said: Vec<&super::SurvivalFinding> = survival.findings.iter().filter(of_program).collect();
    let message = said.iter().map(|finding| finding.says.as_str()).collect::<Vec<_>>().join("; ");
    let worst = said.iter().map(|finding| finding.kind.result()).max();
    let came = match worst {
        None | Some(SurvivalResult::Passed) => Came::Passed,
        Some(SurvivalResult::Failed) => Came::Failed(message),
        Some(SurvivalResult::Inconclusive | SurvivalResult::Void) => Came::Errored(message),
    };
    let program = TestCase { class: class.to_owned(), name: "program".to_owned(), came, said: String::new() };
    // Where nothing was answered, no rule has judged the calls.
    let judged = survival.client.calls.iter().filter(|_| !survival.has(FindingKind::Unanswered));
    let calls = judged.map(|call| {
        let case = case(&survival.client, call);
        TestCase { class: class.to_owned(), name: format!("{}: {}", case.class, case.name), ..case }
    });
    let never = survival.findings.iter().filter(|finding| finding.kind == FindingKind::NeverDelivered);
    let never = never.enumerate().map(|(number, finding)| TestCase {
        class: class.to_owned(),
        name: format!("never fired {}", number + 1),
        came: Came::Errored(finding.says.clone()),
        said: String::new(),
    });
    std::iter::once(program).chain(calls).chain(never).collect()
}

fn case(verdict: &ClientVerdict, call: &CallVerdict) -> TestCase {
    let met =
        verdict.faults.iter().filter(|fault| call.tries.iter().any(|tried| tried.faults.contains(&fault.injection())));
    let operators: Vec<&str> = met.map(super::FaultVerdict::operator).collect();
    let what = if operators.is_empty() { "upstream".to_owned() } else { operators.join(", ") };
    let said = |remark: &super::Remark| format!("{}: {}", remark.rule, remark.seen);
    let defects = call.remarks.iter().filter(|remark| remark.weight == Weight::Defect);
    let defects: Vec<String> = defects.map(said).collect();
    let all: Vec<String> = call.remarks.iter().map(said).collect();
    TestCase {
        class: call.agent.as_str().to_owned(),
        name: format!("{what} at call {} (step {})", call.call, call.step),
        came: if defects.is_empty() { Came::Passed } else { Came::Failed(defects.join("; ")) },
        said: format!("{}\n{}", call.way(), all.join("\n")),
    }
}
