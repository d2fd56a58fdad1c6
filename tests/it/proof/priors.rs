//! What a ranking saves a trace, and costs it at worst: by real executions on a system of thirty steps, every second of which was
//! recorded wrong and matters to nobody.

use aegis::{
    attribution::{
        LabelRule, Prior, PriorRanking, TraceSettings, label_of,
        methods::{self, Dialogue, LoggedRun, View},
    },
    dataset::Task,
    proof::Order,
};

use super::{Case, Failed, Tally, Topology, case, failed, settings};

/// A ranking by name, and the order that heeds it.
type Ranked = (&'static str, Order, Vec<&'static str>);

/// What is compared: orders without a ranking, and best-first with what these methods say.
fn rankings() -> Vec<Ranked> {
    let best = |name, methods: &[&'static str]| (name, Order::BestFirst, methods.to_vec());
    vec![
        ("scan", Order::Scan, vec![]),
        ("bisect", Order::Bisect, vec![]),
        best("none", &[]),
        best("rules", &["rules"]),
        best("spectrum", &["spectrum"]),
        best("alignment", &["alignment"]),
        best("all three", &["rules", "spectrum", "alignment"]),
        best("reversed", &["reversed"]),
    ]
}

fn long(stages: usize, at: usize) -> Case {
    let stage: &'static str = Box::leak(format!("stage{at}").into_boxed_str());
    case(Topology::Watched(stages), &["observer", stage], &[stage])
}

/// What methods say of the failed run beside its twin. `reversed`: the decisive step last of all, the others from the end.
fn prior(failed: &Failed, methods: &[&str], decisive: &str) -> Option<Prior> {
    let recording = failed.cassette.recording();
    let run = LoggedRun::recorded(recording, Task::default(), false).expect("a log");
    let twin = aegis::recording::read(&failed.dir.path().join("twin")).expect("the twin");
    let others = [LoggedRun::recorded(&twin, Task::default(), false).expect("a log")];
    let said = methods.iter().map(|name| {
        let steps: Vec<u32> = if *name == "reversed" {
            let worst = run.turns.iter().rev().filter(|turn| turn.agent != decisive);
            worst.map(|turn| turn.step).collect()
        } else {
            let method = methods::method(name).expect("a method");
            let view = View { compat: false, longest_log: 100_000, others: &others, ranker: None };
            let found = method.attribute(&run, view, &mut Dialogue::new(&[])).unwrap_or_default();
            found.iter().filter_map(|found| found.step).collect()
        };
        PriorRanking { by: (*name).to_owned(), steps, abstained: None }
    });
    (!methods.is_empty()).then(|| Prior::fused(&run, said.collect()))
}

/// An executed effect ends the search; where the earliest is sought, every order says the same at the same price.
#[tokio::test(flavor = "multi_thread")]
async fn a_ranking_saves_executions_and_a_reversed_one_costs_one_more_at_most() {
    let seeds: Option<u64> = std::env::var("AEGIS_PROOF_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let measured = seeds.is_some();
    let (stages, at) = match seeds {
        None => (4, vec![2]),
        Some(0..12) => (15, vec![7]),
        Some(_) => (15, vec![2, 7, 12]),
    };
    for (source, label) in [("twin", LabelRule::Flip), ("redraw", LabelRule::Flip), ("twin", LabelRule::EarliestFlip)] {
        let earliest = label != LabelRule::Flip;
        let mut scanned: Vec<u64> = Vec::new();
        for (name, order, methods) in rankings() {
            let compared = matches!(name, "scan" | "rules" | "reversed");
            if (!measured || earliest) && !compared {
                continue;
            }
            let mut tally = Tally::default();
            for (number, at) in at.iter().enumerate() {
                let case = long(stages, *at);
                let failed = failed(&case, 0).await;
                let mut corrections = if source == "twin" { failed.by_twin() } else { failed.redrawn() };
                if let Some(prior) = prior(&failed, &methods, case.decisive[0]) {
                    prior.suspect(&mut corrections);
                }
                let own = settings(order, &format!("{name} {source} {at} {earliest}"));
                let finding = failed.trace(corrections, TraceSettings { earliest, last: false, ..own }).await;
                let label = label_of(&finding, label).expect("a label");
                let agent = label.errors[0].error.agent.clone();
                // Of an error that is carried on, each later stage is a flip too; which is the earliest no order changes.
                let carried = source == "twin" && !earliest && agent.as_str().starts_with("stage");
                assert!(carried || agent.as_str() == case.decisive[0], "{name} {source}: {agent}");
                match scanned.get(number) {
                    None => scanned.push(finding.spent.runs),
                    Some(scan) if name == "reversed" || name == "rules" => {
                        assert!(finding.spent.runs <= scan + 1, "{name} {source}: {} {scan}", finding.spent.runs);
                    }
                    Some(_) => {}
                }
                tally.add(&case, &finding);
            }
            println!("{} steps, {source}, {}, {}", 2 * stages, label_name(label), tally.line(name));
        }
    }
}

fn label_name(rule: LabelRule) -> &'static str {
    if rule == LabelRule::Flip { "one flip" } else { "the earliest" }
}
