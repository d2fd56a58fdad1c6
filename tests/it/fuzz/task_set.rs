//! Files of tasks as strangers publish them: the first byte says which set and which layout the rest is.

use std::collections::BTreeSet;

use aegis::dataset::{
    read_tasks,
    task_sets::{self, ALL, Options},
};

const LAYOUTS: [&str; 3] = ["rows.jsonl", "rows.csv", "rows.json"];

pub fn examples() -> Vec<Vec<u8>> {
    let rows: [(usize, usize, &str); 11] = [
        (0, 0, r#"{"question": "3 nets with 4 fish each?", "answer": "3*4=<<3*4=12>>12\n#### 12"}"#),
        (1, 0, r#"{"problem": "What is $1/2+1/2$?", "solution": "So $\\boxed{1}$.", "level": "1", "type": "Algebra"}"#),
        (2, 1, "What is red?,a stone,a colour,a day,a song,B\n"),
        (2, 0, r#"{"question": "What is red?", "choices": ["a stone", "a colour"], "answer": 1, "subject": "arts"}"#),
        (3, 1, "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n\"Q, x?\",a,b,c,d\n"),
        (
            4,
            2,
            r#"[{"task_id": "t/0", "prompt": "def f():\n", "test": "def check(f):\n assert f() is None", "entry_point": "f"}]"#,
        ),
        (
            6,
            0,
            r#"{"input": "3000 nets with 4 fish each?", "target": 12000.0, "code": "def solution():\n return 12000"}"#,
        ),
        (
            7,
            2,
            r#"[{"problem_text": "How much?", "answer_number": "+2.5", "unit": "$10^{3} \\mathrm{~J}$", "source": "a"}]"#,
        ),
        (8, 0, r#"{"question_id": 7, "question": "Which?", "options": ["a", "b"], "answer": "B", "answer_index": 1}"#),
        (
            9,
            0,
            r#"{"task_id": "t/1", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": " return x", "base_input": [[1]], "plus_input": [[2]]}"#,
        ),
        (12, 1, "id,question,answer\n1,Which?,7\n"),
    ];
    rows.iter().map(|(set, layout, text)| [&[byte(*set, *layout)], text.as_bytes()].concat()).collect()
}

fn byte(set: usize, layout: usize) -> u8 {
    u8::try_from(set * LAYOUTS.len() + layout).expect("few")
}

/// What is imported is read back, each task once; all else is an error that names the file. Tells sets, layouts and
/// reasons apart.
pub fn check(input: &[u8]) -> (usize, BTreeSet<String>) {
    let Some((which, content)) = input.split_first() else { return (0, BTreeSet::new()) };
    let which = usize::from(*which) % (ALL.len() * LAYOUTS.len());
    let dir = tempfile::tempdir().expect("a directory");
    let (file, out) = (dir.path().join(LAYOUTS[which % LAYOUTS.len()]), dir.path().join("tasks.jsonl"));
    std::fs::write(&file, content).expect("written");
    let seen = match task_sets::import(ALL[which / LAYOUTS.len()], &file, &out, Options::default()) {
        Ok(imported) => {
            let tasks = read_tasks(&out).expect("the task reader takes them");
            let ids: BTreeSet<_> = tasks.iter().map(|task| task.id.as_str()).collect();
            assert!(!tasks.is_empty() && ids.len() == tasks.len(), "{ids:?}");
            imported.left_out.into_keys().collect()
        }
        Err(error) => {
            assert!(error.to_string().contains("rows."), "{error}");
            assert!(!out.exists(), "nothing is written beside an error");
            BTreeSet::from(["none".to_owned()])
        }
    };
    (which, seen)
}
