//! A directory in which each verb executes the program of one column.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use aegis::{
    identity::LateStep,
    recording,
    ruling::{NoLabel, PLANTED},
};
use serde_json::{Value, json};

use super::{
    column::{Column, Verb},
    team::{TEAM, model},
};
use crate::program::{Served, aegis, verb};

const CHECK: &str = "grep -q 'ANSWER: 12'";

/// A run that a verb made or looked into.
pub struct MadeRun {
    pub dir: PathBuf,
    /// Whether something was to be planted in it.
    pub planned: bool,
    /// What the verb itself answered, where it says so of the run.
    pub said: Option<Result<(), String>>,
}

impl MadeRun {
    fn planned(dir: PathBuf) -> Self {
        Self { dir, planned: true, said: None }
    }
}

/// A directory with the program, a plan, and a model to ask.
pub struct Bench {
    pub dir: tempfile::TempDir,
    url: String,
    pub column: Column,
}

impl Bench {
    pub async fn new(column: Column) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("team.py"), TEAM).expect("written");
        fs::write(dir.path().join("plan.toml"), &column.plan).expect("written");
        Self { dir, url: model().await, column }
    }

    pub async fn json(&self, arguments: &[&str]) -> Value {
        let (_, out, talk) = verb(self.dir.path(), arguments).await;
        serde_json::from_str(&out)
            .unwrap_or_else(|error| panic!("{}: {arguments:?}: {error}: {out}{talk}", self.column.name))
    }

    /// The step of the adder that a label would name.
    pub async fn step(&self, run: &Path) -> Value {
        let agents = self.json(&["agents", run.to_str().expect("text"), "--format", "json"]).await;
        let is_it = |step: &&Value| step["agent"] == "adder" && step["call"] == self.column.call;
        let step = agents["steps"].as_array().and_then(|steps| steps.iter().find(is_it)).cloned();
        step.unwrap_or_else(|| panic!("{}: {agents:#}", self.column.name))
    }

    /// Whether the label of a run says what was done, which is known here: who, at which call and step, and which bytes came and went.
    pub fn is_true(&self, run: &MadeRun) -> bool {
        let recording = recording::read(&run.dir).expect("a run");
        let mut steps = recording.trajectory.steps.iter();
        let is_it = |step: &&aegis::trajectory::Step| {
            step.attribution.agent.as_str() == "adder" && u64::from(step.call) == self.column.call
        };
        let step = steps.find(is_it).expect("the step");
        let reply = step.last_attempt().expect("a reply");
        let hash = |body: &[u8]| blake3::hash(body).to_hex().to_string();
        let Some([entry]) = recording.label.as_ref().map(|label| label.errors.as_slice()) else { return false };
        let error = &entry.error;
        let place = (error.step, error.agent.as_str(), error.instance, error.call);
        // What a trace found was said by the model itself.
        let bytes = !run.planned
            || (error.before.as_str(), error.after.as_str())
                == (hash(&reply.reply).as_str(), hash(reply.delivered()).as_str());
        let changed = reply.reply != *reply.delivered();
        place == (step.step, "adder", 0, step.call) && bytes && changed == run.planned
    }

    /// Executes it by a verb.
    pub async fn execute(&self, by: Verb) -> MadeRun {
        match by {
            Verb::Run => MadeRun::planned(self.run("r", &["--plan", "plan.toml"], &[]).await),
            Verb::Serve => MadeRun::planned(self.serve().await),
            Verb::Fork => MadeRun::planned(self.fork("clean", &["--plan", "plan.toml"], &[]).await),
            Verb::Test => MadeRun::planned(self.test().await),
            Verb::Campaign => MadeRun::planned(self.campaign().await),
            Verb::Trace => self.trace().await,
            Verb::Prove => self.prove().await,
            Verb::Retry => self.retry().await,
        }
    }

    /// Calls a verb with the program behind it.
    async fn call(&self, arguments: &[&str], more: &[&str]) -> (Option<i32>, String) {
        let program = ["--", "python3", "-I", "team.py", self.column.kind];
        let executed = ["--upstream", &self.url, "--check", CHECK];
        let (code, out, talk) = verb(self.dir.path(), &[arguments, &executed, &program, more].concat()).await;
        (code, out + &talk)
    }

    async fn run(&self, name: &str, arguments: &[&str], more: &[&str]) -> PathBuf {
        let dir = self.dir.path().join("logs").join(name);
        if !dir.exists() {
            self.call(&[&["run", "--log-dir", "logs", "--run", name], arguments].concat(), more).await;
        }
        dir
    }

    async fn serve(&self) -> PathBuf {
        let dir = self.dir.path();
        let arguments = ["--plan", "plan.toml", "--upstream", &self.url, "--log-dir", "logs"];
        let served = Served::start(dir, &arguments).await;
        let mut program = tokio::process::Command::new("python3");
        program.args(["-I", "team.py", self.column.kind]).current_dir(dir);
        program.env("OPENAI_BASE_URL", format!("http://{}/r/s/v1", served.address));
        let done = crate::lab::within(program.output()).await.expect("it runs");
        assert!(!done.stdout.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        served.stop_and_end(dir, &["logs/s"]).await;
        dir.join("logs/s")
    }

    /// A run that begins like one of `run`, made for it.
    async fn fork(&self, name: &str, arguments: &[&str], more: &[&str]) -> PathBuf {
        let like = self.run(name, &[], more).await;
        let into = format!("forks/{name}");
        let fork = ["fork", like.to_str().expect("text"), "--log-dir", &into, "--format", "json"];
        let (_, said) = self.call(&[&fork[..], arguments].concat(), more).await;
        runs_below(&self.dir.path().join(into)).pop().unwrap_or_else(|| panic!("{}: {said}", self.column.name))
    }

    async fn test(&self) -> PathBuf {
        let (_, said) = self.call(&["test", "plan.toml", "--no-baseline", "--log-dir", "tests"], &[]).await;
        runs_below(&self.dir.path().join("tests")).pop().unwrap_or_else(|| panic!("{}: {said}", self.column.name))
    }

    /// A run that failed by itself, and what a trace of it says of its label.
    async fn trace(&self) -> MadeRun {
        let mut run = self.run("bad", &[], &["badly"]).await;
        if self.column.forked {
            let steps = recording::read(&run).expect("a run").trajectory.steps.len();
            let last = (steps - 1).to_string();
            run = self.fork("bad", &["--at", &last, "--keep"], &["badly"]).await;
        }
        let step = self.step(&run).await["step"].as_u64().expect("a number");
        self.seen_late(&run, step);
        let fix = json!({"step": step, "reply": "The sum is 12."}).to_string();
        fs::write(self.dir.path().join("fix.jsonl"), fix).expect("written");
        let path = run.to_str().expect("text");
        let (_, said) = self.call(&["trace", path, "--corrections", "fix.jsonl"], &["badly"]).await;
        let answer = if said.contains("label verified (earliest_flip)") { Ok(()) } else { Err(said) };
        MadeRun { dir: run, planned: false, said: Some(answer) }
    }

    /// A planned run, and what is proven of it.
    async fn prove(&self) -> MadeRun {
        let run = if self.column.forked {
            self.fork("clean", &["--plan", "plan.toml"], &[]).await
        } else {
            self.run("proven", &["--plan", "plan.toml"], &[]).await
        };
        let step = self.step(&run).await["step"].as_u64().expect("a number");
        self.seen_late(&run, step);
        let (code, said) = self.call(&["prove", run.to_str().expect("text")], &[]).await;
        let proven = recording::read(&run).expect("a run").label;
        if code == Some(0) {
            aegis::ruling::settle(&run, None).expect("readable").expect("a label");
            assert_eq!(recording::read(&run).expect("a run").label, proven, "ruled on again, it keeps its proof");
            assert!(proven.expect("a label").evidence.is_some());
        }
        let answer = if code == Some(2) { Err(said) } else { Ok(()) };
        MadeRun { dir: run, planned: true, said: Some(answer) }
    }

    /// An execution that answers a note.
    async fn retry(&self) -> MadeRun {
        let run = self.run("bad", &[], &["badly"]).await;
        let note = json!({"step": 0, "note": "Add once more, with care."}).to_string();
        fs::write(self.dir.path().join("note.jsonl"), note).expect("written");
        let path = run.to_str().expect("text");
        let (_, said) = self.call(&["retry", path, "--critique", "note.jsonl", "--samples", "1"], &["badly"]).await;
        let mut made = runs_below(self.dir.path()).into_iter().filter(|dir| {
            let noted = |step: &aegis::trajectory::Step| step.request_sent.is_some();
            dir.components().any(|part| part.as_os_str() == "retry")
                && recording::read(dir).is_ok_and(|run| run.trajectory.steps.iter().any(noted))
        });
        let dir = made.next_back().unwrap_or_else(|| panic!("{}: {said}", self.column.name));
        MadeRun { dir, planned: true, said: None }
    }

    /// Writes what a late pass would write of a step, in the column that is about it.
    fn seen_late(&self, run: &Path, step: u64) {
        if self.column.late {
            let step = u32::try_from(step).expect("a step");
            let late = LateStep { step, ambiguous: Some(true), ..LateStep::default() };
            recording::write_identity(run, &[late]).expect("written");
        }
    }

    async fn campaign(&self) -> PathBuf {
        let dir = self.dir.path();
        fs::write(dir.join("tasks.jsonl"), "{\"id\":\"t\",\"question\":\"5 and 7\",\"answer\":\"12\"}\n")
            .expect("written");
        // Killed runs are no clean runs: the program is killed where its answer is wrong.
        let script = "a=$(python3 -I team.py \"$1\"); echo \"$a\"; [ \"$1\" != killed ] || [ \"$a\" = 'ANSWER: 12' ] || kill -9 $$";
        let text = format!(
            "format = 1\nname = \"c\"\nseed = 7\nupstream = \"{}\"\ntasks = {{ file = \"tasks.jsonl\" }}\n\
             verify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\nproof.repeatable = true\n\
             [[system]]\nname = \"team\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"sh\", \"{}\"]\n\
             [[plan]]\nfile = \"plan.toml\"\n",
            self.url, self.column.kind
        );
        fs::write(dir.join("c.toml"), text).expect("written");
        let output = aegis(dir).args(["campaign", "c.toml", "--out", "c"]).output();
        let output = tokio::time::timeout(Duration::from_mins(2), output).await.expect("in time").expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        let report: Value =
            serde_json::from_slice(&fs::read(dir.join("c/report.json")).unwrap_or_else(|_| panic!("{told}")))
                .expect("a report");
        let cells = report["cells"].as_array().expect("cells").clone();
        let injected = cells.iter().find(|cell| cell["class"].is_string() && cell["kind"]["injected"].is_object());
        let injected = injected.or(cells.iter().find(|cell| cell["class"].is_string()));
        let injected = injected.unwrap_or_else(|| panic!("{}: {told}\n{report:#}", self.column.name));
        assert_eq!(injected["class"], self.column.class, "{}: {told}", self.column.name);
        dir.join("c/logs").join(injected["run"].as_str().expect("a run"))
    }

    /// Makes a row of a run as if its label named the step, whatever the gates say: what lint finds in it.
    pub async fn linted(&self, run: &Path) -> Value {
        let set = tempfile::tempdir_in(self.dir.path()).expect("a directory");
        let id = recording::read_manifest(run).expect("a run").run;
        let copy = set.path().join("logs").join(id.as_str());
        fs::create_dir_all(&copy).expect("made");
        for file in fs::read_dir(run).expect("a directory").flatten().filter(|file| file.path().is_file()) {
            fs::copy(file.path(), copy.join(file.file_name())).expect("copied");
        }
        if run.join("blobs").is_dir() {
            fs::create_dir_all(copy.join("blobs")).expect("made");
            for file in fs::read_dir(run.join("blobs")).expect("blobs").flatten() {
                fs::copy(file.path(), copy.join("blobs").join(file.file_name())).expect("copied");
            }
        }
        let recording = recording::read(&copy).expect("a run");
        let mut sample = aegis::dataset::Sample::alone(&recording).expect("a row");
        sample.kind = aegis::dataset::SampleKind::Failure;
        let is_it = |step: &&aegis::dataset::SampleStep| {
            step.agent.as_str() == "adder" && u64::from(step.call) == self.column.call
        };
        let step = sample.steps.iter().find(is_it).expect("the step");
        let label = json!({"status": "delivered", "definition": PLANTED, "seed": 7, "outcome": "failure",
            "errors": [{"agent": "adder", "instance": 0, "step": step.step, "call": step.call,
                "failure_mode": {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"},
                "mode_source": "declared", "side": "response", "operator": "corrupt_number", "injection": 0,
                "before": "0", "after": "1"}]});
        sample.label.get_or_insert_with(|| serde_json::from_value(label).expect("a label"));
        let row = serde_json::to_string(&sample).expect("JSON") + "\n";
        fs::write(set.path().join("dataset.jsonl"), row).expect("written");
        self.json(&["lint", set.path().to_str().expect("text"), "--format", "json"]).await
    }
}

/// The words of a refusal as they stand where a run is shown.
pub fn words(answer: NoLabel, planned: bool) -> String {
    if planned { answer.to_string() } else { "no plan".to_owned() }
}

/// The recordings below a directory, in order of their paths.
fn runs_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        if dir.join("run.json").is_file() {
            found.push(dir.clone());
        }
        open.extend(
            fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|p| p.is_dir()),
        );
    }
    found.sort();
    found
}
