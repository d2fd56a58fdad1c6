//! Whether a program survived its plan, told from the recording: the client verdict, what the program came to, and whether
//! the plan was at work at all.

use serde::Serialize;

use super::{
    ClientVerdict, Judgement, Weight,
    delivery::InjectionDelivery,
    read,
    unfired::{Unfired, unfired},
};
use crate::{
    plan::{self, Operator},
    recording::Recording,
    trajectory::{
        AgentName, Call, CallEnding, CloseCause, Reason, RefusalKind, Step, StepIndex, Unserved, Verdict, unserved,
    },
};

/// Whether a program survived, and why not.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Survival {
    /// What it comes to.
    pub result: SurvivalResult,
    /// Why it is not passed; empty exactly where it is.
    pub findings: Vec<SurvivalFinding>,
    /// The plan's injections, in their order.
    pub injections: Vec<InjectionDelivery>,
    /// How each call met its trouble; written beside, where both are.
    #[serde(skip)]
    pub client: ClientVerdict,
}

/// What a program's run under a plan comes to, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SurvivalResult {
    /// The plan was at work, no rule found a defect, and the program did not fail.
    Passed,
    /// The program has nothing that the plan is for.
    Skipped,
    /// The plan, or a part of it, never came to work: nothing is known.
    Inconclusive,
    /// A defect was found, or the program failed.
    Failed,
    /// Nothing was tested: no call was made, or the upstream answered none, or the check cannot be run.
    Void,
}

/// Why a run is not passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SurvivalFinding {
    /// Its kind.
    pub kind: FindingKind,
    /// The agent and the step of the call that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<FindingPlace>,
    /// It in words.
    pub says: String,
}

/// The call that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FindingPlace {
    /// Who made it.
    pub agent: AgentName,
    /// The step of its first try.
    pub step: StepIndex,
    /// The agent's own number of that step, 0-based.
    pub call: Call,
}

/// Kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A rule found a defect in how a call met its trouble.
    Defect,
    /// The check, or without one the program's own end, says that it failed.
    ProgramFailed,
    /// The check could not tell.
    CheckUndecided,
    /// The check cannot be run.
    CheckBroken,
    /// An injection never came to work.
    NeverDelivered,
    /// The program has nothing that any injection of the plan is for: no tools, no streams, too few calls.
    DoesNotApply,
    /// The program made no call.
    NoCall,
    /// The upstream answered no call, and no plan made it so.
    Unanswered,
}

/// Whether the program of a recorded run survived it. `allowed`: names of rules that find no defect.
pub fn survival(recording: &Recording, allowed: &[String]) -> Survival {
    let client = read(recording).allowing(allowed);
    let mut injections = injections(recording, &client);
    let mut findings = Vec::new();
    let steps = &recording.trajectory.steps;
    let void = unanswered(steps, &recording.manifest.upstream);
    let whole = |kind, says: String| SurvivalFinding { kind, at: None, says };
    match void {
        Some(void) => findings.push(void),
        None => findings.extend(defects(&client)),
    }
    let outcome = &recording.manifest.outcome;
    match (outcome.verdict, outcome.reason) {
        (Verdict::Failure, _) => findings.push(whole(FindingKind::ProgramFailed, outcome.evidence.clone())),
        (Verdict::Unknown, Some(Reason::Check)) => {
            let broken = ["126", "127"].iter().any(|code| names_exit_code(&outcome.evidence, code));
            let kind = if broken { FindingKind::CheckBroken } else { FindingKind::CheckUndecided };
            findings.push(whole(kind, outcome.evidence.clone()));
        }
        _ => {}
    }
    if !steps.is_empty() {
        findings.extend(never(&mut injections, recording));
    }
    let result = findings.iter().map(|finding| finding.kind.result()).max().unwrap_or(SurvivalResult::Passed);
    Survival { result, findings, injections, client }
}

/// Whether a check said that it ended with this code.
fn names_exit_code(evidence: &str, code: &str) -> bool {
    evidence.strip_prefix("check exited with ").and_then(|rest| rest.strip_prefix(code)).is_some_and(|rest| {
        // Another figure behind it would make it another code.
        !rest.starts_with(|next: char| next.is_ascii_digit())
    })
}

fn defects(client: &ClientVerdict) -> Vec<SurvivalFinding> {
    let of_call = client.calls.iter().flat_map(|call| {
        let defects = call.remarks.iter().filter(|remark| remark.weight == Weight::Defect);
        defects.map(|remark| SurvivalFinding {
            kind: FindingKind::Defect,
            at: Some(FindingPlace { agent: call.agent.clone(), step: call.step, call: call.call }),
            says: format!("{}: {}", remark.rule, remark.seen),
        })
    });
    of_call.collect()
}

/// Why nothing was tested, where the program asked in vain, or not at all.
fn unanswered(steps: &[Step], upstream: &str) -> Option<SurvivalFinding> {
    if steps.is_empty() {
        let says = "the command made no model call through the proxy".to_owned();
        return Some(SurvivalFinding { kind: FindingKind::NoCall, at: None, says });
    }
    // A planned fault that ends a call says so as its cause: what was not reached is the upstream itself.
    let last = || steps.iter().filter_map(Step::last_attempt);
    let says = if last().all(|attempt| attempt.cause == Some(CloseCause::UpstreamUnreachable)) {
        format!("the upstream {upstream} could not be reached by any call")
    } else if steps.iter().any(|step| !step.injected.is_empty()) {
        return None;
    } else {
        let why = unserved(steps)?;
        let auth = matches!(why, Unserved::Refused { ending: CallEnding::Refused(RefusalKind::Auth), .. });
        let hint = if auth { ": is its key set?" } else { "" };
        format!("the upstream {upstream} answered every call with {why}{hint}")
    };
    Some(SurvivalFinding { kind: FindingKind::Unanswered, at: None, says })
}

fn injections(recording: &Recording, client: &ClientVerdict) -> Vec<InjectionDelivery> {
    let text = recording.manifest.plan.as_deref().filter(|text| !text.is_empty());
    let Some(plan) = text.and_then(|text| plan::parse(text, "run.json").ok()) else { return Vec::new() };
    let of = |(index, injection): (u32, &plan::Injection)| {
        let delivered = match &injection.operator {
            Operator::Fault(_) => {
                let fault = client.faults.iter().find(|fault| fault.injection() == index);
                fault.map_or(0, |fault| fault.delivered)
            }
            Operator::Manipulator { .. } => {
                let errors = recording.trajectory.steps.iter().flat_map(|step| &step.injected);
                let counted =
                    errors.filter(|error| error.injection == index && error.delivered && error.before != error.after);
                u32::try_from(counted.count()).unwrap_or(u32::MAX)
            }
        };
        let agents: Vec<String> = injection.agents.0.iter().map(ToString::to_string).collect();
        InjectionDelivery {
            injection: index,
            operator: injection.name.clone(),
            agents: agents.join(", "),
            edits: matches!(injection.operator, Operator::Manipulator { .. }),
            by_chance: injection.when.probability.is_some(),
            delivered,
            does_not_apply: None,
        }
    };
    (0..).zip(&plan.injections).map(of).collect()
}

/// The injections that never came to work; one by chance may stay away where another came, and one for which the program
/// has nothing is told beside, unless it is all that the plan is for.
fn never(injections: &mut [InjectionDelivery], recording: &Recording) -> Vec<SurvivalFinding> {
    let steps = &recording.trajectory.steps;
    let any = injections.iter().any(|injection| injection.delivered > 0);
    let mut agents: Vec<&str> = steps.iter().map(|step| step.attribution.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    let unsure = steps.iter().any(|step| !step.attribution.is_certain());
    let finding = |injection: &mut InjectionDelivery| {
        let Unfired { why, does_not_apply } = unfired(injection, recording);
        if does_not_apply {
            let why = why.clone().unwrap_or_else(|| "the program has nothing that it is for".to_owned());
            injection.does_not_apply = Some(why);
        }
        let says = format!(
            "the plan never fired: {} at {} came to work on none of {} steps of {}{}{}{}",
            injection.operator,
            injection.agents,
            steps.len(),
            agents.join(", "),
            if injection.by_chance { " (drawn by chance)" } else { "" },
            why.map(|why| format!(": {why}")).unwrap_or_default(),
            if injection.edits && unsure {
                "; who is known by looks alone is never edited: name the agents in aegis.toml (aegis agents RUN --suggest)"
            } else {
                ""
            }
        );
        let kind = if does_not_apply { FindingKind::DoesNotApply } else { FindingKind::NeverDelivered };
        SurvivalFinding { kind, at: None, says }
    };
    let missed = injections.iter_mut().filter(|injection| injection.delivered == 0 && !(any && injection.by_chance));
    let mut findings: Vec<SurvivalFinding> = missed.map(finding).collect();
    if any || findings.iter().any(|finding| finding.kind == FindingKind::NeverDelivered) {
        findings.retain(|finding| finding.kind == FindingKind::NeverDelivered);
    }
    findings
}

impl FindingKind {
    /// What a run with such a finding comes to.
    pub fn result(self) -> SurvivalResult {
        match self {
            FindingKind::Defect | FindingKind::ProgramFailed => SurvivalResult::Failed,
            FindingKind::NeverDelivered | FindingKind::CheckUndecided => SurvivalResult::Inconclusive,
            FindingKind::DoesNotApply => SurvivalResult::Skipped,
            FindingKind::NoCall | FindingKind::Unanswered | FindingKind::CheckBroken => SurvivalResult::Void,
        }
    }
}

impl SurvivalResult {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SurvivalResult::Passed => Judgement::Passed.name(),
            SurvivalResult::Skipped => "skipped",
            SurvivalResult::Inconclusive => Judgement::Inconclusive.name(),
            SurvivalResult::Failed => Judgement::Failed.name(),
            SurvivalResult::Void => "void",
        }
    }
}

impl Survival {
    /// Whether the program survived.
    pub fn is_passed(&self) -> bool {
        self.result == SurvivalResult::Passed
    }

    /// Whether a finding of this kind was made.
    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}
