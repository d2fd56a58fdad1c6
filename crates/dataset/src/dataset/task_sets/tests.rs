//! Each set in each layout that it is published in, by hand-made rows; none of them is a row of the sets themselves.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::{
    dataset::read_tasks,
    trajectory::Verdict,
    verify::{Case, Surroundings},
};

pub(super) fn set(name: &str) -> &'static dyn TaskSet {
    *ALL.iter().find(|set| set.name() == name).expect("a set")
}

pub(super) fn read(from: &str, path: &Path, options: Options) -> Result<(ImportedTasks, Vec<Task>), TasksError> {
    let out = path.with_file_name("tasks.jsonl");
    let options = Options { overwrite: true, ..options };
    let imported = import(set(from), path, &out, options)?;
    Ok((imported, read_tasks(&out).expect("the task reader takes them")))
}

/// Writes a file and imports it.
pub(super) fn import_text(from: &str, name: &str, text: &str) -> (ImportedTasks, Vec<Task>) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join(name);
    fs::write(&file, text).expect("written");
    read(from, &file, Options::default()).expect("imported")
}

pub(super) fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

pub(super) fn reasons(imported: &ImportedTasks) -> Vec<(&str, u64)> {
    imported.left_out.iter().map(|(why, rows)| (why.as_str(), rows.rows)).collect()
}

fn gpqa_row(question: &str) -> Value {
    json!({"Record ID": "recAbC1", "Question": question, "Correct Answer": "a green one\n", "Incorrect Answer 1": "a red one",
        "Incorrect Answer 2": "a blue one", "Incorrect Answer 3": "none of them", "Subdomain": "Colours", "Canary String": "canary-1",
        "Explanation": "green is right"})
}

#[test]
fn word_problems() {
    let row = |question: &str, answer: &str| json!({"question": question, "answer": answer});
    let (imported, tasks) = import_text(
        "gsm8k",
        "test.jsonl",
        &lines(&[
            row("Ann has 3 nets with 4 fish each. How many fish?", "3*4=<<3*4=12>>12\n#### 12"),
            row("Bo saves 500 twice. How much?", "#### 1,000"),
            row("Cy owes 7 more than he has. What is left?", "x\n#### -7 "),
            row("Ann has 3 nets with 4 fish each. How many fish?", "again\n#### 12"),
            row("No mark?", "12"),
            row("No number?", "#### twelve"),
            row("", "#### 1"),
            json!(["a list"]),
        ]),
    );
    let answers: Vec<&str> = tasks.iter().map(|task| task.answer.as_str()).collect();
    assert_eq!(answers, ["12", "1000", "-7"]);
    assert!(tasks.iter().all(|task| task.check.as_ref().is_some_and(|check| check.name() == "numeric")));
    assert_eq!(
        reasons(&imported),
        [
            ("a row that is no object", 1),
            ("an earlier row is the same task", 1),
            ("no `####` before an answer", 1),
            ("no number behind `####`", 1),
            ("no text in `question`", 1)
        ]
    );
    assert_eq!(imported.left_out["no number behind `####`"].first, "test.jsonl:6");
    assert_eq!((imported.rows, imported.tasks, imported.commands), (8, 3, 0));
}

#[test]
fn ids_depend_on_what_is_asked_and_on_nothing_else() {
    let row = |question: &str| json!({"question": question, "answer": "#### 1"});
    let (_, one) = import_text("gsm8k", "test.jsonl", &lines(&[row("first?"), row("second?")]));
    let (_, other) =
        import_text("gsm8k", "train.json", &json!([row("second?"), row("third?"), row("first?")]).to_string());
    assert_eq!((&one[0].id, &one[1].id), (&other[2].id, &other[0].id));
    assert!(one[0].id.starts_with("gsm8k-") && one[0].id != one[1].id, "{}", one[0].id);
}

#[test]
fn competition_problems_lie_a_file_each_or_a_row_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let problem = |n: u32, solution: &str| json!({"problem": format!("Problem {n}?"), "level": "Level 2", "type": "Algebra", "solution": solution});
    fs::create_dir_all(dir.path().join("test/algebra")).expect("made");
    for (n, solution) in [
        (2, r"So $x=\boxed{\frac{1}{2}}$."),
        (10, r"First \boxed{1}, then $\boxed{\{1,\ 2\}}$."),
        (11, r"It is \boxed 7$."),
        (12, "no box"),
    ] {
        let text = serde_json::to_string_pretty(&problem(n, solution)).expect("JSON");
        fs::write(dir.path().join(format!("test/algebra/{n}.json")), text).expect("written");
    }
    let (imported, tasks) = read("math", &dir.path().join("test"), Options::default()).expect("imported");
    let answers: Vec<&str> = tasks.iter().map(|task| task.answer.as_str()).collect();
    assert_eq!(answers, [r"\frac{1}{2}", r"\{1,\ 2\}", "7"]);
    assert_eq!(tasks[0].extra["subject"], "Algebra");
    assert_eq!(reasons(&imported), [(r"no `\boxed{…}` in `solution`", 1)]);
    assert_eq!(imported.left_out.values().next().expect("one").first, "algebra/12.json");

    let row = json!({"problem": "P?", "answer": "9", "solution": "", "subject": "Geometry", "level": 5, "unique_id": "test/geometry/1.json"});
    let (_, tasks) = import_text("math", "test.jsonl", &lines(&[row]));
    assert_eq!((tasks[0].answer.as_str(), &tasks[0].extra["level"]), ("9", &json!(5)));
}

#[test]
fn choices_from_their_own_csv_and_from_tables() {
    let csv = "\"Which is \"\"even\"\", I ask?\nI. maybe\",1,2,3,5,B\nWhich is odd?,2,4,6,7,D\nWhich is none?,2,4,6,8,E\nshort,1,2\n";
    let (imported, tasks) = import_text("mmlu", "number_theory_test.csv", csv);
    assert_eq!(tasks[0].question, "Which is \"even\", I ask?\nI. maybe\nA) 1\nB) 2\nC) 3\nD) 5");
    assert_eq!((tasks[0].answer.as_str(), &tasks[0].extra["subject"]), ("B", &json!("number_theory")));
    assert_eq!(tasks[1].answer, "D");
    assert_eq!(reasons(&imported), [("`answer` is none of the choices", 1), ("a row that cannot be read", 1)]);

    let (_, named) =
        import_text("mmlu", "all.csv", "answer,question,A,B,C,D,subject\nD,Which is odd?,2,4,6,7,number_theory\n");
    assert_eq!((&named[0].id, &named[0].answer), (&tasks[1].id, &tasks[1].answer), "the same task of another layout");

    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("test-00000-of-00001.parquet");
    table(&file, "Which is odd?", "number_theory", &["2", "4", "6", "7"], 3);
    let (_, table) = read("mmlu", &file, Options::default()).expect("imported");
    assert_eq!((&table[0].id, &table[0].answer), (&tasks[1].id, &tasks[1].answer), "the same task of a table");
}

/// A Parquet file as the tables of the set are: a list of choices, the answer by its place.
fn table(path: &Path, question: &str, subject: &str, choices: &[&str], answer: i64) {
    use parquet::{data_type::ByteArray, file::writer::SerializedFileWriter, schema::parser::parse_message_type};
    let schema = "message m { optional binary question (UTF8); optional binary subject (UTF8); optional group choices (LIST) \
        { repeated group list { optional binary element (UTF8); } } optional int64 answer; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = fs::File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let repeated: Vec<i16> = (0..choices.len()).map(|place| i16::from(place > 0)).collect();
    let texts: [(Vec<&str>, Vec<i16>, Vec<i16>); 3] = [
        (vec![question], vec![1], vec![0]),
        (vec![subject], vec![1], vec![0]),
        (choices.to_vec(), vec![3; choices.len()], repeated),
    ];
    for (values, definitions, repetitions) in texts {
        let values: Vec<ByteArray> = values.into_iter().map(ByteArray::from).collect();
        let mut column = group.next_column().expect("a column").expect("one more");
        let typed = column.typed::<parquet::data_type::ByteArrayType>();
        typed.write_batch(&values, Some(&definitions), Some(&repetitions)).expect("written");
        column.close().expect("closed");
    }
    let mut column = group.next_column().expect("a column").expect("one more");
    column.typed::<parquet::data_type::Int64Type>().write_batch(&[answer], Some(&[1]), None).expect("written");
    column.close().expect("closed");
    group.close().expect("closed");
    writer.close().expect("closed");
}

#[test]
fn choices_that_somebody_must_shuffle_stand_the_same_everywhere() {
    let rows: Vec<Value> = (0..40)
        .map(|n| {
            let mut row = gpqa_row(&format!("Which light, number {n}?"));
            row["Record ID"] = format!("rec{n}").into();
            row
        })
        .collect();
    let (imported, tasks) = import_text("gpqa", "gpqa_main.jsonl", &lines(&rows));
    assert!(imported.terms.keep_private.is_some());
    let mut seen: Vec<&str> = tasks.iter().map(|task| task.answer.as_str()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["A", "B", "C", "D"], "no place is the right one's");
    for task in &tasks {
        let right = format!("\n{}) a green one", task.answer);
        assert!(task.question.contains(&right), "{}", task.question);
        assert!(!serde_json::to_string(task).expect("JSON").contains("green is right"), "explanations stay out");
    }
    assert_eq!((tasks[3].id.as_str(), &tasks[3].extra["canary"]), ("gpqa-rec3", &json!("canary-1")));
    let mut swapped = rows[3].clone();
    swapped["Incorrect Answer 1"] = rows[3]["Incorrect Answer 3"].clone();
    swapped["Incorrect Answer 3"] = rows[3]["Incorrect Answer 1"].clone();
    let (_, again) = import_text("gpqa", "other.jsonl", &lines(&[swapped]));
    assert_eq!(again[0].question, tasks[3].question, "the order of the columns does not count");

    let csv = "Record ID,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n\
        rec3,\"Which light, number 3?\",a green one,a red one,a blue one,none of them\nrec4,Which?,x,x,y,z\n";
    let (imported, tasks_of_csv) = import_text("gpqa", "gpqa_diamond.csv", csv);
    assert_eq!(tasks_of_csv[0].question, tasks[3].question);
    assert_eq!(reasons(&imported), [("two of the answers are the same", 1)]);
}

pub(super) fn function() -> Value {
    json!({"task_id": "HumanEval/7", "entry_point": "twice_all",
        "prompt": "from typing import List\n\n\ndef twice(x):\n    return 2 * x\n\n\ndef twice_all(xs: List[int]) -> List[int]:\n    \"\"\" Twice each number.\n    >>> twice_all([1])\n    [2]\n    \"\"\"\n",
        "canonical_solution": "    return [twice(x) for x in xs]\n",
        "test": "\n\nMETADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    assert candidate([1, 2]) == [2, 4]\n    assert candidate([]) == []\n"})
}

#[tokio::test]
async fn functions_are_run_against_their_tests() {
    let (imported, tasks) = import_text("humaneval", "HumanEval.jsonl", &lines(&[function()]));
    let task = &tasks[0];
    assert_eq!((task.id.as_str(), imported.commands), ("humaneval-7", 1));
    assert!(!task.question.contains("[twice(x) for"), "the solution is not in the question");
    let whole = "def twice_all(xs: List[int]) -> List[int]:\n    return [twice(x) for x in xs]";
    for (answer, expected) in [
        (task.answer.as_str(), Verdict::Success),
        (&format!("Here:\n```python\n{whole}\n```\nDone."), Verdict::Success),
        ("```python\n    return [twice(x) for x in xs]\n```", Verdict::Success),
        ("return [twice(x) for x in xs]", Verdict::Success),
        ("def twice_all(xs):\n    return xs", Verdict::Failure),
        ("def twice_all(xs):\n    import sys\n    sys.exit(0)", Verdict::Failure),
        ("I cannot", Verdict::Failure),
        ("", Verdict::Failure),
    ] {
        let case = Case { question: &task.question, expected: &task.answer, output: answer };
        let found = task.check.as_ref().expect("a check").check(&case, &Surroundings::default()).await;
        assert_eq!(found.verdict, expected, "{answer}: {}", found.evidence);
    }
}

#[test]
fn questions_for_assistants() {
    let row = |id: &str, answer: &str, file: &str| {
        json!({"task_id": id, "Question": format!("Question {id}?"), "Level": 1, "Final answer": answer, "file_name": file,
            "Annotator Metadata": {"Steps": "look it up: the answer is plain"}})
    };
    let rows = [
        row("aa-1", "1,729", ""),
        row("aa-2", "The Sea Gull", ""),
        row("aa-3", "?", ""),
        row("aa-4", "3", "aa-4.xlsx"),
    ];
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("metadata.jsonl");
    fs::write(&file, lines(&rows)).expect("written");
    let (imported, tasks) = read("gaia", &file, Options::default()).expect("imported");
    let checks: Vec<&str> =
        tasks.iter().filter_map(|task| task.check.as_ref()).map(crate::verify::Check::name).collect();
    assert_eq!(checks, ["numeric", "normalised"]);
    assert_eq!(imported.left_out.len(), 2);
    assert!(!fs::read_to_string(dir.path().join("tasks.jsonl")).expect("tasks").contains("look it up"));
    let (_, tasks) = read("gaia", &file, Options { with_files: true, ..Options::default() }).expect("imported");
    assert!(tasks[2].question.ends_with("The file: aa-4.xlsx") && tasks[2].extra["file_name"] == "aa-4.xlsx");
}

#[test]
fn what_cannot_be_imported_says_why_and_writes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::write(path("wrong.jsonl"), lines(&[json!({"problem": "P?"})])).expect("written");
    fs::write(path("good.jsonl"), lines(&[json!({"question": "Q?", "answer": "#### 1"})])).expect("written");
    fs::write(path("cut.parquet"), b"PAR1 and no more").expect("written");
    fs::write(path("taken.jsonl"), "mine").expect("written");
    let import = |from: &str, out: &str, overwrite| {
        let options = Options { overwrite, ..Options::default() };
        import(set("gsm8k"), &path(from), &path(out), options).map_err(|error| error.to_string())
    };
    for (from, out, overwrite, words) in [
        ("wrong.jsonl", "out.jsonl", false, "wrong.jsonl:1: no text in `question`"),
        ("cut.parquet", "out.jsonl", false, "cut.parquet: a row that cannot be read"),
        ("absent.jsonl", "out.jsonl", false, "cannot read"),
        ("good.jsonl", "taken.jsonl", false, "`--overwrite`"),
        ("good.jsonl", "good.jsonl", true, "is what is read"),
    ] {
        let error = import(from, out, overwrite).expect_err(from);
        assert!(error.contains(words), "{from}: {error}");
        assert!(!path("out.jsonl").exists());
    }
    assert_eq!(fs::read_to_string(path("taken.jsonl")).expect("there"), "mine");
    let good = fs::read_to_string(path("good.jsonl")).expect("there");
    assert!(good.contains("####"));
    import("good.jsonl", "taken.jsonl", true).expect("imported");
    let manifest: Value =
        serde_json::from_slice(&fs::read(path("taken.jsonl.manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!(
        (&manifest["licence"], &manifest["tasks"], &manifest["from"]),
        (&json!("MIT"), &json!(1), &json!("gsm8k"))
    );
}

#[test]
fn a_packed_file_is_read_as_its_authors_publish_it() {
    use std::io::Write as _;

    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("set/HumanEval.jsonl.gz");
    fs::create_dir(dir.path().join("set")).expect("made");
    let row = json!({"task_id": "HumanEval/7", "prompt": "def one():\n", "entry_point": "one",
        "canonical_solution": "    return 1\n", "test": "def check(candidate):\n    assert candidate() == 1\n"});
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(lines(&[row]).as_bytes()).expect("packed");
    let bytes = packer.finish().expect("packed");
    fs::write(&file, &bytes).expect("written");
    // Named itself, and found in its directory.
    for path in [file.as_path(), file.parent().expect("a directory")] {
        let out = dir.path().join("out.jsonl");
        let options = Options { overwrite: true, ..Options::default() };
        let imported = import(set("humaneval"), path, &out, options).expect("imported");
        assert_eq!((imported.tasks, imported.files.len()), (1, 1));
        assert_eq!(imported.files["HumanEval.jsonl.gz"], blake3::hash(&bytes).to_hex().to_string());
    }
    fs::write(&file, &bytes[..bytes.len() - 9]).expect("cut");
    let error = import(set("humaneval"), &file, &dir.path().join("other.jsonl"), Options::default());
    let error = error.expect_err("it is cut");
    assert!(matches!(&error, TasksError::Io { .. }), "{error:?}");
}

#[test]
fn any_bytes_are_read_to_their_end() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [
        ("a.csv", b"\"open,\n\xff\xfe,1\n".as_slice()),
        ("b.csv", b""),
        ("c.jsonl", b"\xff\n{\"question\": 1}\nnull\n[[[[\n"),
        ("d.json", b"[{\"question\": \"x\"}, "),
        ("e.parquet", b""),
        ("f.jsonl.gz", b"\x1f\x8b\x08 and no more"),
    ] {
        let file = dir.path().join(name);
        fs::write(&file, bytes).expect("written");
        for set in ALL {
            assert!(import(*set, &file, &dir.path().join("out.jsonl"), Options::default()).is_err(), "{name}");
        }
    }
}
