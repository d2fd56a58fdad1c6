//! The band holds as often as it says, in campaigns that are played here by other rules than its own.

use std::io;

use rand::RngExt;

use super::*;
use crate::campaign::{Files, impossible::ImpossibleSums, parse};

struct TwoFiles;

impl Files for TwoFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(match path {
            "t.jsonl" => {
                (0..20).map(|n| format!("{{\"id\":\"t{n}\",\"question\":\"q\",\"answer\":\"1\"}}\n")).collect()
            }
            _ => "format = 1\n[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
                  manipulator.corrupt_number = {}\n"
                .to_owned(),
        })
    }

    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// Twenty tasks of one system, with four injected runs each.
fn campaign(more: &str) -> Campaign {
    let text = format!(
        "{more}tasks.file = \"t.jsonl\"\nverify.checks = [{{ exact = {{}} }}]\n[[system]]\nname = \"s\"\ncommand = [\"run\"]\n\
         [[plan]]\nfile = \"p.toml\"\nrepeats = 4\n"
    );
    parse(&text, "c.toml", &TwoFiles).unwrap_or_else(|error| panic!("{error}"))
}

fn sum(runs: u64, calls: u64) -> RunSum {
    RunSum { runs, cost: Cost { calls, input: calls * 100, output: calls * 10, ..Cost::default() } }
}

/// A chain of a system whose runs flip so often: from the longest to the shortest task three times as many calls.
fn chain(random: &mut ChaCha8Rng, flips: f64, pairs: bool) -> ChainRuns {
    let each = random.random_range(4..=12_u64);
    if random.random::<f64>() < 0.1 {
        return ChainRuns { clean: sum(2, 2 * each), passed: 1, whole: true, ..ChainRuns::default() };
    }
    let (mut injected, mut proof, mut flipped) = (RunSum::default(), RunSum::default(), 0);
    let run = |sum: &mut RunSum, random: &mut ChaCha8Rng| {
        sum.runs += 1;
        let calls = random.random_range(each / 3..=each);
        (sum.cost.calls, sum.cost.input, sum.cost.output) =
            (sum.cost.calls + calls, sum.cost.input + calls * 110, sum.cost.output + calls * 10);
    };
    // Some tasks are frail and others are not.
    let frail = flips * random.random_range(0.4..1.6);
    for _ in 0..4 {
        run(&mut injected, random);
        if random.random::<f64>() < frail {
            flipped += 1;
            let runs = if pairs { random.random_range(8..24) } else { 3 };
            (0..runs).for_each(|_| run(&mut proof, random));
        }
    }
    let clean = sum(2, 2 * each);
    ChainRuns { clean, passed: 2, injected, flipped, proof, whole: true, ..ChainRuns::default() }
}

/// What of it is known after its clean runs.
fn after_clean(chain: &ChainRuns) -> ChainRuns {
    ChainRuns { clean: chain.clean, passed: chain.passed, ..ChainRuns::default() }
}

fn measured(chains: Vec<ChainRuns>, tasks: u64) -> MeasuredCampaign {
    let runs: u64 = chains.iter().map(|chain| chain.clean.runs).sum();
    let calls: u64 = chains.iter().map(|chain| chain.clean.cost.calls).sum();
    let clean = MeasuredRuns {
        runs,
        calls: real(calls) / real(runs),
        input_tokens: 100.0,
        output_tokens: 10.0,
        chaotic_tasks: 0,
    };
    MeasuredCampaign {
        clean,
        impossible: ImpossibleSums::default(),
        systems: vec![SystemRuns { chains, tasks, ..SystemRuns::default() }],
    }
}

/// How many of a hundred campaigns cost what their band says, and how wide the bands are: high of low, in the mean.
fn held(pairs: bool, known: impl Fn(&[ChainRuns]) -> Vec<ChainRuns>) -> (usize, f64) {
    let campaign = campaign(if pairs { "" } else { "proof.repeatable = true\n" });
    let label = campaign.extent(&[]).label;
    let (mut held, mut width) = (0, 0.0);
    for number in 0..100_u8 {
        let mut random = ChaCha8Rng::from_seed([number; 32]);
        let flips = random.random_range(0.15..0.5);
        let all: Vec<ChainRuns> = (0..20).map(|_| chain(&mut random, flips, pairs)).collect();
        let total: u64 = all.iter().map(|chain| chain.spent().cost.calls).sum();
        let CostBand { low, high, made } = campaign.band(&measured(known(&all), 20), &label, !pairs);
        assert!(made.calls <= low.calls && low.calls <= high.calls, "{low:?} {high:?}");
        held += usize::from(low.calls <= real(total) && real(total) <= high.calls);
        width += high.calls / low.calls / 100.0;
    }
    (held, width)
}

#[test]
fn nine_of_ten_campaigns_cost_what_is_foretold_after_a_few_tasks() {
    for (pairs, bound) in [(false, 3.0), (true, 5.0)] {
        let (held, width) = held(pairs, |all| all.iter().take(4).cloned().collect());
        println!("after four tasks, pairs {pairs}: {held} held, {width:.2} wide");
        assert!(held >= 87 && width < bound, "pairs {pairs}: {held} {width}");
    }
}

#[test]
fn after_clean_runs_alone_it_holds_too_and_is_broader() {
    let clean = |all: &[ChainRuns]| all.iter().take(4).map(after_clean).collect();
    for (pairs, bound) in [(false, 5.0), (true, 9.0)] {
        let (held, width) = held(pairs, clean);
        println!("after clean runs, pairs {pairs}: {held} held, {width:.2} wide");
        assert!(held >= 90 && width < bound, "pairs {pairs}: {held} {width}");
    }
}

#[test]
fn what_is_made_is_known() {
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let all: Vec<ChainRuns> = (0..20).map(|_| chain(&mut random, 0.3, false)).collect();
    let total: u64 = all.iter().map(|chain| chain.spent().cost.calls).sum();
    let campaign = campaign("");
    let label = campaign.extent(&[]).label;
    let band = campaign.band(&measured(all.clone(), 20), &label, false);
    assert_eq!((band.low.calls, band.high, band.made), (real(total), band.low, band.low));
    // The more of it is made the narrower the band, and the budget bounds it.
    let width = |known: usize| {
        let band = campaign.band(&measured(all[..known].to_vec(), 20), &label, false);
        band.high.calls / band.low.calls
    };
    assert!(width(3) > width(10) && width(10) > width(17), "{} {} {}", width(3), width(10), width(17));
    let mut poor = campaign.clone();
    poor.budget.calls = Some(150);
    let band = poor.band(&measured(all[..1].to_vec(), 20), &label, false);
    assert!(band.high.calls <= 150.0 && band.low.money.is_none(), "{band:?}");
}

#[test]
fn what_cannot_be_planted_is_not_foretold() {
    let campaign = campaign("proof.repeatable = true\n");
    let label = campaign.extent(&[]).label;
    let high = |possible: Option<u64>| {
        let chain = ChainRuns { clean: sum(2, 16), passed: 2, possible, ..ChainRuns::default() };
        campaign.band(&measured(vec![chain; 4], 20), &label, true).high.calls
    };
    let [unknown, all, half, none] = [None, Some(4), Some(2), Some(0)].map(high);
    assert!(none < half && half < all && none < 0.5 * all && unknown <= all, "{unknown} {all} {half} {none}");
}

#[test]
fn a_system_that_turns_out_not_to_repeat_itself_costs_more() {
    let campaign = campaign("proof.repeatable = true\n");
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let all: Vec<ChainRuns> = (0..20).map(|_| chain(&mut random, 0.3, false)).collect();
    let expected =
        |known: usize| campaign.expected_by(80, &campaign.extent(&[]).label, &measured(all[..known].to_vec(), 20));
    let some = expected(5);
    let other = some.if_not_repeatable.expect("something is left");
    assert!(other.high.calls > 1.5 * some.high.calls && other.made == some.made, "{some:?}");
    assert!(some.text().contains("if a system turns out not to repeat itself"), "{}", some.text());
    assert_eq!(expected(20).if_not_repeatable, None, "all of it is made");
    // Where its runs showed that already, the other band is the only one.
    let mut revoked = measured(all[..5].to_vec(), 20);
    revoked.systems[0].is_revoked = true;
    let revoked = campaign.expected_by(80, &campaign.extent(&[]).label, &revoked);
    assert!(revoked.if_not_repeatable.is_none() && revoked.high.calls > some.high.calls, "{revoked:?}");
}
