//! The lines that a first use found untrue, each as a row: a line is typed to the built program, and what it prints is checked.

use std::fs;

use crate::{
    program::{AEGIS, verb},
    suggested::{CAMPAIGN, CHECK, Runs, TASK},
};

/// A line that was printed and was not so, and what is printed now.
struct PrintedLine {
    /// What was printed, and what was so.
    was: &'static str,
    /// What is typed, for a shell.
    typed: &'static str,
    /// What must stand in what is printed.
    has: &'static [&'static str],
    /// What must not.
    lacks: &'static [&'static str],
}

/// What is typed in the directory that [`made`] makes. `PIPELINE` is the example program on the task, `ROOT` the project.
const LINES: &[PrintedLine] = &[
    PrintedLine {
        was: "`trace` suggested for an imported run, which it refuses",
        typed: "aegis show $IMPORTED; aegis attribute $IMPORTED --method rules; aegis show $IMPORTED --format json",
        has: &["its bodies are remade", "cannot be replayed, forked, traced or proven"],
        lacks: &["aegis trace"],
    },
    PrintedLine {
        was: "`--again` suggested for a run of `serve`, which holds no command",
        typed: "aegis attribute logs/served --method rules; aegis show logs/served --format json",
        has: &["aegis trace logs/served", "-- CMD"],
        lacks: &["--again"],
    },
    PrintedLine {
        was: "a record answered the first steps of a traced run, all of whose calls were live",
        typed: "aegis trace logs/failed --redraw --check false --again --budget runs=2 >trace.txt 2>&1; \
                aegis show logs/failed --format json; aegis show logs/failed",
        has: &["\"origin\":\"live\""],
        lacks: &["\"origin\":\"recorded\"", "200 recorded", "\"origin\":\"replaced\""],
    },
    PrintedLine {
        was: "the altered bytes of a repeat called live",
        typed: "aegis fork logs/planted --at 2 --check false --again --format json >fork.json; \
                aegis show $(grep -o '\"run_dir\":\"[^\"]*' fork.json | head -1 | cut -d'\"' -f4) --format json",
        has: &["\"origin\":\"altered_again\""],
        lacks: &[],
    },
    PrintedLine {
        was: "imported replies: masked or cut, live, answered with 200",
        typed: "aegis show $IMPORTED --step 0; aegis show $IMPORTED --format json | grep -o '\"origin\":\"[a-z]*\"'; \
                aegis import --from whowhen ww/1.json --out imported-rows; cat imported-rows/dataset.jsonl",
        has: &["(remade from a trace)", "\"origin\":\"remade\""],
        lacks: &["masked", "\"origin\":\"live\"", "\"status\":200"],
    },
    PrintedLine {
        was: "a run's seconds counted until `serve` ended, over a second after the last call",
        typed: "aegis runs logs --format json | tr '{' '\\n' | grep '\"run\":\"served\"' | grep -o '\"seconds\":[0-9.]*'",
        has: &["\"seconds\":0."],
        lacks: &["\"seconds\":1", "\"seconds\":2"],
    },
    PrintedLine {
        was: "`nothing was executed for it` of a planted run that a trace had executed",
        typed: "aegis trace logs/planted --redraw --again --budget runs=4 >trace.txt 2>&1; aegis show logs/planted",
        has: &["a trace executed "],
        lacks: &["nothing was executed for it"],
    },
    PrintedLine {
        was: "ready-made plans said to be taken by name, and not read",
        typed: "aegis campaign ready.toml --dry-run --manipulator-upstream simulator; aegis plan check fm-1.1-request; \
                aegis plan ready --help",
        has: &["nothing was run: at most", "RESULT  ok"],
        lacks: &["cannot read"],
    },
    PrintedLine {
        was: "`RESULT ok` of a dry run whose line is refused",
        typed: "aegis campaign ready.toml --dry-run; aegis trace logs/served --redraw --check false --dry-run -- PIPELINE; \
                aegis campaign ready.toml --out nowhere --resume --dry-run --manipulator-upstream simulator",
        has: &["no model is named", "which nothing you configured names", "nowhere"],
        lacks: &["RESULT  ok"],
    },
    PrintedLine {
        was: "a trace's `at most` that it exceeded",
        typed: "aegis trace logs/blind --twin logs/passed --redraw --check false --dry-run -- PIPELINE",
        has: &["at most, whatever the model says: ", "where none makes more calls than were recorded"],
        lacks: &["at most 51 executions"],
    },
    PrintedLine {
        was: "a rule `$schema` that nobody wrote, of a check with `tools` and `rewrite_calls`",
        typed: "aegis plan check calls.toml",
        has: &["1 check passed"],
        lacks: &["$schema", "is not understood"],
    },
    PrintedLine {
        was: "one evidence with two numbers: e in the trace, and another in label.json and `show`",
        typed: "aegis trace logs/blind --twin logs/passed --check \"CHECK\" --dataset kept --tasks tasks.jsonl --task t \
                -- PIPELINE >trace.txt; cat trace.txt; \
                aegis show logs/blind; said() { tr -d ' \\n' <$1 | grep -o '\"e\":[0-9.]*,\"target\":[0-9.]*' | sort -u; }; \
                said logs/blind/label.json >label.e; said logs/blind/trace.json >trace.e; \
                grep -qxFf label.e trace.e && echo equal evidence",
        has: &["equal evidence", "a step is named at e 100,", " of 100 in "],
        lacks: &["of 200", "of 300"],
    },
    PrintedLine {
        was: "the label of a natural error as that of an injection, delivered by the operator `counterfactual`",
        typed: "aegis run --upstream simulator --check \"grep -q 'ANSWER: 94'\" --run natural -- PIPELINE; \
                printf '%s' '{\"step\": 2, \"reply\": \"APPROVE\\nANSWER: 94\"}' >fix.jsonl; \
                aegis trace logs/natural --check \"grep -q 'ANSWER: 94'\" --corrections fix.jsonl -- PIPELINE; \
                for run in natural blind; do tr -d ' \\n' <logs/$run/label.json; aegis show logs/$run; done; aegis lint kept; \
                COLUMNS=300 aegis runs logs; aegis show logs/blind --format json | grep -o '\"label\":{.*\"no_label\"'; \
                grep -o '\"errors\":.[^]]*' kept/dataset.jsonl",
        has: &[
            "\"origin\":\"natural\"",
            "\"shown_by\":\"counterfactual\"",
            "verified: natural error of critic at step 2 (response), shown by a counterfactual",
            "verified natural error of critic at 2",
            // It begins like a run in which the words were planted.
            "\"origin\":\"inherited\"",
            "verified: inherited error of solver at step 1 (response), shown by a counterfactual",
            "verified inherited error of solver at 1",
            "nothing found",
        ],
        lacks: &["\"injection\"", "\"delivered\"", "\"operator\"", ": by solver"],
    },
    PrintedLine {
        was: "the page blames the commitment, and each step whose correction heals the run",
        typed: "aegis view logs/blind --bundle page.html && cat page.html",
        has: &[
            "the commitment: after it the failure stands",
            "flips the outcome",
            "inherited error",
            ", shown by a counterfactual",
        ],
        lacks: &["'blamed", "blamed: "],
    },
    PrintedLine {
        was: "`max_calls` left at 200 though the recorded run made few calls, and the bounds that follow",
        typed: "aegis init mine --from logs/passed && cat mine/campaign.toml && aegis campaign mine/campaign.toml --dry-run",
        has: &["max_calls = 12   # of one run: 4 times the 3 model calls of the recorded one; the default is 200"],
        lacks: &["24600 model calls", "max_calls = 200"],
    },
    PrintedLine {
        was: "`name fewer runs` of a directory that holds no run",
        typed: "aegis view ww --bundle none.html",
        has: &["no run, campaign or dataset was found"],
        lacks: &["name fewer runs"],
    },
    PrintedLine {
        was: "a warm start that says nothing of runs that it did not fork",
        typed: "PYTHONHASHSEED=0 python3 ROOT/examples/warm/warm.py main.py -- python3 -W ignore main.py; \
                PYTHONHASHSEED=0 python3 ROOT/examples/warm/warm.py main.py -- true",
        has: &[
            "1 run was not forked but started anew: only `python3 main.py …` is forked, and there `python3 -W …` was typed",
            "no run was forked: the command never started `python3 main.py …`",
        ],
        lacks: &[],
    },
    PrintedLine {
        was: "two runs of which one got an edited request, and nothing of the edit",
        typed: "aegis diff logs/passed logs/asked; aegis diff logs/passed logs/asked --format json; \
                aegis view logs/passed logs/asked --bundle two.html && cat two.html",
        has: &["request as delivered", "\"sent\":[{", "An injection edited the request"],
        lacks: &["no difference"],
    },
    PrintedLine {
        was: "the system `captain-agent` of any file of Who&When's shape",
        typed: "aegis import --from whowhen ww/1.json --out rows && cat rows/dataset.jsonl",
        has: &["\"system\":\"\""],
        lacks: &["captain-agent"],
    },
    PrintedLine {
        was: "`customer\\'s` in a proposed roster, `&lt;` between backticks, and one of a thing as several",
        typed: "aegis agents logs/served --suggest; aegis agents logs/served; aegis reference pages && cat pages/configuration.md; \
                aegis retry logs/failed --check false --rounds 1 --again --dry-run; aegis import --from whowhen ww/1.json --out one; \
                aegis stats one",
        has: &[
            "the customer's",
            "`agent-<8 hex>`",
            "1 agent, 1 step\n",
            "hint: 1 has no name",
            "live calls in 1 round,",
            ", 1 failure\n",
        ],
        lacks: &["\\'s", "agent-&lt;", "1 agents", "1 steps", "1 rounds", "1 failures", "1 have"],
    },
];

/// Runs of all kinds beside those of [`Runs::make`], and the files that the lines read.
async fn made() -> (Runs, String) {
    let runs = Runs::make().await;
    let dir = runs.path();
    let program = ["--", AEGIS, "example", "pipeline", "--task", TASK];
    // The planted run as the program made it, without a word about the plan.
    let keep = ["fork", "logs/planted", "--at", "1", "--keep", "--check", CHECK, "--format", "json"];
    let (_, out, talk) = verb(dir, &[&keep[..], &program].concat()).await;
    let kept: serde_json::Value = serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {talk}"));
    let kept = kept["samples"][0]["run_dir"].as_str().expect("a directory").to_owned();
    fs::rename(runs.at(&kept), runs.at("logs/blind")).expect("renamed");
    // A request that the upstream got otherwise than it was asked.
    let edit = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nside = \"request\"\n\
        manipulator.replace_text = { find = \"12\", with = \"13\" }\n";
    fs::write(runs.at("asked.toml"), edit).expect("written");
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run", "asked", "--plan", "asked.toml"];
    let (_, out, talk) = verb(dir, &[&run[..], &program].concat()).await;
    assert!(runs.at("logs/asked").is_dir(), "{out}{talk}");
    let (code, out, talk) = verb(dir, &["import", "--from", "otlp", "t.jsonl", "--log-dir", "imported"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    let imported = fs::read_dir(runs.at("imported")).expect("a directory").flatten().map(|entry| entry.path());
    let imported = imported.filter(|path| path.join("run.json").is_file()).collect::<Vec<_>>().pop().expect("a run");
    files(&runs);
    (runs, imported.display().to_string())
}

/// The files that the lines read.
fn files(runs: &Runs) {
    let write = |name: &str, text: &str| fs::write(runs.at(name), text).expect("written");
    write("main.py", "print('hi')\n");
    write("ready.toml", &CAMPAIGN.replace("PLAN", "fm-1.1-request"));
    let calls = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"response\"\n\
        manipulator.rewrite_with_model = { instruction = \"Ask for another sum.\" }\n\n[[check]]\nagent = \"solver\"\ncall = 0\n\
        tools = [\"add\"]\nmessages = [\"system: Add.\", \"user: 1 + 2\"]\nreply = \"\"\nreply_calls = [\"add({\\\"a\\\":1,\\\"b\\\":2})\"]\n\
        rewrite_calls = [\"add({\\\"a\\\":1,\\\"b\\\":3})\"]\nexpect_calls = [\"add({\\\"a\\\":1,\\\"b\\\":3})\"]\n";
    write("calls.toml", calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_first_use_is_so() {
    let (runs, imported) = made().await;
    let mut untrue = Vec::new();
    for line in LINES {
        let typed = line.typed.replace("PIPELINE", &format!("'{AEGIS}' example pipeline --task '{TASK}'"));
        let typed = typed.replace("CHECK", CHECK).replace("ROOT", env!("CARGO_MANIFEST_DIR"));
        let (_, said) = runs.typed(&format!("IMPORTED='{imported}'; {typed}")).await;
        let missing = line.has.iter().filter(|words| !said.contains(**words)).map(|words| format!("lacks `{words}`"));
        let untold = line.lacks.iter().filter(|words| said.contains(**words)).map(|words| format!("holds `{words}`"));
        let wrong: Vec<String> = missing.chain(untold).collect();
        if !wrong.is_empty() {
            let said: String = said.chars().take(6000).collect();
            untrue.push(format!("{}\n  {}\n{said}", line.was, wrong.join("\n  ")));
        }
    }
    assert!(untrue.is_empty(), "{} untrue:\n{}", untrue.len(), untrue.join("\n\n"));
    assert_eq!(LINES.len(), 20, "a row for each line of the examination");
}
