//! Which modes somebody who looks at a change chooses among.

use crate::trajectory::{FailureMode, StepIndex};

/// The mode that a plan declares among two others, in an order that tells nothing: one of the same group of MAST, one of another.
/// The change of an injection at a step of a run is always shown with the same two, so that answers of several people can be
/// compared; `turn` shuffles, so that no place of a list is favoured.
pub fn offered(declared: FailureMode, run: &str, step: StepIndex, injection: u32, turn: u32) -> Vec<FailureMode> {
    let key = &format!("{run}/{step}/{injection}");
    let group = |mode: &FailureMode| mode.code().split('.').next().map(str::to_owned);
    let others = FailureMode::ALL.iter().copied().filter(|mode| *mode != declared);
    let (same, other): (Vec<_>, Vec<_>) = others.partition(|mode| group(mode) == group(&declared));
    let drawn =
        |modes: &[FailureMode], of: &str| modes.iter().copied().max_by_key(|mode| draw(&[of, key, mode.code()]));
    let mut offered: Vec<FailureMode> =
        [Some(declared), drawn(&same, "same"), drawn(&other, "other")].into_iter().flatten().collect();
    offered.sort_by_key(|mode| draw(&["order", key, &turn.to_string(), mode.code()]));
    offered
}

fn draw(parts: &[&str]) -> u64 {
    twox_hash::XxHash3_64::oneshot(parts.join("\0").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_declared_mode_stands_among_two_others_at_any_place() {
        for declared in FailureMode::ALL {
            let (mut places, mut contrasts): (BTreeMap<usize, u32>, BTreeSet<FailureMode>) = Default::default();
            for number in 0..300 {
                let run = format!("run-{number}");
                let first = offered(*declared, &run, 3, 0, 0);
                let modes: BTreeSet<FailureMode> = first.iter().copied().collect();
                assert_eq!((modes.len(), modes.contains(declared)), (3, true));
                assert_eq!(modes, offered(*declared, &run, 3, 0, 1).into_iter().collect(), "each time the same ones");
                *places.entry(first.iter().position(|mode| mode == declared).expect("it is there")).or_default() += 1;
                contrasts.extend(modes.into_iter().filter(|mode| mode != declared));
            }
            assert!(places.len() == 3 && places.values().all(|count| *count > 60), "{declared:?} {places:?}");
            assert!(contrasts.len() > 9, "{declared:?} {contrasts:?}");
        }
    }
}
