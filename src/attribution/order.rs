//! In which order steps are tested. `Scan` tests each; the others assume a shape and pay less.

use super::{Order, TrialError, bisect, search::Search};
use crate::trajectory::StepIndex;

/// Searches until the labels are known or the budget is spent.
pub(super) async fn search(search: &mut Search<'_>, order: Order, first: bool) -> Result<(), TrialError> {
    match order {
        Order::Scan => scan(search, first).await,
        Order::Bisect => bisect::search(search, first).await,
        Order::BestFirst => best_first(search, first).await,
    }
}

async fn scan(search: &mut Search<'_>, first: bool) -> Result<(), TrialError> {
    for step in search.candidates() {
        let blamed = search.test(step).await?;
        if search.out_of_budget || (first && blamed) {
            break;
        }
    }
    Ok(())
}

/// How much less a step is suspected once a fresh draw after it healed the run: the error came later.
const HEALED: f64 = 0.02;
/// How much less, once an earlier step is blamed.
const EXPLAINED: f64 = 0.2;
/// Below this suspicion a step is no longer worth its price, once another is blamed.
const NEGLIGIBLE: f64 = 0.04;

async fn best_first(search: &mut Search<'_>, first: bool) -> Result<(), TrialError> {
    let steps = search.candidates();
    // Where the corrections' source says nothing, earlier steps are more suspicious: an error is carried on.
    let suspicion = steps.iter().zip(0_u32..).map(|(step, rank)| {
        let said = search.correction(*step).and_then(|correction| correction.suspicion);
        (*step, said.unwrap_or_else(|| 1.0 / f64::from(rank + 2)).clamp(NEGLIGIBLE, 1.0))
    });
    let mut suspicion: Vec<(StepIndex, f64)> = suspicion.collect();
    let mut earliest: Option<StepIndex> = None;
    while let Some(position) = most_suspicious(&suspicion) {
        let (step, weight) = suspicion.swap_remove(position);
        if earliest.is_some() && weight < NEGLIGIBLE {
            break;
        }
        let blamed = search.test(step).await?;
        if search.out_of_budget {
            break;
        }
        let healed = search.known(step).is_some_and(|finding| finding.null.share.successes > 0);
        for (other, weight) in &mut suspicion {
            if healed && *other < step {
                *weight *= HEALED;
            }
            if blamed && *other > step {
                *weight *= EXPLAINED;
            }
        }
        if blamed && earliest.is_none_or(|earlier| step < earlier) {
            earliest = Some(step);
            // Whether it is the earliest, the one before it decides.
            let before = suspicion.iter_mut().filter(|(other, weight)| *other < step && *weight >= NEGLIGIBLE);
            if let Some((_, weight)) = before.max_by_key(|(other, _)| *other) {
                *weight = 1.0;
            }
        }
        if let Some(blamed) = earliest.filter(|_| first) {
            suspicion.retain(|(other, _)| *other < blamed);
        }
    }
    Ok(())
}

fn most_suspicious(suspicion: &[(StepIndex, f64)]) -> Option<usize> {
    let ranked = suspicion.iter().enumerate();
    let most = ranked.max_by(|(_, (a, x)), (_, (b, y))| x.total_cmp(y).then(b.cmp(a)));
    most.map(|(position, _)| position)
}
