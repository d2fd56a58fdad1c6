//! What may be spent is never exceeded, and what was spent is known to the call.

use std::time::Duration;

use hyper::StatusCode;

use super::{Bench, DEBATE, PIPELINE, backend::Backend, figure, plans, tasks};

fn text() -> String {
    let plans = plans(&["corrupt-number"], "\"pipeline\"") + &plans(&["corrupt-two-debaters"], "\"debate\"");
    let prices = "[[price]]\nmodel = \"*\"\ninput = 1.0\noutput = 2.0\n";
    format!("{}{PIPELINE}{DEBATE}{plans}{prices}[budget]\nmax_output_tokens = 200\n", tasks(1))
}

#[tokio::test]
async fn bounds_hold_and_a_larger_budget_goes_on_where_it_ended() {
    let all = Backend::start().await;
    let whole = Bench::new(&text());
    let (code, _, said) = whole.run(&["--upstream", &all.url]).await;
    assert_eq!(code, Some(0), "{said}");
    let spent = whole.report()["cost"]["spent"].clone();
    assert_eq!(spent["calls"].as_f64(), Some(figure(all.calls())), "each call is accounted for");
    let tokens = |spent: &serde_json::Value| {
        spent["input_tokens"].as_f64().expect("a figure") + spent["output_tokens"].as_f64().expect("a figure")
    };
    for (bound, most) in [("calls=17", 17.0), ("tokens=2500", 2500.0), ("money=0.0025", 0.0025)] {
        let backend = Backend::start().await;
        let bench = Bench::new(&text());
        let first = bench.run(&["--upstream", &backend.url, "--jobs", "8", "--budget", bound]).await;
        assert_eq!(first.0, Some(4), "{bound}: {}", first.2);
        assert!(first.2.lines().last().is_some_and(|line| line.starts_with("RESULT  budget")), "{}", first.2);
        let spent = bench.report()["cost"]["spent"].clone();
        let figure = match bound.split('=').next() {
            Some("calls") => spent["calls"].as_f64().expect("a figure"),
            Some("tokens") => tokens(&spent),
            _ => spent["money"].as_f64().expect("a figure"),
        };
        assert!(figure > 0.0 && figure <= most, "{bound}: {figure}");
        assert!(bench.report()["complete"] == false && backend.calls() < all.calls(), "{bound}");
        let then = bench.run(&["--upstream", &backend.url, "--resume"]).await;
        assert_eq!(then.0, Some(0), "{bound}: {}", then.2);
        // A call that was under way when the budget ended may be made again: one a job at most.
        assert!(backend.calls() <= all.calls() + 8, "{} {}", backend.calls(), all.calls());
        let [a, b] = [&whole, &bench].map(|bench| std::fs::read(bench.out().join("dataset.jsonl")).expect("a file"));
        // The two differ in the upstream's port alone, which is in no row but as the backend's name.
        assert_eq!(a.len(), b.len(), "{bound}");
    }
}

#[tokio::test]
async fn an_upstream_that_says_429_is_asked_less() {
    let refuses = |call: usize| (call == 5).then_some((StatusCode::TOO_MANY_REQUESTS, "0"));
    let backend = Backend::refusing(refuses, Duration::from_millis(5)).await;
    let bench = Bench::new(&text());
    let (code, _, said) = bench.run(&["--upstream", &backend.url, "--jobs", "4"]).await;
    assert_eq!(code, Some(0), "the program's own retry heals it: {said}");
    assert_eq!(bench.report()["cost"]["lowest_jobs"], 2);
    assert!(!bench.classes().contains(&"infra_error".to_owned()));
}

#[tokio::test]
async fn a_dry_run_does_nothing_and_says_the_most_it_could_cost() {
    let bench = Bench::new(&text());
    let (code, out, said) = bench.run(&["--dry-run", "--format", "json"]).await;
    assert_eq!((code, bench.out().exists()), (Some(0), false), "{said}");
    let extent: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let extent = &extent["dry_run"];
    // 2 systems × 1 task × 2 clean runs; a plan each; 40 pairs each, and half as many again for runs that say nothing;
    // 200 calls a run.
    assert_eq!(
        (extent["clean"].as_u64(), extent["injected"].as_u64(), extent["verify"].as_u64(), extent["narrow"].as_u64()),
        (Some(4), Some(2), Some(2 * 2 * 60), Some(0))
    );
    assert_eq!(extent["calls"], (4 + 2 + 240) * 200);
    let costs = extent["label"].as_array().expect("a list");
    assert!(costs.iter().all(|cost| cost["runs"].as_f64() >= Some(3.0)) && costs.len() == 4, "{costs:?}");
    assert!(extent["money"].as_f64() > Some(0.0));
    let (_, out, _) = bench.run(&["--dry-run", "--budget", "calls=10,money=0.5"]).await;
    let last = out.lines().last().unwrap_or_default();
    assert!(last.starts_with("worst case     at most 10 model calls, ") && last.contains(", money 0."), "{out}");
    assert_eq!(bench.run(&["--budget", "calls=x"]).await.0, Some(2));
    let (code, out, said) = bench.run(&["--dry-run", "--resume"]).await;
    assert_eq!((code, bench.out().exists()), (Some(2), false), "nothing is there to go on with: {out}{said}");
    let (_, out, _) = bench.run(&["--dry-run", "--only", "debate/*"]).await;
    assert!(out.starts_with("clean runs     2\ninjected runs  at most 1\n"), "what is left out costs nothing: {out}");
}

#[tokio::test]
async fn what_is_foretold_after_a_part_is_a_band_and_holds() {
    let text = text().replace(&tasks(1), &tasks(6));
    let bench = Bench::new(&format!("proof.repeatable = true\n{text}"));
    let (_, out, _) = bench.run(&["--upstream", "simulator", "--dry-run"]).await;
    let (_, first) = out.split_once("follows from them:\n   ").expect("not known, and how to know it");
    let first = first.lines().next().expect("a line");
    // As it is printed.
    let words: Vec<&str> = first.split_whitespace().collect();
    let Some(["aegis", "campaign", "c.toml", "--out", "out", rest @ ..]) = words.get(..) else { panic!("{first}") };
    let (code, out, said) = bench.run(rest).await;
    assert_eq!(code, Some(0), "{first}: {out}{said}");
    let dry = ["--upstream", "simulator", "--resume", "--dry-run", "--format", "json"];
    let (_, out, said) = bench.run(&dry).await;
    let foretold: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{said}"));
    let expected = foretold["dry_run"]["expected"].clone();
    let (code, _, said) = bench.run(&["--upstream", "simulator", "--resume"]).await;
    assert_eq!(code, Some(0), "{said}");
    let spent = bench.report()["cost"]["spent"].clone();
    for field in ["calls", "input_tokens", "output_tokens", "money"] {
        let [low, high, made] =
            ["low", "high", "made"].map(|end| expected[end][field].as_f64().unwrap_or_else(|| panic!("{expected}")));
        let came = spent[field].as_f64().expect("a figure");
        assert!(made <= low && low <= came && came <= high && high < 4.0 * low, "{field} {came}: {expected}");
    }
}
