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
async fn plans_that_prove_nothing() {
    let absent = "[[injection]]\nagent = \"writer\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = {}\n";
    let late = absent.replace("writer", "solver").replace("call = 0", "step = 99");
    let failed = absent.replace("writer", "planner").replace("corrupt_number", "negate_verdict");
    for (plan, class, runs) in
        [(absent, "not_injected", 2), (&late, "not_injected", 2), (&failed, "manipulator_failed", 3)]
    {
        let bench =
            Bench::new(&format!("upstream = \"simulator\"\n{}{PIPELINE}[[plan]]\nfile = \"p.toml\"\n", tasks(1)));
        fs::write(bench.dir.path().join("p.toml"), plan).expect("written");
        let (code, _, said) = bench.run(&[]).await;
        assert_eq!((code, bench.classes()), (Some(1), vec![class.to_owned()]), "nothing was delivered: {said}");
        assert_eq!(bench.cells().len(), runs, "what cannot hit is not run");
        assert!(said.lines().last().is_some_and(|line| line.starts_with("RESULT  finding")), "{said}");
        let labels = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset");
        assert!(labels.is_empty());
        let unmade = bench.report()["unmade"].as_array().expect("a list").clone();
        assert_eq!(unmade.len(), usize::from(class == "manipulator_failed"), "{unmade:?}");
        for edit in unmade {
            assert_eq!((edit["manipulator"].as_str(), edit["runs"].as_u64()), (Some("negate_verdict"), Some(1)));
            for page in ["report.md", "report.html"] {
                let page = fs::read_to_string(bench.out().join(page)).expect("a page");
                let page = crate::viewer::unpacked(&page);
                assert!(page.contains(edit["why"].as_str().expect("a reason")), "{page}");
            }
        }
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
