//! Everything that is not proven has its own class and no label.

use std::{fs, time::Duration};

use hyper::StatusCode;

use super::{Bench, PIPELINE, backend::Backend, plans, tasks};

/// A system that does something around the example pipeline.
fn around(script: &str, more: &str) -> String {
    let script = script.replace("RUN", "\"$1\" example pipeline --task \"$2\"");
    format!(
        "[[system]]\nname = \"s\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"sh\", \"{{aegis}}\", \"{{question}}\"]\n\
         config = \"ROOT/examples/pipeline/aegis.toml\"\n{more}\n"
    )
}

fn end_early() -> String {
    plans(&["corrupt-number"], "\"s\"")
}

#[tokio::test]
async fn plans_that_cannot_be_made_are_not_run() {
    let absent = "[[injection]]\nagent = \"writer\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = {}\n";
    let late = absent.replace("writer", "solver").replace("call = 0", "step = 99");
    let failed = absent.replace("writer", "planner").replace("corrupt_number", "negate_verdict");
    for (plan, agent, why) in [
        (absent, "writer", "it meets no call of the reference run"),
        (&late, "solver", "the recorded run has 3 steps"),
        (&failed, "planner", "no verdict"),
    ] {
        let bench =
            Bench::new(&format!("upstream = \"simulator\"\n{}{PIPELINE}[[plan]]\nfile = \"p.toml\"\n", tasks(1)));
        fs::write(bench.dir.path().join("p.toml"), plan).expect("written");
        let (code, _, output) = bench.run(&[]).await;
        assert_eq!((code, bench.classes()), (Some(1), Vec::new()), "nothing was planted: {output}");
        assert_eq!(bench.cells().len(), 2, "what cannot be made is not run");
        assert!(output.contains("1 not possible in the reference runs, and not planted"), "{output}");
        assert!(output.lines().last().is_some_and(|line| line.starts_with("RESULT  finding")), "{output}");
        let labels = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset");
        assert!(labels.is_empty());
        let report = bench.report();
        assert_eq!((&report["funnel"]["attempts"], &report["agents"]), (&0.into(), &serde_json::json!([])));
        let [row] = report["impossible"].as_array().expect("a list").as_slice() else { panic!("{report}") };
        assert_eq!(
            (row["plan"].as_str(), row["agent"].as_str(), row["times"].as_u64()),
            (Some("p"), Some(agent), Some(1))
        );
        let reason = row["why"].as_str().expect("a reason");
        assert!(reason.contains(why), "{reason}");
        for page in ["report.md", "report.html"] {
            let page = fs::read_to_string(bench.out().join(page)).expect("a page");
            let page = crate::viewer::unpacked(&page);
            assert!(page.contains(reason), "{page}");
        }
        // The forecast says it before anything more is run.
        let (_, foretold, _) = bench.run(&["--resume", "--dry-run"]).await;
        assert!(
            foretold.contains(&format!("not possible pipeline: p (FM-2.6) in {agent}, 1 ×: {reason}")),
            "{foretold}"
        );
    }
}

#[tokio::test]
async fn tasks_whose_clean_runs_do_not_pass_are_left_out() {
    let flaky = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; RUN; [ $((n % 2)) = 0 ] || echo 'ANSWER: 0'";
    for (script, why) in [
        ("RUN; echo 'ANSWER: 0'", "unsolved"),
        (flaky, "flaky_task"),
        ("RUN; exit 7", "crashed"),
        ("RUN; kill -9 $$", "crashed"),
        ("RUN; sleep 100", "timeout"),
        ("RUN; RUN", "timeout"),
    ] {
        let bench = Bench::new(&format!(
            "upstream = \"simulator\"\n{}{}{}",
            tasks(1),
            around(script, "timeout_s = 4\nmax_calls = 5"),
            end_early()
        ));
        let (code, _, said) = bench.run(&["--jobs", "1"]).await;
        assert_eq!(code, Some(1), "{script}: {said}");
        assert_eq!(bench.report()["tasks"][0]["left_out"], why, "{script}: {said}");
        assert_eq!(bench.report()["funnel"]["attempts"], 0);
    }
}

#[tokio::test]
async fn a_hung_program_is_ended_with_its_group() {
    let script = "RUN; sleep 300 & echo $! >> pids; wait";
    let bench = Bench::new(&format!(
        "upstream = \"simulator\"\nclean.repeats = 1\n{}{}{}",
        tasks(1),
        around(script, "timeout_s = 4"),
        end_early()
    ));
    let (_, _, said) = bench.run(&[]).await;
    let pids = fs::read_to_string(bench.dir.path().join("pids")).expect("it got as far as that");
    let pid: i32 = pids.lines().next().expect("a line").parse().expect("a number");
    let ended = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    crate::lab::until("the group is gone", ended).await;
    assert_eq!(bench.report()["tasks"][0]["left_out"], "timeout", "{said}");
}

#[tokio::test]
async fn injected_runs_that_crash_or_hang_are_no_failures() {
    // It only goes wrong where the answer is a wrong one.
    let script = "a=$(RUN); echo \"$a\"; [ \"$a\" = 'ANSWER: 84' ] || WRONG";
    for (wrong, class) in [("exit 9", "crashed"), ("sleep 100", "timeout")] {
        let bench = Bench::new(&format!(
            "upstream = \"simulator\"\n{}{}{}",
            tasks(1),
            around(&script.replace("WRONG", wrong), "timeout_s = 4"),
            end_early()
        ));
        let (code, _, said) = bench.run(&[]).await;
        assert_eq!((code, bench.classes()), (Some(0), vec![class.to_owned()]), "{said}");
        assert_eq!(bench.cells().len(), 3, "no control is run for it");
    }
}

#[tokio::test]
async fn an_upstream_that_fails_makes_no_label_and_is_tried_again() {
    let backend = Backend::refusing(|call| (call < 4).then_some((StatusCode::BAD_REQUEST, "0")), Duration::ZERO).await;
    let text = format!("{}clean.repeats = 1\n{PIPELINE}{}", tasks(1), plans(&["corrupt-number"], "\"pipeline\""));
    let bench = Bench::new(&text);
    let down = ["--upstream", "http://127.0.0.1:1/v1"];
    let (code, _, said) = bench.run(&down).await;
    assert_eq!(code, Some(3), "nothing answers: {said}");
    assert_eq!(bench.report()["tasks"][0]["left_out"], "infra_error");
    // Cells are named by where their calls go, too: another address is another campaign.
    let (code, _, said) = bench.run(&["--resume", "--changed", "--upstream", &backend.url]).await;
    assert_eq!((code, backend.calls() > 0), (Some(1), true), "{said}");
    let failing = Backend::refusing(|call| (call >= 3).then_some((StatusCode::BAD_GATEWAY, "0")), Duration::ZERO).await;
    let (code, _, said) = bench.run(&["--resume", "--changed", "--upstream", &failing.url]).await;
    assert!(code == Some(1) || code == Some(0), "{said}");
    assert_eq!(bench.classes(), ["infra_error"], "{said}");
}

#[tokio::test]
async fn a_program_that_never_calls_is_told_at_once() {
    let bench = Bench::new(&format!(
        "upstream = \"simulator\"\n{}{}{}",
        tasks(2),
        around("echo missing key >&2; exit 1", ""),
        end_early()
    ));
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("made no model call through the proxy: missing key"), "{said}");
}

#[tokio::test]
async fn a_program_that_keeps_the_models_replies_is_told() {
    // The first run of a task calls; all others are answered from a file.
    let script = "k=kept-$(printf %s \"$2\" | cksum | tr -d ' '); [ -e $k ] || RUN > $k; cat $k";
    let bench = Bench::new(&format!("upstream = \"simulator\"\n{}{}{}", tasks(2), around(script, ""), end_early()));
    let (code, _, said) = bench.run(&["--jobs", "1"]).await;
    assert_eq!((code, bench.classes()), (Some(1), vec!["not_injected".to_owned()]), "{said}");
    let words = "4 of the clean and injected runs ended well without one model call";
    let page = std::fs::read_to_string(bench.out().join("report.md")).expect("a report");
    for text in [&said, &page] {
        assert!(text.contains(words) && text.contains("{scratch}") && text.contains("cache on disk"), "{text}");
    }
    assert_eq!(bench.report()["silent_runs"], 4);
    // As it says: each run has a place of its own.
    let own = "mkdir -p \"$K\"; k=\"$K/kept\"; [ -e \"$k\" ] || RUN > \"$k\"; cat \"$k\"";
    let bench = Bench::new(&format!(
        "upstream = \"simulator\"\n{}{}{}",
        tasks(2),
        around(own, "environment = { K = \"{scratch}\" }"),
        end_early()
    ));
    let (_, _, said) = bench.run(&["--jobs", "1"]).await;
    assert!(!said.contains("without one model call") && said.contains("delivered 2"), "{said}");
    assert_eq!(bench.report().get("silent_runs"), None);
}
