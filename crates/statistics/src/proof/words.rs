//! A claim in words, as every page and line shows it.

use super::sham::is_steady;
use crate::trajectory::{Executed, Executions, Necessity, Need};

/// One line: how sure, and on what executions. `null` and `treated` say what the arms are, for example `without` and `with`.
pub fn in_words(executed: &Executed, control: &str, treated: &str) -> String {
    let dependent = executed.dependent.as_ref().map(|dependence| format!("; dependent: {}", dependence.words()));
    let chaotic = executed.chaotic.then_some("; chaotic: neutral changes alone turn the task's outcome too often");
    let fragile = fragile(executed).map(|why| format!("; {why}"));
    [Some(evidence(executed, control, treated)), dependent, chaotic.map(str::to_owned), fragile]
        .into_iter()
        .flatten()
        .collect()
}

/// One line on a place where a neutral change alone does what the treatment did; `None` of any other place.
pub fn fragile(executed: &Executed) -> Option<String> {
    let sham = executed.shams.iter().find(|sham| is_steady(sham))?;
    Some(format!("fragile: a neutral change alone failed in each of {} executions", sham.failed))
}

fn evidence(executed: &Executed, control: &str, treated: &str) -> String {
    let arms = arms(executed, control, treated);
    if executed.repeatable {
        // Without neutral changes it is shown that bytes decide, and not that these do.
        let word = if executed.perturbed { "insensitive" } else { "repeatable (bytes only)" };
        return format!("{word}, {} and {} equal ({arms})", executed.control.all(), executed.treated.all());
    }
    let (Some(e), Some(target)) = (executed.e, executed.target) else { return arms };
    format!("e {} of {} in {} ({arms})", figure(e), figure(target), pairs(executed))
}

/// One line on one of several planted errors: whether the failure needs it, and on what runs.
pub fn need_in_words(one: &Necessity) -> String {
    let Necessity { injection, agent, state, executed, exclusion, .. } = one;
    let (without, with) = ("without it", "with all");
    let shown = match exclusion {
        Some(against) if *state != Need::Necessary => {
            let (pairs, arms) = (pairs(executed), arms(executed, without, with));
            let e = format!("e {} of {}", figure(against.e), figure(against.target));
            let size = format!("{:.2} or more", against.effect);
            match (state, executed.e, executed.target) {
                (Need::NotShown, Some(shown), Some(target)) => {
                    let shown = format!("e {} of {}", figure(shown), figure(target));
                    format!("{shown} for an effect and {e} against one of {size} in {pairs} ({arms})")
                }
                _ => format!("{e} excludes an effect of {size} in {pairs} ({arms})"),
            }
        }
        _ => in_words(executed, without, with),
    };
    format!("{}: injection {injection} at {agent}: {shown}", state.words())
}

fn pairs(executed: &Executed) -> String {
    if executed.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", executed.pairs) }
}

fn arms(executed: &Executed, control: &str, treated: &str) -> String {
    format!("{control} {}, {treated} {}", arm(&executed.control), arm(&executed.treated))
}

/// An arm: passed of those that tell, and the void ones with their reasons.
fn arm(executions: &Executions) -> String {
    let told = format!("{}/{} passed", executions.passed, executions.tally().of);
    if executions.void.is_empty() {
        return told;
    }
    let void: Vec<String> = executions.void.iter().map(|(why, count)| format!("{count} {}", why.words())).collect();
    format!("{told}, void {}", void.join(", "))
}

/// An e-value with as many digits as it is worth.
pub fn figure(e: f64) -> String {
    match e {
        e if e >= 1e6 => format!("{e:.1e}"),
        e if e >= 100.0 => format!("{e:.0}"),
        e if e >= 1.0 => format!("{e:.1}"),
        0.0 => "0".to_owned(),
        e if e < 1e-3 => format!("{e:.0e}"),
        e => format!("{e:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Dependence, EffectExcluded, Void};

    #[test]
    fn a_figure_has_as_many_digits_as_it_is_worth() {
        for (e, text) in [
            (0.0, "0"),
            (0.000_42, "4e-4"),
            (0.001, "0.001"),
            (0.5, "0.500"),
            (1.0, "1.0"),
            (99.94, "99.9"),
            (100.0, "100"),
            (1791.9, "1792"),
            (999_999.0, "999999"),
            (1e6, "1.0e6"),
            (2.54e17, "2.5e17"),
        ] {
            assert_eq!(figure(e), text);
        }
    }

    #[test]
    fn a_sham_that_failed_each_time_is_told() {
        let sham = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let of = |shams| fragile(&Executed { shams, ..Executed::default() });
        assert_eq!(of(vec![sham(1, 3)]), None);
        let told = "fragile: a neutral change alone failed in each of 4 executions";
        assert_eq!(of(vec![sham(1, 3), sham(0, 4)]).as_deref(), Some(told));
    }

    #[test]
    fn without_an_e_value_a_claim_is_told_by_its_executions() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let mut executed = Executed { control: of(1, 2), treated: of(0, 3), pairs: 1, ..Executed::default() };
        let arms = "without 1/3 passed, with 0/3 passed";
        assert_eq!(in_words(&executed, "without", "with"), arms);
        executed.e = Some(0.5);
        assert_eq!(in_words(&executed, "without", "with"), arms);
        executed.target = Some(1000.0);
        assert_eq!(in_words(&executed, "without", "with"), format!("e 0.500 of 1000 in 1 pair ({arms})"));
    }

    #[test]
    fn what_is_shown_of_one_error_is_a_line() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let (control, treated) = (of(0, 16), of(0, 16));
        let executed =
            Executed { control, treated, pairs: 16, e: Some(0.1), target: Some(1000.0), ..Executed::default() };
        let repeated = Executed { control: of(0, 2), treated: of(0, 2), repeatable: true, ..Executed::default() };
        let exclusion = Some(EffectExcluded { effect: 0.25, e: 43.8, target: 40.0 });
        let arms = "in 16 pairs (without it 0/16 passed, with all 0/16 passed)";
        for (state, executed, exclusion, words) in [
            (Need::Necessary, &executed, exclusion, format!("necessary: injection 1 at critic: e 0.100 of 1000 {arms}")),
            (
                Need::NotNeeded,
                &executed,
                exclusion,
                format!("not needed: injection 1 at critic: e 43.8 of 40.0 excludes an effect of 0.25 or more {arms}"),
            ),
            (
                Need::NotShown,
                &executed,
                exclusion,
                format!(
                    "not shown: injection 1 at critic: e 0.100 of 1000 for an effect and e 43.8 of 40.0 against one of \
                     0.25 or more {arms}"
                ),
            ),
            (
                Need::NotNeeded,
                &repeated,
                None,
                "not needed: injection 1 at critic: repeatable (bytes only), 2 and 2 equal (without it 0/2 passed, with all 0/2 passed)"
                    .to_owned(),
            ),
        ] {
            let agent = crate::trajectory::AgentName::parse("critic").expect("a name");
            let (injection, instance, executed) = (1, 0, executed.clone());
            let one = Necessity { injection, agent, instance, state, executed, exclusion };
            assert_eq!(need_in_words(&one), words);
        }
    }

    #[test]
    fn lines() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let mut executed = Executed {
            control: of(6, 0),
            treated: of(0, 6),
            pairs: 6,
            e: Some(1791.9),
            target: Some(1000.0),
            repeatable: false,
            dependent: None,
            chaotic: false,
            perturbed: false,
            shams: Vec::new(),
        };
        assert_eq!(
            in_words(&executed, "without", "with"),
            "e 1792 of 1000 in 6 pairs (without 6/6 passed, with 0/6 passed)"
        );
        executed.treated.void.insert(Void::TimedOut, 2);
        assert!(in_words(&executed, "null", "treated").ends_with("treated 0/6 passed, void 2 timed out)"));
        executed.dependent = Some(Dependence::ControlTrend);
        let words = in_words(&executed, "null", "treated");
        assert!(words.contains("2 timed out); dependent: outcomes without the injection"), "{words}");
        let twice = Executed { control: of(2, 0), treated: of(0, 2), repeatable: true, ..Executed::default() };
        let words = in_words(&twice, "without", "with");
        assert_eq!(words, "repeatable (bytes only), 2 and 2 equal (without 2/2 passed, with 0/2 passed)");
        let perturbed = in_words(&Executed { perturbed: true, ..twice }, "without", "with");
        assert_eq!(perturbed, "insensitive, 2 and 2 equal (without 2/2 passed, with 0/2 passed)");
    }
}
