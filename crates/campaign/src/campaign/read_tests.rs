//! Campaign files, good and bad.

use std::{collections::BTreeMap, io};

use super::*;

struct Held(BTreeMap<&'static str, &'static str>);

impl Files for Held {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let inside = |path: &&&str| path.starts_with(directory);
        Ok(self.0.keys().filter(inside).filter_map(|path| Some(path.rsplit_once('/')?.1.to_owned())).collect())
    }
}

const END: &str =
    "[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.1\"\nwhen.always = true\nmanipulator.end_early = {}\n";
const CUT: &str =
    "[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = {}\n";

fn files() -> Held {
    Held(BTreeMap::from([
        (
            "t.jsonl",
            "{\"id\":\"a\",\"question\":\"q\",\"answer\":\"1\"}\n{\"id\":\"b\",\"question\":\"q\",\"answer\":\"2\"}\n",
        ),
        ("p/end.toml", END),
        ("p/cut.toml", CUT),
        ("p/bad.toml", "[[injection]]\n"),
    ]))
}

const GOOD: &str = "tasks.file = \"t.jsonl\"\nverify.checks = [{ exact = {} }]\n[[system]]\nname = \"s\"\ncommand = [\"run\", \"{question}\"]\n[[plan]]\nfile = \"p/end.toml\"\n";

#[test]
fn a_small_file_means_what_it_says() {
    let campaign = parse(GOOD, "maths.toml", &files()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (campaign.name.as_str(), campaign.tasks.len(), campaign.clean, campaign.repeats_itself),
        ("maths", 2, 2, false)
    );
    assert_eq!((campaign.plans[0].name.as_str(), campaign.plans[0].systems.as_slice()), ("end", &[0][..]));
}

#[test]
fn a_plan_is_listed_once_a_system() {
    let twice = format!("{GOOD}[[plan]]\nfile = \"p/end.toml\"\n");
    let error = parse(&twice, "c.toml", &files()).expect_err("twice").to_string();
    assert!(error.contains("plan `end` is listed before as `end`: expected it once, with `repeats`"), "{error}");
    let two = GOOD.replace("[[plan]]", "[[system]]\nname = \"t\"\ncommand = [\"run\"]\n[[plan]]\nsystems = [\"s\"]");
    let apart = format!("{two}[[plan]]\nfile = \"p/end.toml\"\nsystems = [\"t\"]\n");
    assert_eq!(parse(&apart, "c.toml", &files()).unwrap_or_else(|error| panic!("{error}")).plans.len(), 2);
}

#[test]
fn templates_are_found_and_narrowed() {
    let text = "tasks.file = \"t.jsonl\"\nverify.checks = [{ exact = {} }]\n[[system]]\nname = \"s\"\ncommand = [\"run\"]\n\
                [sample]\ntemplates = [\"p/[a-z]*.toml\", \"p/*n*.toml\", \"p/cut.toml\"]\nmodes = [\"FM-2.6\"]\nper_task = 3\n";
    let error = parse(text, "c.toml", &files()).expect_err("a bad pattern").to_string();
    assert!(error.contains("no file of `p` is named `[a-z]*.toml`"), "{error}");
    let campaign = parse(&text.replace("\"p/[a-z]*.toml\", ", ""), "c.toml", &files());
    let sample = campaign.unwrap_or_else(|error| panic!("{error}")).sample.expect("a sample");
    let names: Vec<_> = sample.templates.iter().map(|planting| planting.name.as_str()).collect();
    assert_eq!((names, sample.per_task), (vec!["cut"], 3));
    assert_eq!(sample.templates[0].injection.get("side").and_then(toml::Value::as_str), Some("response"));
}

#[test]
fn ready_made_plans_are_taken_by_name() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("t.jsonl"), "{\"id\":\"a\",\"question\":\"q\",\"answer\":\"1\"}\n")
        .expect("written");
    let beside = crate::campaign::PlanFolder(dir.path().to_owned());
    let planned = GOOD.replace("p/end.toml", "corrupt-number");
    let campaign = parse(&planned, "c.toml", &beside).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(campaign.plans[0].name, "corrupt-number");
    let (head, _) = GOOD.split_once("[[plan]]").expect("a plan");
    let sampled = |templates: &str| {
        let text = format!("{head}[sample]\ntemplates = [{templates}]\nper_task = 1\n");
        let campaign = parse(&text, "c.toml", &beside).unwrap_or_else(|error| panic!("{error}"));
        campaign.sample.expect("a sample").templates
    };
    assert_eq!(sampled("\"fm-1.1-request\"")[0].name, "fm-1.1-request");
    let modes: std::collections::BTreeSet<_> =
        sampled("\"mast\"").into_iter().map(|planting| planting.mode.expect("a mode").code()).collect();
    assert_eq!(modes.len(), 14, "{modes:?}");
    let error = parse(&GOOD.replace("p/end.toml", "no-such"), "c.toml", &beside).expect_err("no such plan");
    assert!(error.to_string().contains("cannot read `no-such`"), "{error}");
}

#[test]
fn the_schema_beside_the_examples_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/campaigns/campaign.schema.json");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let current = serde_json::to_string_pretty(&crate::campaign::schema()).expect("serialises") + "\n";
    assert!(written == current, "write it anew: `aegis campaign schema > examples/campaigns/campaign.schema.json`");
}

#[test]
fn each_problem_has_its_place() {
    for (from, to, said) in [
        ("tasks.file", "task.file", "c.toml:1:1: unknown key `task`"),
        ("t.jsonl", "u.jsonl", "c.toml:1:14: cannot read `u.jsonl`"),
        ("{question}", "{qestion}", "c.toml:5:19: unknown placeholder `{qestion}`: did you mean `{question}`?"),
        ("{question}", "{answer}", "would tell the system what is right"),
        ("name = \"s\"\n", "", "the system has no `name`"),
        ("p/end.toml", "p/bad.toml", "p/bad.toml:1:1: the injection has no `agent`"),
        ("[[plan]]\nfile", "[[plan]]\nsystems = [\"t\"]\nfile", "c.toml:7:12: no system is called `t`"),
        ("[[system]]", "[system]", "write `[[system]]`, with two brackets"),
        ("[[plan]]", "[clean]\nrepeats = 0\n[[plan]]", "`repeats` is 0"),
        ("[[plan]]", "[controls]\nrepeats = 2\n[[plan]]", "`[controls]` is no more"),
        ("[[plan]]", "[proof]\nalpha = 1.5\n[[plan]]", "`alpha` is 1.5: expected a number above 0 and below 1"),
        ("[[plan]]", "[proof]\nrepeatble = true\n[[plan]]", "repeatable"),
        ("[[plan]]", "[budget]\nmoney = 1.0\n[[plan]]", "no `[[price]]` is given"),
        ("verify.checks = [{ exact = {} }]\n", "", "the campaign has no `[verify]`"),
        ("{ exact = {} }", "{ exat = {} }", "did you mean `exact`?"),
        ("[{ exact = {} }]", "[]", "`checks` is empty"),
        ("[[plan]]", "[dataset]\nsplits = { test = 2.0 }\n[[plan]]", "no shares of one whole"),
        ("[[plan]]", "[budget]\nmony = 1.0\n[[plan]]", "did you mean `money`?"),
        ("[[plan]]", "[[price]]\nmodel = \"*\"\ninput = -1.0\noutput = 1.0\n[[plan]]", "a price is an amount"),
        ("name = \"s\"", "name = \"s\"\ntimeout_s = -3.0", "expected seconds above 0"),
        ("tasks.file", "tasks.ids = [\"aa\"]\ntasks.file", "no task is called `aa`"),
        ("tasks.file", "tasks.first = 0\ntasks.file", "`first` is 0"),
        ("tasks.file", "format = 2\ntasks.file", "this build reads format 1"),
        ("[[plan]]\nfile = \"p/end.toml\"", "[sample]\nper_task = 1", "the sample has no `templates`"),
        ("[[plan]]\nfile = \"p/end.toml\"", "", "the campaign has no `[[plan]]` or `[sample]`"),
        (
            "[[plan]]\nfile = \"p/end.toml\"",
            "[sample]\ntemplates = [\"p/cut.toml\"]\nmodes = [\"FM-1.1\"]",
            "no template plants",
        ),
        (
            "[[plan]]\nfile = \"p/end.toml\"",
            "[sample]\ntemplates = [\"p/cut.toml\"]\nmodes = [\"FM-9.1\"]",
            "unknown failure mode",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = parse(&GOOD.replace(from, to), "c.toml", &files()).expect_err(to).to_string();
        assert!(error.contains(said), "{to}:\n{error}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let text = GOOD
        .replace("{question}", "{x}")
        .replace("p/end.toml", "p/none.toml")
        .replace("tasks.file", "seeed = 1\ntasks.file");
    let error = parse(&text, "c.toml", &files()).expect_err("three").to_string();
    assert_eq!(error.matches("c.toml:").count(), 3, "{error}");
}

#[test]
fn a_list_of_checkers_that_cannot_be_read_is_not_said_to_be_empty() {
    let wrong = GOOD.replace("[{ exact = {} }]", "[{ command = { argv = [\"x\"] } }]");
    let error = parse(&wrong, "c.toml", &files()).expect_err("unknown key").to_string();
    assert!(error.contains("unknown key `argv`") && !error.contains("is empty"), "{error}");
    let empty = GOOD.replace("[{ exact = {} }]", "[]");
    let error = parse(&empty, "c.toml", &files()).expect_err("no checker").to_string();
    assert!(error.contains("`checks` is empty"), "{error}");
}
