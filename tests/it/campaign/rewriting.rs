//! Plans that let a model rewrite messages: the campaign pays for its words as for any other call.

use aegis::recording;

use super::{Bench, PIPELINE, backend::Backend, figure, plans, tasks};

const PLAN: &str = "mast/fm-2.6-response";

fn bench() -> Bench {
    Bench::new(&format!("{}{PIPELINE}{}", tasks(1), plans(&[PLAN], "\"pipeline\"")))
}

#[tokio::test]
async fn a_models_words_are_delivered_and_accounted_for() {
    let backend = Backend::start().await;
    let bench = bench();
    let model = ["--manipulator-upstream", &backend.url, "--manipulator-model", "simulator"];
    let arguments = [&["--upstream", backend.url.as_str()][..], &model].concat();
    let (code, _, said) = bench.run(&[&arguments[..], &["--budget", "calls=1000"]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(bench.report()["cost"]["spent"]["calls"].as_f64(), Some(figure(backend.calls())), "{said}");
    let mut questions = 0;
    for cell in bench.cells() {
        let run = cell["run"].as_str().expect("an id");
        let recording = recording::read(&bench.out().join("logs").join(run)).expect("a recording");
        let (steps, asked) = (recording.trajectory.steps.len(), recording.manipulator_questions.len());
        assert_eq!(asked > 0, cell["kind"]["cell"] == "injected", "{cell}");
        let calls = |part: &str| cell[part]["calls"].as_u64().expect("a count");
        assert_eq!(calls("spent") + calls("prefix"), (steps + asked) as u64, "{cell}");
        questions += asked;
    }
    assert!(questions > 0);
    // Bounded in the middle, it goes on where it ended: what was asked is not asked again.
    let (again, half) = (self::bench(), format!("calls={}", backend.calls() / 2));
    let before = backend.calls();
    let first = again.run(&[&arguments[..], &["--jobs", "1", "--budget", &half]].concat()).await;
    assert_eq!(first.0, Some(4), "{}", first.2);
    let then = again.run(&[&arguments[..], &["--jobs", "1", "--resume"]].concat()).await;
    assert_eq!((then.0, backend.calls()), (Some(0), 2 * before), "{}", then.2);
}

#[tokio::test]
async fn a_dry_run_counts_what_models_are_asked() {
    let bench = bench();
    // What the line itself would be refused for is no price.
    let (code, out, said) = bench.run(&["--dry-run"]).await;
    assert!(code == Some(2) && said.contains("--manipulator-upstream simulator"), "{out}{said}");
    let model = ["--manipulator-upstream", "simulator", "--dry-run"];
    let (code, out, said) = bench.run(&[&model[..], &["--format", "json"]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    let extent: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let extent = &extent["dry_run"];
    // An injected run, 200 calls of it, 3 tries each; beside them 2 clean runs, that run and 60 more in each arm. A repeat
    // delivers the same words: it asks nothing.
    assert_eq!((&extent["questions"], &extent["judgements"]), (&600.into(), &0.into()));
    assert_eq!(extent["calls"], (2 + 1 + 120) * 200 + 600);
    let (_, out, _) = bench.run(&model).await;
    assert!(out.contains(" model calls (of them 600 of models that rewrite), "), "{out}");
    let judged = Bench::new(&format!("{}{PIPELINE}{}", tasks(2), plans(&["corrupt-number"], "\"pipeline\"")));
    let file = judged.dir.path().join("c.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    let judge = text.replace("{ numeric = {} }", "{ numeric = {} }, { model_judge = { model = \"m\" } }");
    std::fs::write(&file, judge).expect("written");
    let (_, out, said) = judged.run(&["--dry-run"]).await;
    // 2 tasks, each with 2 clean runs, an injected one and at most 120 more; the judge is asked twice at most.
    assert!(out.contains(" model calls (of them 492 of a model that judges), "), "{out}{said}");
}

#[tokio::test]
async fn without_a_model_it_is_refused_before_a_run() {
    let bench = bench();
    let (code, _, said) = bench.run(&["--upstream", "simulator"]).await;
    assert_eq!((code, bench.out().exists()), (Some(2), false), "{said}");
    assert!(said.contains("fm-2.6-response") && said.contains("--manipulator-upstream simulator"), "{said}");
    let (code, _, said) = bench.run(&["--upstream", "simulator", "--manipulator-upstream", "simulator"]).await;
    assert_eq!(code, Some(0), "{said}");
}
