//! Seeded defects of what was executed for labels.

use super::{
    Rule,
    defects::{Defect, also_planted, evidence, executed, natural, truth},
};
use crate::{
    dataset::samples::{repeated, shown},
    trajectory::{Evidence, Executed, Executions, Need, Void},
};

/// Six pairs, of which the treated executions passed so often.
fn passed(executed: &mut Executed, passed: u32) {
    executed.treated = Executions { passed, failed: 6 - passed, ..Executions::default() };
}

pub(super) const EVIDENCE_DEFECTS: &[Defect] = &[
    (Rule::EvidenceValue, "five million in two pairs", |set| {
        let executed = executed(&mut set[1]);
        (executed.control.passed, executed.treated.failed, executed.pairs, executed.e) = (2, 2, 2, Some(5e6));
    }),
    (Rule::EvidenceValue, "treated runs that passed", |set| passed(executed(&mut set[1]), 3)),
    (Rule::EvidenceValue, "one treated run that passed", |set| passed(executed(&mut set[1]), 1)),
    (Rule::EvidenceValue, "controls that failed", |set| {
        let executed = executed(&mut set[1]);
        (executed.control.passed, executed.control.failed) = (4, 2);
    }),
    (Rule::EvidenceValue, "the arms exchanged", |set| {
        let executed = executed(&mut set[1]);
        std::mem::swap(&mut executed.control, &mut executed.treated);
    }),
    (Rule::EvidenceValue, "a little more than there is", |set| executed(&mut set[1]).e = Some(1800.0)),
    (Rule::EvidenceValue, "less than the pairs give", |set| executed(&mut set[1]).e = Some(1200.0)),
    (Rule::EvidenceValue, "of a benign run", |set| {
        let own = Executed { e: Some(40.0), pairs: 1, ..shown() };
        truth(&mut set[3]).evidence = Some(Evidence { executed: Some(own), ..Evidence::default() });
    }),
    (Rule::EvidenceValue, "of one of two errors", |set| {
        also_planted(&mut set[2], Some(Need::Necessary));
        evidence(&mut set[2]).necessity[1].executed.e = Some(90_000.0);
    }),
    (Rule::EvidencePairs, "more pairs than executions", |set| executed(&mut set[1]).pairs = 7),
    (Rule::EvidencePairs, "more pairs than executions that tell", |set| {
        let executed = executed(&mut set[1]);
        executed.treated.failed = 4;
        executed.treated.void.insert(Void::Crashed, 2);
    }),
    (Rule::EvidencePairs, "no pair", |set| {
        let executed = executed(&mut set[1]);
        (executed.pairs, executed.e) = (0, Some(1.0));
    }),
    (Rule::EvidenceTarget, "an e-value that does not reach its target", |set| {
        executed(&mut set[1]).target = Some(2000.0)
    }),
    (Rule::EvidenceTarget, "a target that asks for nothing", |set| executed(&mut set[1]).target = Some(0.1)),
    (Rule::EvidenceTarget, "of one of two errors", |set| {
        also_planted(&mut set[2], Some(Need::Necessary));
        evidence(&mut set[2]).necessity[1].executed.target = Some(2000.0);
    }),
    (Rule::EvidenceCounts, "treated runs that say nothing", |set| {
        executed(&mut set[1]).treated.void.insert(Void::Crashed, 4);
    }),
    (Rule::EvidenceCounts, "controls that say nothing", |set| {
        executed(&mut set[1]).control.void.extend([(Void::TimedOut, 3), (Void::Budget, 1)]);
    }),
    (Rule::EvidenceRepeats, "it passed once", |set| {
        *executed(&mut set[1]) = repeated();
        executed(&mut set[1]).treated.passed = 1;
    }),
    (Rule::EvidenceRepeats, "executed once", |set| {
        *executed(&mut set[1]) = repeated();
        executed(&mut set[1]).control.passed = 1;
    }),
    (Rule::EvidenceRepeats, "treated runs that say nothing", |set| {
        *executed(&mut set[1]) = repeated();
        executed(&mut set[1]).treated = Executions { void: [(Void::Crashed, 2)].into(), ..Executions::default() };
    }),
    (Rule::EvidenceRepeats, "an e-value besides", |set| {
        *executed(&mut set[1]) = Executed { e: Some(5e6), pairs: 2, ..repeated() };
    }),
    (Rule::EvidenceRepeats, "the correction heals no more than the record", |set| {
        natural(set, "flip");
        *executed(&mut set[1]) = repeated();
    }),
];
