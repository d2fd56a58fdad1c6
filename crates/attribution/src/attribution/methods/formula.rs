//! Formulas of spectrum-based fault localisation, over counts of runs that hold an element and of runs that do not.

/// In how many runs an element was covered, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spectra {
    /// Failed runs that hold it; with decay, by how often each holds it.
    pub(super) failed: f64,
    /// Passed runs that hold it.
    pub(super) passed: f64,
    /// Failed runs without it.
    pub(super) failed_without: f64,
    /// Passed runs without it.
    pub(super) passed_without: f64,
}

/// How suspicious counts make an element.
type Formula = fn(Spectra) -> f64;

/// Every formula: its name, and what it makes of the counts.
pub(super) const FORMULAS: &[(&str, Formula)] = &[
    ("kulczynski2", kulczynski2),
    ("ochiai", ochiai),
    ("tarantula", tarantula),
    ("dstar", dstar),
    ("op2", op2),
    ("barinel", barinel),
];

/// A share, and 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// ½ (f / (f + f′) + f / (f + p)).
pub(super) fn kulczynski2(n: Spectra) -> f64 {
    0.5 * (share(n.failed, n.failed + n.failed_without) + share(n.failed, n.failed + n.passed))
}

/// f / √((f + f′)(f + p)) (Ochiai; Abreu et al. 2006).
pub(super) fn ochiai(n: Spectra) -> f64 {
    share(n.failed, ((n.failed + n.failed_without) * (n.failed + n.passed)).sqrt())
}

/// The share of failed runs that hold it, against that of passed ones (Jones and Harrold 2005).
pub(super) fn tarantula(n: Spectra) -> f64 {
    let failed = share(n.failed, n.failed + n.failed_without);
    share(failed, failed + share(n.passed, n.passed + n.passed_without))
}

/// f² / (p + f′) (Wong et al. 2014); without either, as if half a run were there, so that it stays finite.
pub(super) fn dstar(n: Spectra) -> f64 {
    n.failed * n.failed / (n.passed + n.failed_without).max(0.5)
}

/// f − p / (p + p′ + 1) (Naish, Lee and Ramamohanarao 2011).
pub(super) fn op2(n: Spectra) -> f64 {
    n.failed - n.passed / (n.passed + n.passed_without + 1.0)
}

/// 1 − p / (p + f) (Abreu, Zoeteweij and van Gemund 2009, for one fault).
pub(super) fn barinel(n: Spectra) -> f64 {
    1.0 - share(n.passed, n.passed + n.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let n = Spectra { failed: 3.0, passed: 1.0, failed_without: 1.0, passed_without: 3.0 };
        let expected = [0.75, 0.75, 0.75, 4.5, 2.8, 0.75];
        for ((name, formula), expected) in FORMULAS.iter().zip(expected) {
            assert!((formula(n) - expected).abs() < 1e-12, "{name}: {}", formula(n));
        }
        for (name, formula) in FORMULAS {
            assert!(formula(Spectra::default()).is_finite(), "{name}");
        }
    }
}
