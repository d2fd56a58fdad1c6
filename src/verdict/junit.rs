//! The verdict as a `JUnit` file, for CI servers: a case a call, a case a fault that was never delivered.

use super::{
    CallVerdict, ClientVerdict, FindingKind, Survival, SurvivalResult, Weight,
    suite::{Came, Suite, TestCase},
};

/// The file. It has a failure or an error exactly where the verdict is not passed: a defect is a failure, a fault that
/// was never delivered an error, unless it is drawn by chance and another was delivered (then its case is skipped).
pub fn junit(run: &str, verdict: &ClientVerdict) -> String {
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
    let cases = verdict.calls.iter().map(|call| case(verdict, call)).chain(never).collect();
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
