//! Upstreams that are dead, fail, are slow, or take no key: nothing is said of any step, and why is told.

use aegis::{
    attribution::{LabelRule, TraceSettings, label_of},
    proof::{Order, SearchEnding},
    trajectory::Void,
};

use super::{
    Case, ORDERS, case, failed, settings,
    systems::{Topology, Weather},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_does_not_answer_blames_nobody() {
    for (weather, why) in [
        (Weather::Dead, Void::Unanswered),
        (Weather::Failing(0, u64::MAX), Void::Unanswered),
        (Weather::Locked, Void::Unanswered),
    ] {
        let case = Case { weather, ..case(Topology::Row(5), &["a3"], &["a3"]) };
        let failed = failed(&case, 0).await;
        for order in ORDERS {
            for (source, corrections) in [("twin", failed.by_twin()), ("redraw", failed.redrawn())] {
                let finding = failed.trace(corrections, settings(order, source)).await;
                // The last step needs no further call: its correction may be executed, all else may not.
                let label = label_of(&finding, LabelRule::EarliestFlip);
                assert_eq!(label, None, "{weather:?} {order:?} {source}: {:?}", finding.flips);
                assert_eq!(finding.ending, Some(SearchEnding::Void(why)), "{weather:?} {order:?} {source}");
                assert!(finding.spent.runs <= 10, "{:?}", finding.spent);
                assert!(finding.not_found.is_some());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_too_slow_blames_nobody() {
    let case = Case { weather: Weather::Slow, ..case(Topology::Row(3), &["a2"], &["a2"]) };
    let failed = failed(&case, 0).await;
    let fast = TraceSettings { jobs: 2, ..settings(Order::Scan, "slow") };
    let finding = failed.trace(failed.redrawn(), fast).await;
    assert_eq!(label_of(&finding, LabelRule::EarliestFlip), None);
    assert!(
        matches!(finding.ending, Some(SearchEnding::Void(Void::TimedOut | Void::Unanswered))),
        "{:?}",
        finding.ending
    );
}

/// Nine calls refused in the middle: the executions that they hit are void, the rest says what it says.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_bad_minutes_name_no_wrong_step() {
    for from in [0, 4, 9] {
        let case = Case { weather: Weather::Failing(from, from + 9), ..case(Topology::Row(5), &["a3"], &["a3"]) };
        for order in ORDERS {
            let failed = failed(&case, 0).await;
            let finding = failed.trace(failed.by_twin(), settings(order, &format!("minutes {from}"))).await;
            let voids: u32 = finding
                .steps
                .iter()
                .filter_map(|step| step.executed.as_ref())
                .map(|e| e.control.voids() + e.treated.voids())
                .sum();
            assert!(voids > 0, "{from} {order:?}");
            assert!(finding.earliest_flip.as_ref().is_none_or(|first| first.step == 2), "{from} {order:?}");
            assert!(finding.commitment.as_ref().is_none_or(|last| last.step == 4), "{from} {order:?}");
        }
    }
}
