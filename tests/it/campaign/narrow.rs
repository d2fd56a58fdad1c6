//! Which of two planted errors a failure needs, of systems whose truth is known: a program that reads two marks in what its agents
//! said, and whose outcome is scripted for each set of marks. What is needed is never called needless.

use std::fs;

use serde_json::Value;

use super::{Bench, json, tasks};
use crate::program::aegis;

/// The mark that an edit leaves in the words of an agent.
fn mark(agent: &str, find: &str, with: &str) -> String {
    format!(
        "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nside = \"response\"\n\
         manipulator.replace_text = {{ {find}, with = \"{with}\" }}\n"
    )
}

/// How runs of a system end that hold only the planner's mark, only the critic's, and both: a letter each for a run that passes, fails
/// or crashes, over and over.
#[derive(Debug, Clone, Copy)]
struct Script {
    planner_only: &'static str,
    critic_only: &'static str,
    both: &'static str,
}

/// The program: which marks are there, how often that was so, and what the script says of it.
const PROGRAM: &str = r#"
T=$("$1" example pipeline --task "$2" 2>&1); M=
case $T in *alpha*) M=alpha;; esac
case $T in *beta*) M="$M"beta;; esac
N=$(cat "n-$M" 2>/dev/null || echo 0); echo $((N + 1)) > "n-$M"
case $M in alpha) P=PLANNER;; beta) P=CRITIC;; alphabeta) P=BOTH;; *) P=p;; esac
L=$(printf %s "$P" | wc -c)
case $(printf %s "$P" | cut -c$((N % L + 1))) in p) echo 'ANSWER: 84';; f) echo 'ANSWER: 7';; *) exit 7;; esac
"#;

impl Script {
    fn system(self) -> String {
        let outcomes = [("PLANNER", self.planner_only), ("CRITIC", self.critic_only), ("BOTH", self.both)];
        let program = outcomes.iter().fold(PROGRAM.to_owned(), |text, (name, of)| text.replace(name, of));
        format!(
            "[[system]]\nname = \"s\"\ncommand = [\"sh\", \"-c\", '''{program}''', \"sh\", \"{{aegis}}\", \"{{question}}\"]\n\
             config = \"ROOT/examples/pipeline/aegis.toml\"\ntimeout_s = 60\n"
        )
    }
}

/// What a campaign of a system came to.
struct NarrowedFailure {
    bench: Bench,
    label: Value,
    said: String,
}

impl NarrowedFailure {
    async fn of(script: Script) -> Self {
        let text = format!("upstream = \"simulator\"\n{}{}[[plan]]\nfile = \"p.toml\"\n", tasks(1), script.system());
        let bench = Bench::new(&text);
        let planner = mark("planner", r"pattern = '\.\z'", " alpha.");
        let critic = mark("critic", "find = \"APPROVE\"", "APPROVE beta");
        fs::write(bench.dir.path().join("p.toml"), planner + &critic).expect("written");
        let (code, _, said) = bench.run(&["--jobs", "1"]).await;
        assert_eq!((code, bench.classes()), (Some(0), vec!["verified".to_owned()]), "{said}");
        let run = bench.report()["cells"][0]["run"].as_str().expect("an id").to_owned();
        let label = json(&bench.out().join("logs").join(run).join("label.json"));
        Self { bench, label, said }
    }

    fn necessity(&self) -> &[Value] {
        let necessity = self.label["evidence"]["necessity"].as_array().expect("a list");
        assert_eq!(necessity.len(), 2, "{}", self.label);
        necessity
    }

    /// What is shown of the planner's error and of the critic's.
    fn states(&self) -> [&str; 2] {
        [0, 1].map(|at| self.necessity()[at]["state"].as_str().expect("a state"))
    }

    /// The agents of a list of the label.
    fn agents(&self, list: &str) -> Vec<&str> {
        let list = self.label[list].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|one| one["agent"].as_str()).collect()
    }

    /// How many rows a format has of it, and why it has none.
    async fn exported(&self, format: &str) -> (u64, String) {
        let arguments = ["export", "out", "--to", format, "--out", format, "--clean", "none"];
        let done = aegis(self.bench.dir.path()).args(arguments).output().await.expect("it ran");
        // Where nothing goes out, that is a finding.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&done.stderr));
        let manifest = json(&self.bench.dir.path().join(format!("{format}.manifest.json")));
        (manifest["written"].as_u64().expect("a count"), manifest["left_out"].to_string())
    }
}

#[tokio::test]
async fn a_sole_cause_is_blamed_alone() {
    let found = NarrowedFailure::of(Script { planner_only: "f", critic_only: "p", both: "f" }).await;
    assert_eq!(found.states(), ["necessary", "not_needed"], "{}", found.label);
    assert_eq!((found.agents("errors"), found.agents("others")), (vec!["planner"], vec!["critic"]));
    assert_eq!(found.exported("whowhen").await.0, 1);
    assert!(found.said.contains("1 of 2 errors of 1 failures were necessary, 1 not needed"), "{}", found.said);
    // The same words everywhere.
    let row = found.bench.report()["cells"][0].clone();
    let words = row["needs"][1].as_str().expect("words");
    assert!(words.starts_with("not needed: injection 1 at critic: e ") && words.contains("excludes an effect of"));
    let run = format!("logs/{}", row["run"].as_str().expect("an id"));
    let shown = aegis(&found.bench.out()).args(["show", &run]).output().await.expect("it ran").stdout;
    assert!(String::from_utf8_lossy(&shown).contains(words), "{words}");
    each_error_has_runs_with_all_of_its_own(&found);
    a_label_of_an_earlier_version_clears_nobody_on_three_runs(&found, &run).await;
}

/// The runs with all errors are made anew, in turn with those without one of them: none of those of the failure as a whole counts.
fn each_error_has_runs_with_all_of_its_own(found: &NarrowedFailure) {
    let mut with_all = found.label["evidence"]["executed"]["treated"]["failed"].as_u64().expect("a count");
    for one in found.necessity() {
        let arm = |name: &str| ["passed", "failed"].map(|what| one["executed"][name][what].as_u64().expect("a count"));
        assert_eq!(arm("null").iter().sum::<u64>(), arm("treated").iter().sum::<u64>(), "{one}");
        with_all += arm("treated").iter().sum::<u64>();
    }
    // The first run with both is plain, and none of them.
    let ran = fs::read_to_string(found.bench.dir.path().join("n-alphabeta")).expect("a count");
    assert_eq!(ran.trim(), (1 + with_all).to_string(), "{}", found.label);
}

async fn a_label_of_an_earlier_version_clears_nobody_on_three_runs(found: &NarrowedFailure, run: &str) {
    let mut label = found.label.clone();
    for (one, necessary) in label["evidence"]["necessity"].as_array_mut().expect("a list").iter_mut().zip([true, false])
    {
        let one = one.as_object_mut().expect("an object");
        one.retain(|name, _| !["state", "exclusion"].contains(&name.as_str()));
        one.insert("necessary".to_owned(), necessary.into());
    }
    label["evidence"]["necessity"][1]["executed"]["null"]["failed"] = 3.into();
    fs::write(found.bench.out().join(run).join("label.json"), label.to_string()).expect("written");
    let shown =
        aegis(&found.bench.out()).args(["show", run, "--format", "json"]).output().await.expect("it ran").stdout;
    let shown: Value = serde_json::from_slice(&shown).expect("JSON");
    let agents = |list: &str| shown["label"][list].as_array().map(|all| all[0]["agent"].clone());
    assert_eq!(["errors", "others", "not_shown"].map(agents), [Some("planner".into()), None, Some("critic".into())]);
}

#[tokio::test]
async fn what_makes_the_program_crash_when_it_is_left_out_is_not_cleared() {
    let found = NarrowedFailure::of(Script { planner_only: "ccpcp", critic_only: "p", both: "f" }).await;
    assert_eq!(found.states(), ["necessary", "not_shown"], "{}", found.label);
    let lists = ["errors", "others", "not_shown"].map(|list| found.agents(list));
    assert_eq!(lists, [vec!["planner"], vec![], vec!["critic"]]);
    let (written, why) = found.exported("whowhen").await;
    assert!(written == 0 && why.contains("another planted error is not shown to be needless"), "{why}");
    assert_eq!(found.exported("sft").await.0, 1, "sets take what is necessary");
}

#[tokio::test]
async fn an_error_without_which_more_than_half_of_the_runs_fail_is_not_cleared() {
    let found = NarrowedFailure::of(Script { planner_only: "ffpfp", critic_only: "fffpp", both: "f" }).await;
    assert_eq!(found.states(), ["necessary"; 2], "{}", found.label);
    assert_eq!(found.agents("errors"), ["planner", "critic"]);
    let (written, why) = found.exported("agentracer").await;
    assert!(written == 0 && why.contains("a failure of several errors"), "{why}");
}

#[tokio::test]
async fn errors_that_each_add_half_of_the_failures_are_not_cleared() {
    let found = NarrowedFailure::of(Script { planner_only: "fppfp", critic_only: "pfpfp", both: "ffffp" }).await;
    assert!(!found.states().contains(&"not_needed"), "{}", found.label);
    assert_ne!(found.label["evidence"]["overdetermined"], true);
    assert_eq!(found.exported("whowhen").await.0, 0, "neither is the one");
}

#[tokio::test]
async fn errors_of_which_either_is_enough_are_overdetermined() {
    let found = NarrowedFailure::of(Script { planner_only: "f", critic_only: "f", both: "f" }).await;
    assert_eq!(found.states(), ["not_needed"; 2], "{}", found.label);
    assert_eq!((found.agents("errors").len(), &found.label["evidence"]["overdetermined"]), (2, &true.into()));
    let needs = found.bench.report()["cells"][0]["needs"].clone();
    assert!(needs[2].as_str().is_some_and(|words| words.starts_with("overdetermined: ")), "{needs}");
}

/// A program that stops falling for both marks once the failure is shown: what comes after says nothing of either.
#[tokio::test]
async fn a_system_that_changes_meanwhile_has_no_error_blamed_for_it() {
    let both = "fffffffpppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp";
    let found = NarrowedFailure::of(Script { planner_only: "f", critic_only: "p", both }).await;
    assert_eq!(found.states(), ["not_shown"; 2], "{}", found.label);
    assert_eq!((found.agents("errors").len(), found.agents("not_shown").len()), (0, 2));
    let (written, why) = found.exported("sft").await;
    assert!(written == 0 && why.contains("of none of which it is shown that it is needed"), "{why}");
    assert!(found.said.contains("0 of 2 errors of 1 failures were necessary, 2 not shown"), "{}", found.said);
}
