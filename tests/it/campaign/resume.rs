//! A campaign that is killed goes on from its files and pays for nothing twice.

use std::{process::Stdio, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{Bench, DEBATE, PIPELINE, backend::Backend, figure, plans, tasks};
use crate::{
    lab::{until_within, within},
    program::aegis,
};

fn text() -> String {
    let plans =
        plans(&["corrupt-number", "end-early"], "\"pipeline\"") + &plans(&["corrupt-two-debaters"], "\"debate\"");
    format!("{}{PIPELINE}{DEBATE}{plans}", tasks(1))
}

/// How many points it is killed at.
const KILLS: usize = 20;
/// Cells at once, so also the most calls that are under way at a kill.
const JOBS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_twenty_points_it_pays_for_nothing_twice() {
    let takes = Duration::from_millis(4);
    let calm = Backend::refusing(|_| None, takes).await;
    let whole = Bench::new(&text());
    let (code, _, said) = whole.run(&["--upstream", &calm.url, "--jobs", "2"]).await;
    assert_eq!(code, Some(0), "{said}");

    let backend = Backend::refusing(|_| None, takes).await;
    let bench = Bench::new(&text());
    let arguments = ["campaign", "c.toml", "--out", "out", "--resume", "-q", "--jobs", "2", "--upstream", &backend.url];
    let mut seed = 0x9e37_79b9_u32;
    for kill in 0..KILLS {
        // Points spread over the campaign, each at a place within its part that nobody chose.
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        let part = calm.calls() / KILLS;
        let point = kill * part + seed as usize % part.max(1);
        let mut child = aegis(bench.dir.path()).args(arguments).stderr(Stdio::null()).spawn().expect("started");
        let far = || backend.calls() >= point;
        until_within(Duration::from_mins(1), "it is as far as that", far).await;
        child.start_kill().expect("killed");
        within(child.wait()).await.expect("waited");
    }
    let (code, _, said) = bench.run(&["--resume", "--upstream", &backend.url]).await;
    assert_eq!(code, Some(0), "{said}");

    let paid = backend.paid();
    let mut twice = paid.len() - calm.paid().len().min(paid.len());
    assert!(twice <= KILLS * JOBS, "{twice} calls were made again: at most those under way at a kill may be");
    // What was asked is what is asked without kills, and nothing else.
    let mut left = calm.paid();
    for body in &paid {
        if let Some(at) = left.iter().position(|known| known == body) {
            left.remove(at);
        } else {
            assert!(calm.paid().contains(body), "{}", String::from_utf8_lossy(body));
            twice = twice.checked_sub(1).expect("no more repetitions than were counted");
        }
    }
    assert!(left.is_empty(), "{} calls were never made", left.len());
    // Finished cells cause no call at all.
    let before = backend.calls();
    let (code, _, _) = bench.run(&["--resume", "--upstream", &backend.url]).await;
    assert_eq!((code, backend.calls()), (Some(0), before));
    let spent = bench.report()["cost"]["spent"]["calls"].as_f64().expect("a figure");
    assert!(spent >= figure(before) && spent <= figure(before + KILLS * JOBS), "{spent} of {before}");
    let rows = |bench: &Bench, url: &str| {
        let text = std::fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset");
        text.replace(url.trim_end_matches("/v1"), "URL").lines().count()
    };
    assert_eq!(rows(&bench, &backend.url), rows(&whole, &calm.url));
}

#[tokio::test]
async fn what_is_there_is_not_overwritten_unasked() {
    let bench = Bench::new(&format!("upstream = \"simulator\"\n{}", text().replace("first = 2", "first = 1")));
    assert_eq!(bench.run(&["-q", "--only", "pipeline/*"]).await.0, Some(0));
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("holds a campaign already") && said.contains("hint: go on with `--resume`"), "{said}");
    let before = bench.cells().len();
    let (code, _, said) = bench.run(&["--resume"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(bench.cells().len() > before, "the other system is run, too");
}

#[tokio::test]
async fn who_stops_one_is_told_what_was_made_and_how_to_go_on() {
    let backend = Backend::refusing(|_| None, Duration::from_millis(20)).await;
    let bench = Bench::new(&text());
    let arguments = ["campaign", "c.toml", "--out", "out", "--jobs", "1", "--upstream", &backend.url];
    let child = aegis(bench.dir.path()).args(arguments).stderr(Stdio::piped()).spawn().expect("started");
    until_within(Duration::from_mins(1), "some calls were made", || backend.calls() >= 4).await;
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("sent");
    let output = within(child.wait_with_output()).await.expect("ended");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("next      aegis campaign c.toml --out out --resume"), "{said}");
    assert!(
        said.contains("RESULT  stopped 0 verified failures from 0 of ") || said.contains("from 0 injected runs"),
        "{said}"
    );
    let report = bench.report();
    assert!(report["cost"]["spent"]["money"].is_null(), "nobody gave a price: {}", report["cost"]["spent"]);
    let page = std::fs::read_to_string(bench.out().join("report.md")).expect("a report");
    assert!(
        page.contains("| unknown |") && page.contains("Money is unknown: the campaign has no `[[price]]`."),
        "{page}"
    );
}

#[tokio::test]
async fn a_key_that_the_upstream_refuses_is_said() {
    let backend = Backend::refusing(|_| Some((hyper::StatusCode::UNAUTHORIZED, "")), Duration::ZERO).await;
    let bench = Bench::new(&text().replace("first = 2", "first = 1"));
    let (code, _, said) = bench.run(&["--only", "pipeline/*", "--upstream", &backend.url]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is left out") && said.contains("the upstream answered every call with 401"), "{said}");
    let page = std::fs::read_to_string(bench.out().join("report.md")).expect("a report");
    assert!(page.contains("the upstream answered every call with 401"), "{page}");
}
