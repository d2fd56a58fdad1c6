//! Files, outputs and answers are what the schemas of the repository say. Other tests come by: [`check_output`] looks at each JSON
//! output of a verb that they run, [`check_answer`] at each answer of a control listener.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::verb,
    restarts::call,
    run_ends,
};

const MAKE: &str = "write them anew: `cargo run -- reference --schemas schemas`";

static SCHEMAS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let root = folder();
    let names = files_below(&root).into_iter().filter(|path| path.to_string_lossy().ends_with(".schema.json"));
    let read = |path: PathBuf| {
        let schema: Value = serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("JSON");
        let name = path.strip_prefix(&root).expect("below it").to_string_lossy().replace(".schema.json", "");
        (name, jsonschema::draft202012::new(&schema).expect("a schema"))
    };
    names.map(read).collect()
});

static OPENAPI: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&fs::read_to_string(folder().join("openapi.json")).expect("readable")).expect("JSON")
});

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn misfit(schema: &str, value: &Value) -> Option<String> {
    let validator = SCHEMAS.get(schema).unwrap_or_else(|| panic!("no schema {schema}: {MAKE}"));
    let error = validator.iter_errors(value).next()?;
    let shown: String = error.to_string().chars().take(400).collect();
    Some(format!("{schema}, {}: {shown}", error.instance_path()))
}

/// The forms of a verb's output.
fn forms(arguments: &[&str]) -> Vec<&'static str> {
    let words = arguments.iter().take_while(|word| **word != "--");
    let names = || SCHEMAS.keys().filter_map(|name| name.strip_prefix("verbs/"));
    let of =
        |verb: &str| -> Vec<&'static str> { names().filter(|name| name.split('.').next() == Some(verb)).collect() };
    let verb = words.copied().find_map(|word| match word {
        "demo" => Some("campaign"),
        "reward" => Some("serve"),
        "error" | "stopped" | "json" => None,
        word => (!of(word).is_empty()).then_some(word),
    });
    let mut forms = verb.map(of).unwrap_or_default();
    if verb == Some("replay") {
        forms.push("serve");
    }
    if !forms.is_empty() {
        forms.extend(["error", "stopped"]);
    }
    forms
}

/// Panics where the JSON that a verb has printed is not what a schema of it says. Gives the forms that it has.
pub fn check_output(arguments: &[&str], out: &str) -> Vec<&'static str> {
    let own: Vec<&str> = arguments.iter().copied().take_while(|word| *word != "--").collect();
    let asks = own.windows(2).any(|words| words == ["--format", "json"]) || own.contains(&"--format=json");
    // These print TOML, a schema or a table whatever the format.
    let prints_other = ["--suggest", "schema", "catalogue", "completions", "mcp"].iter().any(|word| own.contains(word));
    let forms = forms(&own);
    if !asks || prints_other || forms.is_empty() {
        return Vec::new();
    }
    let mut seen = Vec::new();
    for value in serde_json::Deserializer::from_str(out).into_iter::<Value>() {
        let value = value.unwrap_or_else(|error| panic!("{own:?} prints no JSON: {error}: {out}"));
        let misfits: Vec<(&str, Option<String>)> =
            forms.iter().map(|form| (*form, misfit(&format!("verbs/{form}"), &value))).collect();
        let fitting = misfits.iter().find(|(_, misfit)| misfit.is_none());
        let (form, _) = fitting.unwrap_or_else(|| panic!("{own:?} fits none of its schemas: {misfits:#?}\n{value}"));
        seen.push(*form);
    }
    seen
}

/// The schema of a file that Aegis has written, and whether it describes a line of it.
fn schema_of(path: &Path) -> Option<(&'static str, bool)> {
    let name = path.file_name()?.to_str()?;
    let beside = |file: &str| path.with_file_name(file).exists();
    let is_json = |ending: &str| path.extension().is_some_and(|own| own == ending);
    let below = path.parent()?.file_name()?.to_str()?;
    Some(match name {
        "log.jsonl" | "log.jsonl.zst" | "head.jsonl.zst" => ("log", true),
        "run.json" => ("files/run", false),
        "seal.json" => ("files/seal", false),
        "kept.json" => ("files/kept", false),
        "label.json" => ("files/label", false),
        "label.former.json" => ("files/label.former", false),
        "identity.json" => ("files/identity", false),
        "cards.json" => ("files/cards", false),
        "tokens.toml" => ("files/tokens", false),
        "facts.jsonl" => ("files/facts", true),
        "attribution.jsonl" => ("files/attribution", true),
        "trace.json" => ("files/trace", false),
        "missed-catch.json" => ("files/missed-catch", false),
        "search-refused.json" => ("files/search-refused", false),
        "proof.json" => ("files/proof", false),
        "retry.json" => ("files/retry", false),
        "retried.jsonl" => ("files/retried", true),
        "audit.jsonl" => ("files/audit", true),
        "report.json" if beside("cells") => ("files/report", false),
        "spent.jsonl" => ("files/spent", true),
        "judge.jsonl" => ("files/judge", true),
        "shard.json" => ("files/shard", false),
        "merged.json" => ("files/merged", false),
        "campaign.json.zst" => ("files/snapshot", false),
        "dataset.json" => ("files/dataset", false),
        "dataset.jsonl" | "benign.jsonl" | "decoys.jsonl" => ("dataset", true),
        "certificate.json" => ("files/certificate", false),
        "manifest.json" => ("files/export", false),
        "import.json" => ("files/import", false),
        name if name.starts_with("trace.journal") => ("files/trace.journal", true),
        name if name.ends_with(".manifest.json") => ("files/export", false),
        _ if below == "cells" && is_json("json") => ("files/cell", false),
        _ if below == "annotations" && is_json("jsonl") => ("files/annotation", true),
        _ if below == "chains" => ("files/chain", true),
        _ if beside("run.json") && (is_json("json") || is_json("jsonl")) => {
            panic!("{}: no schema describes this file of a recording", path.display())
        }
        _ => return None,
    })
}

/// The values of a file.
fn values(path: &Path, schema: &str, lines: bool) -> Vec<Value> {
    let bytes = fs::read(path).expect("readable");
    let zst = path.extension().is_some_and(|ending| ending == "zst");
    let bytes = if zst { zstd::decode_all(bytes.as_slice()).expect("a zstd file") } else { bytes };
    let read =
        |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match schema {
        "files/tokens" => vec![toml::from_str(std::str::from_utf8(&bytes).expect("text")).expect("TOML")],
        "files/chain" => vec![read(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default())],
        _ if lines => {
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).map(read).collect()
        }
        _ => vec![read(&bytes)],
    }
}

/// Panics where a file below a directory is not what its schema says. Gives a value of each schema that files have.
pub fn check_files(dir: &Path) -> BTreeMap<&'static str, Value> {
    let mut seen = BTreeMap::new();
    for path in files_below(dir) {
        let Some((schema, lines)) = schema_of(&path) else { continue };
        for value in values(&path, schema, lines) {
            if let Some(misfit) = misfit(schema, &value) {
                panic!("{}: {misfit}\n{value}", path.display());
            }
            seen.entry(schema).or_insert(value);
        }
    }
    seen
}

/// As [`check_files`], below a directory in which there are files of these schemas. [`each_schema_of_a_file_is_held_to_one`] wants
/// every schema to be named in such a call.
pub fn files_have(dir: &Path, schemas: &[&str]) {
    let seen = check_files(dir);
    for schema in schemas {
        assert!(seen.contains_key(schema), "{}: no file of {schema}, but of {:?}", dir.display(), seen.keys());
    }
}

#[test]
fn each_schema_of_a_file_is_held_to_one() {
    let sources = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    let texts = sources.iter().filter(|path| path.extension().is_some_and(|it| it == "rs")).map(fs::read_to_string);
    let mut held = BTreeSet::new();
    for text in texts {
        let text = text.expect("readable");
        let calls = text.split("contract::files_have(").skip(1).filter_map(|call| call.split(");").next());
        held.extend(
            calls.flat_map(|call| call.split('"')).filter(|name| name.starts_with("files/")).map(str::to_owned),
        );
    }
    held.extend(LEFT_BY_A_CAMPAIGN.iter().map(|name| (*name).to_owned()));
    let free: Vec<&String> =
        SCHEMAS.keys().filter(|name| name.starts_with("files/") && !held.contains(*name)).collect();
    assert!(free.is_empty(), "no test has a file of {free:?}");
}

/// Whether a path is one that a path of the document stands for.
fn stands_for(template: &str, path: &str) -> bool {
    let (known, asked): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    known.len() == asked.len()
        && known.iter().zip(&asked).all(|(known, asked)| known.starts_with('{') || known == asked)
}

/// Panics where an answer of a control listener, or of health, is not what the `OpenAPI` document says.
pub fn check_answer(method: &str, path: &str, status: u16, body: &Value) {
    let paths = OPENAPI["paths"].as_object().expect("paths");
    let mut known =
        paths.iter().filter(|(template, _)| stands_for(template, path.split('?').next().unwrap_or_default()));
    let Some(operation) = known.find_map(|(_, item)| item.get(method.to_lowercase())) else {
        assert!([401, 404, 429].contains(&status), "{method} {path} is answered with {status} and not documented");
        return;
    };
    let answer = &operation["responses"][status.to_string()];
    assert!(!answer.is_null(), "{method} {path}: status {status} is not documented: {body}");
    // What another file describes may be anything here.
    let schema = answer.pointer("/content/application~1json/schema").filter(|schema| schema.is_object());
    let Some(schema) = schema else { return };
    let mut whole = schema.clone();
    whole["components"] = OPENAPI["components"].clone();
    let validator = jsonschema::draft202012::new(&whole).expect("a schema");
    let error = validator.iter_errors(body).next().map(|error| format!("{}: {error}", error.instance_path()));
    assert_eq!(error, None, "{method} {path}: {body}");
}

#[test]
fn the_schemas_are_those_of_the_code() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = std::process::Command::new(crate::program::AEGIS);
    let ran = command.args(["reference", "--schemas"]).arg(dir.path()).output().expect("it ran");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let names = |root: &Path| -> BTreeSet<PathBuf> {
        files_below(root).iter().map(|path| path.strip_prefix(root).expect("below it").to_owned()).collect()
    };
    let (made, kept) = (names(dir.path()), names(&folder()));
    assert_eq!(made, kept, "{MAKE}, and remove what is no more");
    for name in made {
        let same = fs::read(dir.path().join(&name)).ok() == fs::read(folder().join(&name)).ok();
        assert!(same, "schemas/{}: {MAKE}", name.display());
    }
}

/// Every verb that a recording, a campaign or a data set is enough for.
const LINES: [&[&str]; 29] = [
    &["runs", "demo/logs"],
    &["runs", "demo/logs", "--since", "2000-01-01"],
    &["runs", "prune", "demo/logs", "--keep", "30d"],
    &["show", "RUN"],
    &["show", "RUN", "--before-after"],
    &["show", "RUN", "--verdict"],
    &["show", "RUN", "--watch-rules"],
    &["agents", "RUN"],
    &["diff", "RUN", "OTHER"],
    &["lint", "demo"],
    &["lint", "--rules"],
    &["stats", "demo"],
    &["modes", "demo/logs"],
    &["annotations", "demo/logs"],
    &["attribute", "demo", "--method", "rules", "--out", "said.jsonl"],
    &["attribute", "--list"],
    &["score", "said.jsonl", "--gold", "demo"],
    &["export", "demo", "--to", "whowhen", "--out", "out"],
    &["export", "--list"],
    &["import", "--from", "whowhen", "out", "--out", "in"],
    &["plan", "ready"],
    &["plan", "list"],
    &["init", "first"],
    &["plan", "check", "first/plan.toml"],
    &["plan", "explain", "first/plan.toml"],
    &["token", "ada"],
    &["doctor"],
    &["show", "nothing"],
    &["amend", "RUN", "--outcome", "failure"],
];

const LEFT_BY_A_CAMPAIGN: [&str; 10] = [
    "log",
    "dataset",
    "files/run",
    "files/seal",
    "files/label",
    "files/report",
    "files/cell",
    "files/chain",
    "files/spent",
    "files/dataset",
];

#[tokio::test]
async fn what_a_campaign_leaves_and_verbs_print_is_described() {
    let dir = tempfile::tempdir().expect("a directory");
    // It takes longer than what waits with a deadline.
    let demo = ["demo", "--dir", "demo", "--format", "json"];
    let made = crate::program::aegis(dir.path()).args(demo).output().await.expect("it ran");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(check_output(&demo, &String::from_utf8_lossy(&made.stdout)), ["campaign"]);
    let runs: Vec<PathBuf> = fs::read_dir(dir.path().join("demo/logs"))
        .expect("runs")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("label.json").exists())
        .collect();
    let [run, other] = [0, 1].map(|at| runs[at].to_str().expect("text").to_owned());
    let mut forms = BTreeSet::new();
    for line in LINES {
        let words: Vec<&str> = line
            .iter()
            .map(|word| match *word {
                "RUN" => run.as_str(),
                "OTHER" => other.as_str(),
                word => word,
            })
            .chain(["--format", "json"])
            .collect();
        let (_, out, talk) = verb(dir.path(), &words).await;
        let seen = check_output(&words, &out);
        assert!(!seen.is_empty(), "{words:?} printed nothing: {talk}");
        assert!(words.contains(&"nothing") || !seen.contains(&"error"), "{words:?}: {out}");
        forms.extend(seen);
    }
    assert!(forms.len() >= 24, "{forms:?}");
    let seen = check_files(dir.path());
    assert!(LEFT_BY_A_CAMPAIGN.iter().all(|schema| seen.contains_key(schema)), "{:?}", seen.keys());
    for (schema, value) in seen.iter().filter(|(schema, _)| **schema != "files/proof") {
        let mut more = value.clone();
        more.as_object_mut().expect("an object").insert("undocumented".to_owned(), json!(1));
        // What an importer kept of a foreign trace stands in samples as it is.
        assert!(misfit(schema, &more).is_some() || *schema == "dataset", "{schema} takes what nobody documented");
        let mut less = value.clone();
        let first = less.as_object().and_then(|fields| fields.keys().next().cloned()).expect("a member");
        less.as_object_mut().expect("an object").shift_remove(&first);
        assert!(misfit(schema, &less).is_some(), "{schema} does without {first}");
    }
}

#[test]
fn recordings_of_an_earlier_version_fit_the_schema_of_the_log() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let logs: Vec<PathBuf> = files_below(&fixtures).into_iter().filter(|path| path.ends_with("log.jsonl")).collect();
    assert!(!logs.is_empty());
    for log in logs {
        for line in values(&log, "log", true) {
            assert_eq!(misfit("log", &line), None, "{}", log.display());
        }
    }
}

#[tokio::test]
async fn every_documented_path_is_answered_as_documented() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator"]).await;
    assert_eq!(call(&served, "/r/first/v1/chat/completions", "What is 2 + 3?").await.status, 200);
    let bodies = json!({
        "outcome": {"run": "first", "verdict": "success"},
        "roster": {"run": "first", "agent": [{"name": "solver", "first_user_contains": "What"}]},
        "task": {"run": "first", "task": "a sum"},
        "runs": {},
        "annotations": {"by": "ada"},
    });
    for (template, item) in OPENAPI["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            if operation["tags"] != json!(["control"]) || template == "/metrics" {
                continue;
            }
            let path = template.replace("{run}", "first").replace("{user}", "nobody");
            let body = &bodies[path.rsplit('/').next().unwrap_or_default()];
            let (status, answer) = run_ends::control(&served, &method.to_uppercase(), &path, body).await;
            let known = path.contains("/users/") && answer["error"]["code"] == "no_such_user";
            assert!(known || status == 200 || status == 409, "{method} {path}: {status} {answer}");
        }
    }
    for path in ["/healthz", "/readyz"] {
        let mut client = Client::connect(served.address).await;
        client.send(&request("GET", path, b"", "connection: close\r\n")).await;
        let reply = client.reply().await;
        check_answer("GET", path, reply.status, &reply.json());
    }
    assert!(run_ends::metrics(&served).await.contains("# EOF"));
    served.stop().await;
    check_files(dir.path());
}
