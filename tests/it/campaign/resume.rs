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
    // One address: what a run is called hangs on it, and with it the run's neutral changes.
    let backend = Backend::refusing(|_| None, takes).await;
    let whole = Bench::new(&text());
    let (code, _, said) = whole.run(&["--upstream", &backend.url, "--jobs", "2"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (calm, calm_calls) = (backend.paid(), backend.calls());
    backend.forget();

    let bench = Bench::new(&text());
    let arguments = ["campaign", "c.toml", "--out", "out", "-q", "--jobs", "2", "--upstream", &backend.url];
    let mut seed = 0x9e37_79b9_u32;
    for kill in 0..KILLS {
        // Points spread over the campaign, each at a place within its part that nobody chose.
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        let part = calm_calls / KILLS;
        let point = kill * part + seed as usize % part.max(1);
        // The first may have been killed before there was anything to go on with.
        let resume = bench.out().join("cells").exists().then_some("--resume");
        let mut child =
            aegis(bench.dir.path()).args(arguments).args(resume).stderr(Stdio::null()).spawn().expect("started");
        let far = || backend.calls() >= point;
        until_within(Duration::from_mins(1), "it is as far as that", far).await;
        child.start_kill().expect("killed");
        within(child.wait()).await.expect("waited");
    }
    let (code, _, said) = bench.run(&["--resume", "--upstream", &backend.url]).await;
    assert_eq!(code, Some(0), "{said}");

    let paid = backend.paid();
    let mut twice = paid.len() - calm.len().min(paid.len());
    assert!(twice <= KILLS * JOBS, "{twice} calls were made again: at most those under way at a kill may be");
    // What was asked is what is asked without kills, and nothing else.
    let mut left = calm.clone();
    for body in &paid {
        if let Some(at) = left.iter().position(|known| known == body) {
            left.remove(at);
        } else {
            assert!(calm.contains(body), "{}", String::from_utf8_lossy(body));
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
    assert_eq!(rows(&bench, &backend.url), rows(&whole, &backend.url));
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
    let next =
        format!("next      aegis campaign c.toml --out out --jobs 1 --upstream {} --resume   goes on", backend.url);
    assert!(said.contains(&next), "{said}");
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
    assert_eq!(code, Some(3), "nothing can be measured: {said}");
    assert!(said.contains("is left out, infra_error: the upstream answered every call with 401"), "{said}");
    let page = std::fs::read_to_string(bench.out().join("report.md")).expect("a report");
    assert!(page.contains("the upstream answered every call with 401"), "{page}");
}

#[tokio::test]
async fn the_line_that_goes_on_says_all_that_was_said() {
    let backend = Backend::start().await;
    let bench = Bench::new(&text().replace("first = 1", "first = 3"));
    let budget = ["--only", "pipeline/*", "--budget", "calls=7", "--upstream", &backend.url];
    let (code, _, said) = bench.run(&budget).await;
    assert_eq!((code, backend.calls()), (Some(4), 7), "{said}");
    assert!(said.contains("`--budget calls=7` is used up: raise it in that line"), "{said}");
    let next = said.lines().find_map(|line| line.strip_prefix("next      aegis ")).expect("a line");
    let typed = next.split("   goes on").next().expect("the line").to_owned();
    // As a shell takes it, elsewhere pointed at nothing; bounded as before, it makes no call.
    let line = format!("set -- {typed}; printf '%s\\n' \"$@\"");
    let words = tokio::process::Command::new("sh").args(["-c", &line]).output().await.expect("a shell");
    let words = String::from_utf8(words.stdout).expect("text");
    let type_in = |words: String| {
        let mut program = aegis(bench.dir.path());
        program.env("AEGIS_UPSTREAM", "http://127.0.0.1:1/v1").args(words.lines());
        async move { within(program.output()).await.expect("ended") }
    };
    let ended = type_in(words.clone()).await;
    assert_eq!((ended.status.code(), backend.calls()), (Some(4), 7), "{}", String::from_utf8_lossy(&ended.stderr));
    // Raised as it says, it does the same campaign on.
    let ended = type_in(words.replace("calls=7", "calls=1000")).await;
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(bench.report()["clean"]["tasks"], 3, "no other system's tasks");
}

#[tokio::test]
async fn a_start_that_would_find_nothing_of_its_own_is_refused_by_name() {
    let [first, other] = [Backend::start().await, Backend::start().await];
    let bench = Bench::new(&format!("proof.repeatable = true\n{}", text()));
    let only = ["-q", "--only", "pipeline/*"];
    let run = |more: &[&str]| {
        let arguments = [&only[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let bench = &bench;
        async move { bench.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    let (code, _, said) = run(&["--upstream", &first.url]).await;
    assert_eq!(code, Some(0), "{said}");
    let rows = || std::fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a data set");
    let before = rows();
    assert!(!before.is_empty());
    let (code, _, said) = run(&["--resume", "--upstream", &other.url]).await;
    assert_eq!((code, other.calls(), rows() == before), (Some(2), 0, true), "{said}");
    for word in ["`out`", first.url.trim_end_matches("/v1"), other.url.trim_end_matches("/v1"), "--changed"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // The file says another seed: every run would be another.
    let text = std::fs::read_to_string(bench.dir.path().join("c.toml")).expect("read");
    std::fs::write(bench.dir.path().join("c.toml"), text.replace("seed = 7", "seed = 8")).expect("written");
    let calls = first.calls();
    let (code, _, said) = run(&["--resume", "--upstream", &first.url]).await;
    assert_eq!((code, first.calls()), (Some(2), calls), "{said}");
    assert!(said.contains("`seed`"), "{said}");
    std::fs::write(bench.dir.path().join("c.toml"), text).expect("written");

    // Who says so gets it; the earlier set is kept, and that is said.
    let (code, _, said) = bench.run(&["--only", "pipeline/*", "--resume", "--changed", "--upstream", &other.url]).await;
    assert_eq!((code, other.calls() > 0), (Some(0), true), "{said}");
    let kept = std::fs::read_to_string(bench.out().join("dataset.earlier.jsonl")).expect("kept");
    assert_eq!(kept, before);
    assert!(
        said.contains("rows that lay there are not among these") && said.contains("dataset.earlier.jsonl"),
        "{said}"
    );
    // Narrower tasks leave rows out, too.
    let (code, _, said) = bench.run(&["--only", "debate/*", "--resume", "--upstream", &other.url]).await;
    assert!(code.is_some_and(|code| code < 2) && said.contains("kept as dataset.earlier-2.jsonl"), "{code:?} {said}");
    let kept = std::fs::read_to_string(bench.out().join("dataset.earlier.jsonl")).expect("kept");
    assert_eq!(kept, before, "what was kept first stays");
}

#[tokio::test]
async fn nothing_is_no_campaign_to_go_on_with() {
    let backend = Backend::start().await;
    let bench = Bench::new(&text());
    let type_in = |out: &'static str| {
        let arguments =
            ["campaign", "c.toml", "--out", out, "--resume", "--only", "pipeline/*", "--upstream", &backend.url];
        let mut program = aegis(bench.dir.path());
        program.args(arguments);
        async move { within(program.output()).await.expect("ended") }
    };
    for (out, there, words) in [
        ("outt", false, vec!["`outt` holds no campaign to go on with", "leave out `--resume`"]),
        ("outt", true, vec!["`outt` holds no campaign to go on with: did you mean `out`?"]),
        ("empty", true, vec!["`empty` holds no campaign to go on with"]),
    ] {
        if there {
            std::fs::create_dir_all(bench.out().join("cells")).expect("made");
            std::fs::create_dir_all(bench.dir.path().join("empty")).expect("made");
        }
        let ended = type_in(out).await;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), backend.calls()), (Some(2), 0), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!bench.dir.path().join("outt").exists(), "nothing was made");
    }
}
