//! Sets of science, of ten choices, of code with more tests, and of one's own, by hand-made rows in the published fields.

use serde_json::{Value, json};

use super::{
    tests::{function, import_text, lines, read, reasons, set},
    *,
};
use crate::{
    trajectory::Verdict::{self, Failure, Success, Unknown},
    verify::{Case, Surroundings},
};

async fn verdict(task: &Task, output: &str) -> (Verdict, String) {
    let case = Case { question: &task.question, expected: &task.answer, output };
    let found = task.check.as_ref().expect("a check").check(&case, &Surroundings::default()).await;
    (found.verdict, found.evidence)
}

async fn all(task: &Task, table: &[(&str, Verdict)]) {
    for (output, expected) in table {
        let (found, evidence) = verdict(task, output).await;
        assert_eq!(found, *expected, "{output}: {evidence}");
    }
}

#[tokio::test]
async fn problems_of_science() {
    let row = |problem: &str, number: &str, unit: &str| {
        json!({"problem_text": problem, "answer_latex": format!(" {number}"), "answer_number": number, "unit": unit, "source": "atkins",
            "problemid": " e1.1(a)", "comment": " ", "solution": "it gives the answer away"})
    };
    let rows = [
        row("How much pressure?", "50.7", r"$\mathrm{atm}$ "),
        row("How much energy?", "2.57", r"$10^{11} \mathrm{~J}$ "),
        row("How far?", "210", r"$\mathrm{~m}$ "),
        row("How much heat?", "+65.49", r"$\mathrm{kJ} \mathrm{mol}^{-1}$"),
        row("What is $q$?", "0", " "),
        row("How little momentum?", "6.6", r"$10^{-23} \mathrm{~kg} \mathrm{~m} \mathrm{~s}^{-1}$"),
        row("How long a path?", r"2 \pi", ""),
    ];
    let (imported, tasks) = import_text("scibench", "atkins.json", &json!(rows).to_string());
    let answers: Vec<&str> = tasks.iter().map(|task| task.answer.as_str()).collect();
    assert_eq!(answers, ["50.7", "2.57e11", "210 m", "65.49", "0", "6.6e-23"]);
    assert_eq!(reasons(&imported), [("no number in `answer_number`", 1)]);
    assert_eq!(tasks[0].question, r"How much pressure? The unit of the answer is $\mathrm{atm}$.");
    assert_eq!(tasks[1].question, r"How much energy? The unit of the answer is $\mathrm{~J}$.");
    assert_eq!((tasks[4].question.as_str(), &tasks[4].extra["subject"]), ("What is $q$?", &json!("atkins")));
    assert!(tasks.iter().all(|task| !serde_json::to_string(task).expect("JSON").contains("gives the answer away")));
    all(&tasks[0], &[("ANSWER: 51 atm", Success), (r"\boxed{49.9}", Success), ("ANSWER: 60", Failure)]).await;
    all(&tasks[1], &[(r"\boxed{2.6 \times 10^{11}}", Success), ("ANSWER: 2.57", Failure)]).await;
    all(&tasks[2], &[("ANSWER: 0.21 km", Success), ("ANSWER: 210", Success), ("ANSWER: 210 kg", Failure)]).await;
    all(&tasks[4], &[("ANSWER: 0", Success), ("ANSWER: 0.2", Failure)]).await;
    let small = [(r"\boxed{6.5 \times 10^{-23}}", Success), ("ANSWER: 6.6e-22", Failure), ("ANSWER: 0", Failure)];
    all(&tasks[5], &small).await;
}

#[tokio::test]
async fn larger_numbers() {
    let row =
        |input: &str, target: Value| json!({"input": input, "code": "def solution():\n    return 1", "target": target});
    let rows = [
        row("Ann has 3000001 nets?", json!(9_000_003.0)),
        row("And half?", json!(-0.5)),
        row("And none?", json!("many")),
    ];
    let (imported, tasks) = import_text("gsm-hard", "gsmhardv2.jsonl", &lines(&rows));
    let answers: Vec<&str> = tasks.iter().map(|task| task.answer.as_str()).collect();
    assert_eq!((answers, imported.terms.licence), (vec!["9000003", "-0.5"], "MIT"));
    assert_eq!(reasons(&imported), [("no number in `target`", 1)]);
    all(&tasks[0], &[("ANSWER: 9,000,003", Success), ("ANSWER: 9000103", Failure)]).await;
}

#[tokio::test]
async fn ten_choices() {
    let options = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let row = |id: u64, options: &[&str], answer: &str, index: u64| {
        json!({"question_id": id, "question": format!("Which, {id}?"), "options": options, "answer": answer, "answer_index": index,
            "cot_content": "the worked solution", "category": "math", "src": "stemez-1"})
    };
    let rows = [
        row(70, &options, "J", 9),
        row(71, &["one", "two", "three", "N/A"], "C", 2),
        row(72, &options[..3], "A", 1),
        row(73, &options[..3], "E", 4),
        row(74, &[options.as_slice(), &["eleven"]].concat(), "A", 0),
    ];
    let (imported, tasks) = import_text("mmlu-pro", "test.jsonl", &lines(&rows));
    assert_eq!(
        reasons(&imported),
        [
            ("`answer` and `answer_index` are not the same choice", 1),
            ("`answer` is none of the choices", 1),
            ("no list of choices in `options`", 1)
        ]
    );
    assert_eq!(
        (tasks[0].id.as_str(), tasks[0].answer.as_str(), &tasks[0].extra["subject"]),
        ("mmlu-pro-70", "J", &json!("math"))
    );
    assert!(tasks[0].question.ends_with("\nJ) ten") && tasks[1].question.ends_with("\nC) three"));
    all(&tasks[0], &[("The answer is (J).", Success), ("It is ten.", Success), ("ANSWER: I", Failure)]).await;
}

#[tokio::test]
async fn functions_with_more_tests() {
    let mut of_table = function();
    of_table["task_id"] = "HumanEval/8".into();
    let mut needs = function();
    needs["task_id"] = "HumanEval/9".into();
    needs["test"] = "import no_such_module_here as np\n\ndef check(candidate):\n    pass\n".into();
    let rows = [
        json!({"task_id": "HumanEval/7", "entry_point": "half", "prompt": "def half(x):\n    \"\"\" Half of x. \"\"\"\n",
            "canonical_solution": "    assert x >= 0\n    return [x / 2, 3]\n", "contract": "    assert x >= 0\n", "atol": 0,
            "base_input": [[4]], "plus_input": [[0.2], [7]]}),
        of_table,
        needs,
        json!({"task_id": "HumanEval/10", "entry_point": "f", "prompt": "def f(x):\n", "canonical_solution": "    return x\n",
            "base_input": [[1e300]], "plus_input": [], "atol": 0}),
        json!({"task_id": "HumanEval/11", "entry_point": "f", "prompt": "def f(x):\n", "canonical_solution": "    return x\n",
            "base_input": [1], "plus_input": [], "atol": 0}),
        json!({"task_id": "HumanEval/12", "entry_point": "f", "prompt": "def f(x):\n", "canonical_solution": "    raise ValueError\n",
            "base_input": [[1]], "plus_input": [], "atol": 0}),
    ];
    let (imported, tasks) = import_text("humanevalplus", "HumanEvalPlus.jsonl", &lines(&rows));
    assert_eq!((imported.tasks, imported.commands, imported.terms.licence), (4, 4, "Apache-2.0"));
    assert_eq!(
        reasons(&imported),
        [("an input holds a number too large to be read exactly", 1), ("an input is no list of arguments", 1)]
    );
    assert_eq!((tasks[0].id.as_str(), &tasks[0].extra["benchmark"]), ("humanevalplus-7", &json!("humanevalplus")));
    let table = [
        (tasks[0].answer.as_str(), Success),
        ("```python\ndef half(x):\n    return [0.5 * x, 3]\n```", Success),
        ("    return [x / 2, 3]", Success),
        ("    return [x // 2, 3]", Failure),
        ("    return (x / 2, 3)", Failure),
        ("I cannot", Failure),
    ];
    all(&tasks[0], &table).await;
    all(&tasks[1], &[(tasks[1].answer.as_str(), Success), ("def twice_all(xs):\n    return xs", Failure)]).await;
    all(&tasks[2], &[(tasks[2].answer.as_str(), Unknown)]).await;
    all(&tasks[3], &[(tasks[3].answer.as_str(), Unknown)]).await;
}

#[tokio::test]
async fn small_tasks_with_assertions() {
    let code = "def add(a, b):\r\n    return a + b";
    let rows = [
        json!({"task_id": 602, "text": "Write a function to add.", "code": code, "test_setup_code": "one = 1", "challenge_test_list": [],
            "test_list": ["assert add(one, 2) == 3", "assert add(-1, 1) == 0"]}),
        json!({"task_id": 603, "source_file": "x.ipynb", "prompt": "Write a function to take a root.", "code": "import math\ndef root(x):\n    return math.sqrt(x)",
            "test_imports": ["import math"], "test_list": ["assert math.isclose(root(4), 2.0)"]}),
        json!({"task_id": 604, "text": "No tests.", "code": code, "test_list": []}),
    ];
    let (imported, tasks) = import_text("mbpp", "mbpp.jsonl", &lines(&rows));
    assert_eq!(reasons(&imported), [("no list in `test_list`", 1)]);
    assert_eq!((tasks[0].id.as_str(), imported.terms.licence), ("mbpp-602", "CC-BY-4.0"));
    assert!(tasks[0].question.contains("assert add(one, 2) == 3") && !tasks[0].question.contains("return"));
    all(
        &tasks[0],
        &[(code, Success), ("```python\ndef add(a, b):\n    return a\n```", Failure), ("so be it", Failure)],
    )
    .await;
    all(&tasks[1], &[(tasks[1].answer.as_str(), Success), ("def root(x):\n    return x", Failure)]).await;
}

#[tokio::test]
async fn small_tasks_with_more_tests() {
    let script = "inputs = [[(1, 2)], [()]]\nresults = [3, 0]\nfor i, (inp, exp) in enumerate(zip(inputs, results)):\n    assert total(*inp) == exp\n";
    let plus = |id: &str, entry: &str| {
        json!({"task_id": id, "entry_point": entry, "prompt": "\"\"\"\nWrite a function to find what is in both.\n\"\"\"\n",
            "canonical_solution": format!("\ndef {entry}(a, b):\n    return list(set(a) & set(b))\n"), "contract": "", "assertion": "",
            "base_input": [[[1, 2], [2, 3]]], "plus_input": [[[3, 4, 5], [5, 4]]], "atol": 0})
    };
    let rows = [
        json!({"task_id": 605, "prompt": "Write a function to sum.", "code": "def total(xs):\n    return sum(xs)", "source_file": "x.ipynb",
            "test_imports": [], "test_list": ["assert total((1, 2)) == 3"], "test": script}),
        plus("Mbpp/249", "intersection_array"),
        plus("Mbpp/2", "similar_elements"),
        plus("Mbpp/295", "sum_div"),
    ];
    let (imported, tasks) = import_text("mbppplus", "MbppPlus.jsonl", &lines(&rows));
    assert_eq!(imported.left_out.len(), 2, "{:?}", imported.left_out);
    assert!(imported.left_out.keys().all(|why| why.contains("evalplus/mbppplus")));
    assert_eq!((tasks[0].id.as_str(), tasks[1].id.as_str()), ("mbppplus-605", "mbppplus-249"));
    assert!(tasks[1].question.starts_with("Write a function to find what is in both.\n"));
    all(&tasks[0], &[(tasks[0].answer.as_str(), Success), ("def total(xs):\n    return 3", Failure)]).await;
    let other = "def intersection_array(a, b):\n    return sorted((x for x in a if x in b), reverse=True)";
    all(
        &tasks[1],
        &[
            (tasks[1].answer.as_str(), Success),
            (other, Success),
            ("def intersection_array(a, b):\n    return a", Failure),
        ],
    )
    .await;
}

#[test]
fn rows_of_ones_own_in_every_layout() {
    let dir = tempfile::tempdir().expect("a directory");
    let row = json!({"prompt": "Which is odd?", "gold": "7", "n": 5});
    let mut seen = Vec::new();
    for (name, text) in [
        ("rows.jsonl", format!("{row}\n")),
        ("rows.json", json!([row]).to_string()),
        ("rows.csv", "n,prompt,gold\n5,Which is odd?,7\n".to_owned()),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("written");
        let mut options = Options::default();
        for pair in ["question=prompt", "answer=gold", "id=n"] {
            options.fields.add(pair).expect("a pair");
        }
        let (_, tasks) = read("generic", &file, options).expect("imported");
        seen.push((tasks[0].id.clone(), tasks[0].question.clone(), tasks[0].answer.clone()));
        let error = import(set("generic"), &file, &dir.path().join("out.jsonl"), Options::default());
        let error = error.expect_err("it has no such field").to_string();
        assert!(error.contains("no field `question`; the first row has the fields `"), "{error}");
        assert!(["`n`", "`prompt`", "`gold`"].iter().all(|field| error.contains(field)), "{error}");
    }
    assert!(
        seen.iter().all(|task| *task == ("generic-5".to_owned(), "Which is odd?".to_owned(), "7".to_owned())),
        "{seen:?}"
    );
}
