//! Tasks in which any change turns the outcome too often for an error to be what did it.

/// Fewest runs that are asked how often they fail.
const FEWEST: usize = 6;

/// Whether a task is chaotic: of the runs without an error, which get neutral changes alone, more than a share fail, though the clean
/// runs passed. Fewer than six runs say nothing.
pub fn is_chaotic(passed: usize, failed: usize, share: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "counts of runs")]
    let (all, failures) = ((passed + failed) as f64, failed as f64);
    passed + failed >= FEWEST && failures > share * all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_chaotic_from_a_share_of_enough_runs_on() {
        for (passed, failed, chaotic) in [
            (0, 0, false),
            (0, 5, false),
            (0, 6, true),
            (4, 2, false),
            (3, 3, true),
            (10, 5, false),
            (9, 5, true),
            (40, 0, false),
        ] {
            assert_eq!(is_chaotic(passed, failed, 1.0 / 3.0), chaotic, "{passed} {failed}");
        }
    }
}
