//! Tests of [`super`]: what a plan may say, and what each mistake is answered with.

use proptest::prelude::*;

use super::*;

const VALID: &str = r#"
format = 1
seed = 7

[[injection]]
agent = ["solver", "debater-*"]
failure_mode = "FM-2.6"
when = { call = [0, 2], contains = "(?i)sum", max_times = 1 }
manipulator.corrupt_number = { which = "last" }

[[injection]]
agent = "critic"
failure_mode = "FM-1.1"
when.probability = 0.5
side = "request"
manipulator.replace_text = { find = "x", with = "y" }

[[injection]]
agent = "*"
when.every = 3
fault.status = { code = 429, attempts = "first" }

[[check]]
agent = "solver"
messages = ["system: s", "user: What is the sum?"]
reply = "I add both. So it is 12."
expect_changed = true
"#;

fn injection(lines: &str) -> String {
    format!("[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.1\"\nwhen.call = 0\n{lines}")
}

/// Every problem as `line:column: message (hint)`.
fn problems(text: &str) -> Vec<String> {
    let Err(error) = parse(text, "p.toml") else { return Vec::new() };
    let shown = error.to_string();
    let shown = shown.replace("\n\nerror: ", "\n\u{0}");
    let blocks = shown.split('\u{0}').map(|block| {
        let first = block.lines().next().unwrap_or_default().trim_start_matches("p.toml:");
        match block.lines().find_map(|line| line.strip_prefix("hint: ")) {
            Some(hint) => format!("{first} ({hint})"),
            None => first.to_owned(),
        }
    });
    blocks.collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

#[test]
fn a_whole_plan_reads() {
    let plan = parse(VALID, "p.toml").expect("valid");
    assert_eq!((plan.seed, plan.injections.len(), plan.checks.len()), (7, 3, 1));
    let first = plan.injections.first().expect("three");
    assert_eq!(first.when.call, Some(vec![0, 2]));
    assert_eq!(first.name, "corrupt_number");
    assert!(matches!(first.operator, Operator::Manipulator { side: Side::Response, .. }));
    assert!(first.agents.matches("debater-9") && !first.agents.matches("judge"));
    assert_eq!(plan.digest, blake3::hash(VALID.as_bytes()).to_hex().to_string());
    assert_eq!(plan.run_checks().first().map(|report| report.failures.clone()), Some(Vec::new()));
    assert_eq!(parse("", "p").expect("an empty plan plants nothing").injections.len(), 0);
}

#[test]
fn the_message_has_the_line_the_caret_and_a_hint() {
    let text = "seed = 7\n[[injection]]\nmanipulator.drop_histry = { keep_last = 1 }\nagent = \"a\"\n\
                failure_mode = \"FM-1.4\"\nwhen.call = 2\n";
    let error = parse(text, "plans/mine.toml").expect_err("a typo");
    let count = manipulator::listed().len();
    assert_eq!(
        format!("error: {error}"),
        format!(
            "error: plans/mine.toml:3:13: unknown manipulator `drop_histry`\n  |\n\
         3 | manipulator.drop_histry = {{ keep_last = 1 }}\n  |             ^^^^^^^^^^^\n\
         hint: did you mean `drop_history`? `aegis plan list` lists all {count}"
        )
    );
}

#[test]
fn types_and_names() {
    let faults = crate::fault::listed().len();
    check("seeds = 1", &["1:1: unknown key `seeds` (did you mean `seed`?)"]);
    check("seed = -1", &["1:8: invalid value: integer `-1`: expected a whole number from 0"]);
    check("[[injections]]\n", &["1:3: unknown key `injections` (did you mean `injection`?)"]);
    check("[injection]\n", &["1:1: `injection` is not a list of tables (write `[[injection]]`, with two brackets)"]);
    check("injection = [1]", &["1:14: expected a table"]);
    check("seed = \n", &["1:8: expected a value"]);
    for bare in ["seven", "ten", "1x", "null", "True", "FM-2.6"] {
        check(&format!("seed = {bare}\n"), &["1:8: expected a number, `true`, `false` or text in quotes"]);
    }
    check("seed = 1\nseed = 2", &["2:1: duplicate key"]);
    check(
        &injection("fault.latncy = { ms = 1 }"),
        &[
            "3:16: a fault has no `failure_mode`: it is no error of an agent (leave it out)",
            &format!("5:7: unknown fault `latncy` (did you mean `latency`? `aegis plan list` lists all {faults})"),
        ],
    );
}

#[test]
fn parameters() {
    check(
        &injection("manipulator.end_early = { txt = \"x\" }"),
        &["5:27: unknown parameter `txt` of `end_early` (did you mean `text`?)"],
    );
    check(
        &injection("manipulator.negate_verdict = { x = 1 }"),
        &["5:32: unknown parameter `x` of `negate_verdict` (it has none)"],
    );
    check(
        &injection("manipulator.drop_history = {}"),
        &["5:1: `drop_history`: expected `keep_last` or `keep_first`: at least one message is kept"],
    );
    check(
        &injection("manipulator.drop_history = { keep_last = \"1\" }"),
        &["5:42: invalid type: string \"1\": expected a whole number from 1"],
    );
    check(&injection("manipulator.rename_tool = {}"), &["5:27: missing parameter `tool` of `rename_tool`"]);
    check(
        &injection("manipulator.drop_history.keep_last = 0"),
        &["5:38: invalid value: integer `0`: expected a whole number from 1"],
    );
    check(
        &injection("manipulator = \"end_early\""),
        &["5:15: expected exactly one name with a table of parameters, as in `end_early = {}`"],
    );
    check(
        &injection("manipulator = { end_early = {}, negate_verdict = {} }"),
        &["5:15: expected exactly one name with a table of parameters, as in `end_early = {}`"],
    );
    check(
        &injection("manipulator.end_early = {}\nwhen.cal = 1"),
        &["6:6: unknown condition `cal` (did you mean `call`?)"],
    );
    check(
        &injection("manipulator.end_early = {}\nside = \"reply\""),
        &["6:8: unknown value `reply` of `side` (expected one of `request`, `response`)"],
    );
    check(
        &injection("manipulator.end_early = {}").replace("when.call = 0", "when = \"call 0\""),
        &[
            "4:8: invalid type: string \"call 0\": expected a table (for example `when.call = 0`, its first call, or `when.always = true`)",
        ],
    );
    check(
        "[[injection]]\nagent = \"a\"\nwhen.call = 0\nfault.cut = { at = { after_frame = 2 } }",
        &["4:22: unknown value `after_frame` of `at` (did you mean `after_frames`?)"],
    );
    check(
        &injection("manipulator.corrupt_number = { which = \"firs\" }"),
        &["5:40: unknown value `firs` of `which` (did you mean `first`?)"],
    );
    check(
        &injection("manipulator.truncate_output = { keep = 1.5 }"),
        &["5:40: `1.5` is out of range: expected a number from 0 to less than 1"],
    );
    check(
        &injection("manipulator.replace_text = { pattern = \"a(\", with = \"\" }\nside = \"request\""),
        &["5:40: the pattern is not a regular expression: unclosed group"],
    );
    check(
        "format = 2\nfuture = true",
        &["1:10: plan format 2 is not one that this build reads (this build reads format 1)"],
    );
}

#[test]
fn meaning() {
    let early = "manipulator.end_early = {}";
    check(
        "[[injection]]",
        &[
            "1:1: the injection has no `agent`",
            "1:1: the injection has no `when` (for example `when.call = 0`, its first call, or `when.always = true`)",
            "1:1: the injection has no `manipulator` and no `fault` (`aegis plan list` lists all of them)",
        ],
    );
    check(
        &injection("manipulator.end_early = {}\nfault.latency.ms = 1"),
        &["6:1: the injection has both a `manipulator` and a `fault` (write two injections: each does one thing)"],
    );
    check(
        &injection(early).replace("failure_mode = \"FM-3.1\"\n", ""),
        &[
            "1:1: the injection has no `failure_mode` (say which error it plants: FM-1.1 to FM-3.3, for example `FM-2.6`)",
        ],
    );
    check(
        &injection(early).replace("FM-3.1", "FM-3.11"),
        &["3:16: unknown failure mode `FM-3.11` (did you mean `FM-3.1`?)"],
    );
    check(
        &injection(early).replace("\"a\"", "\" \""),
        &["2:9: agent name ` ` is not allowed: expected 1 to 128 printable characters"],
    );
    check(&injection(early).replace("\"a\"", "[]"), &["2:9: `agent` is empty: expected a name"]);
    check(&injection("manipulator.end_early = {}\nside = \"request\""), &["6:8: `end_early` edits the response only"]);
    check(
        &injection("manipulator.replace_text = { find = \"a\", with = \"b\" }"),
        &[
            "5:1: `replace_text` edits either side, and `side` is not given (add `side = \"request\"` or `side = \"response\"`)",
        ],
    );
    check(
        &injection("manipulator.drop_history.keep_last = 1\nchoice = 1"),
        &["6:10: `choice` is one of the answers of a reply, and this injection edits none"],
    );
    check(
        &injection("manipulator.drop_history.keep_last = 1\nretell = true"),
        &["6:10: `retell` is about an edited reply, and this injection edits none"],
    );
    check(
        &injection("manipulator.corrupt_number = { by = 1, how = \"sign\" }"),
        &["5:1: `corrupt_number`: both `by` and `how` are given: expected one of them"],
    );
    check(
        "[[injection]]\nagent = \"a\"\nwhen.call = 0\nside = \"request\"\nfault.latency = {}",
        &[
            "4:8: a fault has no `side` (leave it out)",
            "5:1: `latency`: expected one of `ms`, `uniform`, `normal` and `lognormal`",
        ],
    );
    check(
        "[[injection]]\nagent = \"a\"\nwhen.call = 0\nfault.status = { code = 429, headers = { a = \"b\\r\\nc\" } }",
        &["4:46: `b\\r\\nc` is not a header value: expected printable ASCII without line breaks"],
    );
}

#[test]
fn conditions() {
    for (when, expected) in [
        ("{}", "`when` holds no condition (for every call of the agent write `when.always = true`)"),
        ("{ call = [] }", "`call` is empty, so the injection never fires: expected a number"),
        ("{ every = 0 }", "`every` is 0: expected a whole number from 1"),
        ("{ max_times = 0 }", "`max_times` is 0: expected a whole number from 1"),
        ("{ probability = 1.5 }", "`probability` is 1.5: expected a number from 0 to 1"),
        ("{ probability = nan }", "`probability` is NaN: expected a number from 0 to 1"),
        ("{ probability = 0.0 }", "`probability` is 0, so the injection never fires"),
        ("{ always = false }", "`always` is false, so the injection never fires: expected `true`"),
        ("{ tool = \"\" }", "`tool` is empty: expected the name of a tool"),
        ("{ call = 5, first = 2 }", "the injection never fires: no `call` satisfies `every` and `first`"),
        ("{ call = [1, 3], every = 2 }", "the injection never fires: no `call` satisfies `every` and `first`"),
        ("{ contains = \"[\" }", "the pattern is not a regular expression: unclosed character class"),
        ("3", "invalid type: integer `3`: expected a table"),
    ] {
        let text = injection("manipulator.end_early = {}").replace("when.call = 0", &format!("when = {when}"));
        let seen = problems(&text);
        let [only] = seen.as_slice() else { panic!("{when}: {seen:?}") };
        assert!(only.starts_with("4:") && only.ends_with(expected), "{when}: {only}");
    }
}

#[test]
fn checks() {
    let with = |lines: &str| format!("[[check]]\nagent = \"a\"\nmessages = [\"user: x\"]\n{lines}");
    check("[[check]]\nexpect_changed = true", &["1:1: the check has no `agent`", "1:1: the check has no `messages`"]);
    check(
        &with(""),
        &[
            "1:1: the check expects nothing (give `expect`, `expect_contains`, `expect_calls`, `expect_changed`, `expect_tools`, `expect_question` or `expect_fault`)",
        ],
    );
    check(
        &with("expect = \"y\""),
        &[
            "4:10: an answer is expected, and the check has no `reply` (to expect messages, write a list: `expect = [\"user: …\"]`)",
        ],
    );
    check(&with("expect = [\"y\"]"), &["4:11: `y` is not a message: expected `role: text`, for example `user: hello`"]);
    check(&with("expect_fault = \"latenci\""), &["4:16: unknown fault `latenci` (did you mean `latency`?)"]);
    check(&with("expect_changed = 1"), &["4:18: invalid type: integer `1`: expected `true` or `false`"]);
}

#[test]
fn every_problem_of_a_file_is_reported_at_once() {
    let text = "sed = 1\n[[injection]]\nagnt = \"a\"\nfailure_mode = \"FM-9.9\"\nwhen = { cal = 1, evry = 2 }\n\
                manipulator.end_erly = {}\n[[injection]]\nagent = \"\"\nwhen.call = 0\nfailure_mode = \"FM-1.1\"\n\
                manipulator.replace_text = { fnd = 1, wth = 2 }\nside = 3\n[[check]]\nagent = \"a\"\nexpect_changed = 1\n";
    let found = problems(text);
    let places: Vec<&str> = found.iter().filter_map(|problem| problem.split(": ").next()).collect();
    assert_eq!(
        places,
        ["1:1", "2:1", "3:1", "4:16", "5:10", "5:19", "6:13", "8:9", "11:30", "11:39", "12:8", "13:1", "15:18"],
        "{found:#?}"
    );
}

#[test]
fn limits() {
    let long = format!("# {}\n", "x".repeat(SIZE_LIMIT));
    check(&long, &["1:1: the plan has 1048579 bytes: expected at most 1048576"]);
    let many = "[[injection]]\n".repeat(INJECTION_LIMIT + 1);
    check(&many, &["1001:1: the plan has 1001 injections: expected at most 1000"]);
    let deep = format!("a = {}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(problems(&deep).len(), 1);
}

#[test]
fn steps_must_be_resolved_before_a_run() {
    let text = injection("manipulator.end_early = {}").replace("when.call = 0", "when.step = 3");
    let plan = parse(&text, "p").expect("reads");
    let error = require_resolved(&plan, "p", None).expect_err("not resolved").to_string();
    // A verb is told of its own options alone.
    let hint = error.lines().last().unwrap_or_default();
    assert!(hint.contains("aim by `call`") && hint.contains("aegis fork RUN_DIR --plan FILE"), "{error}");
    let lent = require_resolved(&plan, "p", Some("--against RUN_DIR")).expect_err("not resolved").to_string();
    assert!(lent.contains("give one with `--against RUN_DIR`, or aim by `call`"), "{lent}");
    assert!(error.starts_with("p:4:1: `step` needs a recorded run to count in"), "{error}");
    let plain = parse(VALID, "p").expect("reads");
    assert_eq!(require_resolved(&plain, "p", None), Ok(()));
}

/// A valid plan with some of its bytes replaced, removed or doubled.
fn mutated() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, "\\PC|[\\[\\]{}=\".0-9\\n-]"), 1..6);
    edits.prop_map(|edits| {
        edits.into_iter().fold(VALID.to_owned(), |text, (at, how, new)| {
            let mut characters: Vec<String> = text.chars().map(String::from).collect();
            let at = at.index(characters.len().max(1));
            match (characters.get_mut(at), how) {
                (Some(old), 0) => *old = new,
                (Some(old), 1) => old.clear(),
                (Some(old), 2) => *old = old.repeat(3),
                (Some(old), _) => old.push_str(&new),
                (None, _) => {}
            }
            characters.concat()
        })
    })
}

fn survives(text: &str) {
    match parse(text, "p") {
        Ok(plan) => {
            let _ = (explain(&plan), plan.run_checks());
        }
        Err(error) => assert!(!error.problems.is_empty() && error.to_string().contains('^'), "{error}"),
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}|(\\[\\[(injection|check)\\]\\]\n|[a-z_]{1,8}(\\.[a-z_]{1,8})? ?= ?[\\PC&&[^\n]]{0,12}\n){0,8}") {
        survives(&text);
    }

    #[test]
    fn no_mutation_of_a_valid_plan_makes_it_panic(text in mutated()) {
        survives(&text);
    }
}

#[test]
fn a_call_of_a_tool_has_no_texts() {
    let plan = |edit: &str| {
        let text =
            format!("[[injection]]\ntool = \"add\"\nside = \"request\"\nwhen.always = true\nmanipulator.{edit}\n");
        parse(&text, "p").map(drop).map_err(|error| error.to_string())
    };
    let said = plan("corrupt_number = { by = 1 }").expect_err("refused");
    assert!(said.contains("a call of a tool has arguments alone") && said.contains("edit_tool_call"), "{said}");
    assert_eq!(plan("edit_tool_call = { set = { \"/b\" = 31 } }"), Ok(()));
    for edit in ["name = \"sub\"", "unknown_tool = true", "duplicate = true", "drop = true", "raw_arguments = \"{\""] {
        let said = plan(&format!("edit_tool_call = {{ {edit} }}")).expect_err("refused");
        assert!(said.contains("a message to a server of tools is one call"), "{edit}: {said}");
    }
}

#[test]
fn the_faults_that_labels_know_by_name_are_all() {
    let listed: Vec<&str> = crate::fault::listed().into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, crate::trajectory::FAULTS);
    assert!(crate::manipulator::listed().iter().any(|(name, ..)| *name == crate::trajectory::ALTERS_TOOL_RESULTS));
}
