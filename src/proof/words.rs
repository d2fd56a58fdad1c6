//! A claim in words, as every page and line shows it.

use crate::trajectory::{Executed, Executions};

/// One line: how sure, and on what executions. `null` and `treated` say what the arms are, for example `without` and `with`.
pub fn in_words(executed: &Executed, null: &str, treated: &str) -> String {
    let arms = format!("{null} {}, {treated} {}", arm(&executed.null), arm(&executed.treated));
    if executed.repeatable {
        // Without neutral changes it is shown that bytes decide, and not that these do.
        let word = if executed.perturbed { "insensitive" } else { "repeatable (bytes only)" };
        return format!("{word}, {} and {} equal ({arms})", executed.null.all(), executed.treated.all());
    }
    let (Some(e), Some(target)) = (executed.e, executed.target) else { return arms };
    let pairs = if executed.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", executed.pairs) };
    format!("e {} of {} in {pairs} ({arms})", figure(e), figure(target))
}

/// An arm: passed of those that tell, and the void ones with their reasons.
fn arm(executions: &Executions) -> String {
    let told = format!("{}/{} passed", executions.passed, executions.passed + executions.failed);
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
    use crate::trajectory::Void;

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
    fn without_an_e_value_a_claim_is_told_by_its_executions() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let mut executed = Executed { null: of(1, 2), treated: of(0, 3), pairs: 1, ..Executed::default() };
        let arms = "without 1/3 passed, with 0/3 passed";
        assert_eq!(in_words(&executed, "without", "with"), arms);
        executed.e = Some(0.5);
        assert_eq!(in_words(&executed, "without", "with"), arms);
        executed.target = Some(1000.0);
        assert_eq!(in_words(&executed, "without", "with"), format!("e 0.500 of 1000 in 1 pair ({arms})"));
    }

    #[test]
    fn lines() {
        let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
        let mut executed = Executed {
            null: of(6, 0),
            treated: of(0, 6),
            pairs: 6,
            e: Some(1791.9),
            target: Some(1000.0),
            repeatable: false,
            perturbed: false,
        };
        assert_eq!(
            in_words(&executed, "without", "with"),
            "e 1792 of 1000 in 6 pairs (without 6/6 passed, with 0/6 passed)"
        );
        executed.treated.void.insert(Void::TimedOut, 2);
        assert!(in_words(&executed, "null", "treated").ends_with("treated 0/6 passed, void 2 timed out)"));
        let twice = Executed { null: of(2, 0), treated: of(0, 2), repeatable: true, ..Executed::default() };
        let words = in_words(&twice, "without", "with");
        assert_eq!(words, "repeatable (bytes only), 2 and 2 equal (without 2/2 passed, with 0/2 passed)");
        let perturbed = in_words(&Executed { perturbed: true, ..twice }, "without", "with");
        assert_eq!(perturbed, "insensitive, 2 and 2 equal (without 2/2 passed, with 0/2 passed)");
    }
}
