//! What was executed for a label, a line each.

use crate::{
    cli::counted,
    proof::{in_words, need_in_words},
    ruling::PLANTED,
    trajectory::{Evidence, JointCause, Label, LabelEntry, LabelStatus},
};

/// What the label rests on, each thing by a name for its line; nothing of a label for which nothing was executed. `prove`: the
/// line that executes something for it, where that can be done. `traced`: the executions that a trace made beside it.
pub(super) fn lines(label: &Label, prove: Option<&str>, traced: usize) -> Vec<(&'static str, String)> {
    let evidence = label.evidence.as_ref();
    let with = |words: &str, verb: &str| match prove {
        Some(line) => format!("{words}: `{line}` {verb}"),
        None => words.to_owned(),
    };
    let Some(evidence) = evidence.filter(|evidence| **evidence != Evidence::default()) else {
        let unsaid = label.status == LabelStatus::Delivered;
        let hint = match traced {
            0 => with("nothing was executed for it", "does"),
            runs => with(
                &format!("none yet for what was planted; a trace executed {}, see trace", counted(runs, "run")),
                "proves it",
            ),
        };
        return if unsaid { vec![("evidence", hint)] } else { Vec::new() };
    };
    let mut lines = Vec::new();
    let former = || with("of a former rule", "tops it up");
    let executed = evidence.executed.as_ref().map(|executed| in_words(executed, "without", "with"));
    lines.push(("evidence", executed.unwrap_or_else(former)));
    if evidence.executed.as_ref().is_some_and(|executed| !executed.perturbed) {
        let plain = "its runs had no neutral changes, so it is shown that bytes decide";
        let again = || format!("{plain}: another trace makes them anew");
        lines.push(("", if label.definition == PLANTED { with(plain, "makes them anew") } else { again() }));
    }
    if !evidence.counts_as_equal.is_empty() {
        lines.push(("", format!("counted as equal in its runs: {}", evidence.counts_as_equal.join("; "))));
    }
    for one in &evidence.necessity {
        lines.push(("", need_in_words(one)));
    }
    if let Some(sentence) = evidence.joint_cause().and_then(JointCause::sentence) {
        lines.push(("", sentence.to_owned()));
    }
    for (entries, what) in
        [(&label.others, "is no cause"), (&label.not_shown, "is neither shown to be a cause nor cleared")]
    {
        for LabelEntry { error, .. } in entries {
            lines.push((
                "",
                format!(
                    "beside it, {} at step {} was altered and {what}",
                    error.agent.numbered(error.instance),
                    error.step
                ),
            ));
        }
    }
    if let Some(twin) = &evidence.twin {
        let left = evidence.fork_step.map(|step| format!(", left at step {step}")).unwrap_or_default();
        lines
            .push(("twin", format!("{twin}  clean runs {}/{} passed{left}", evidence.clean.passed, evidence.clean.of)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{
        AgentName, EffectExcluded, Executed, Executions, LabelContent, Necessity, Need, RunId, Tally, Verdict,
    };

    #[test]
    fn each_thing_that_was_executed_has_a_line() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let executed = Executed {
            control: of(6, 0),
            treated: of(0, 6),
            pairs: 6,
            e: Some(1792.0),
            target: Some(1000.0),
            perturbed: true,
            ..Executed::default()
        };
        let necessity = |injection, state| Necessity {
            injection,
            agent: AgentName::parse("critic").expect("a name"),
            instance: 0,
            state,
            executed: executed.clone(),
            exclusion: Some(EffectExcluded { effect: 0.25, e: 43.2, target: 40.0 }),
        };
        let evidence = Evidence {
            executed: Some(executed.clone()),
            necessity: vec![necessity(0, Need::Necessary), necessity(1, Need::NotNeeded)],
            clean: Tally::new(2, 2),
            twin: Some(RunId::parse("c-1").expect("an id")),
            fork_step: Some(3),
            ..Evidence::default()
        };
        let label = |evidence| {
            Label::ruled(LabelContent {
                format: 1,
                status: LabelStatus::Delivered,
                definition: "injected".to_owned(),
                seed: 7,
                outcome: Verdict::Failure,
                errors: Vec::new(),
                others: Vec::new(),
                not_shown: Vec::new(),
                evidence,
                names_later: None,
                missed_catch: Vec::new(),
            })
        };
        let text: Vec<String> =
            lines(&label(Some(evidence)), None, 0).iter().map(|(name, line)| format!("{name}|{line}")).collect();
        assert_eq!(
            text,
            [
                "evidence|e 1792 of 1000 in 6 pairs (without 6/6 passed, with 0/6 passed)",
                "|necessary: injection 0 at critic: e 1792 of 1000 in 6 pairs (without it 6/6 passed, with all 0/6 passed)",
                "|not needed: injection 1 at critic: e 43.2 of 40.0 excludes an effect of 0.25 or more in 6 pairs \
                 (without it 6/6 passed, with all 0/6 passed)",
                "twin|c-1  clean runs 2/2 passed, left at step 3",
            ]
        );
        let prove = Some("aegis prove logs/r --check CMD --again");
        assert_eq!(
            lines(&label(None), prove, 0)[0].1,
            "nothing was executed for it: `aegis prove logs/r --check CMD --again` does"
        );
        // Executions of a trace are not nothing.
        assert!(lines(&label(None), None, 20)[0].1.contains("a trace executed 20 runs"));
        let unchanged = Executed { perturbed: false, ..executed };
        let bytes_only = Evidence { executed: Some(unchanged), ..Evidence::default() };
        assert!(lines(&label(Some(bytes_only)), prove, 0)[1].1.contains("bytes decide: `aegis prove"));
        let former = Evidence { clean: Tally::new(2, 2), ..Evidence::default() };
        assert!(lines(&label(Some(former)), prove, 0)[0].1.contains("former rule: `aegis prove"));
    }
}
