//! `command`: a program says, by its exit code; for code, its unit tests.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::Path,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, UnnamedVerdict, Surroundings, excerpt, sandbox};
use crate::launch::{Ended, Ending, Launch};

/// Runs a shell line in a fresh directory. Exit code 0: success; 1: failure; other: unknown. The output is on standard
/// input and in the file `output_as`. The environment is `AEGIS_EXPECTED`, `AEGIS_QUESTION`, `AEGIS_RUN_DIR` and
/// `PATH`. Child processes end with it. Where namespaces are available, it has no network and sees only its own
/// processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Line for `sh -c`, for example `python3 -B tests.py`.
    pub run: String,
    /// Further files in the directory: name = content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Name of the file with the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_as: Option<String>,
    /// Whether only the last fenced block of the output counts, if there is one.
    #[serde(default)]
    pub code: bool,
    /// Timeout in seconds.
    #[serde(default = "ten")]
    pub timeout_s: f64,
    /// Maximum memory of each process in megabytes.
    #[serde(default = "memory")]
    pub memory_mb: u64,
    /// Verdict on a timeout: a solution that hangs has failed its tests.
    #[serde(default)]
    pub on_timeout: OnTimeout,
}

/// Verdict on a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The task is not solved.
    #[default]
    Failure,
    /// It cannot be told.
    Unknown,
}

/// The largest file that the line may write, in blocks of 512 bytes.
const FILE_BLOCKS: u32 = 1 << 17;
/// The longest text that is passed as a variable, in bytes.
const VARIABLE_MAX: usize = 64 << 10;
/// The end of the line's own output that is kept as evidence, in characters.
const EVIDENCE: usize = 300;

fn ten() -> f64 {
    10.0
}

fn memory() -> u64 {
    2048
}

impl Command {
    /// What is wrong with the parameters, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        let names = self.files.keys().chain(&self.output_as);
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
        if let Some(name) = names.into_iter().find(|name| !plain(name)) {
            return Some(format!("`{name}` is no plain file name"));
        }
        if self.run.trim().is_empty() {
            return Some("`run` is empty: expected a shell line".to_owned());
        }
        let fits = self.timeout_s.is_finite() && self.timeout_s > 0.0 && self.timeout_s <= 86400.0;
        (!fits).then(|| format!("`timeout_s = {}`: expected seconds above 0, at most 86400", self.timeout_s))
    }

    pub(super) async fn run(&self, case: &Case<'_>, surroundings: &Surroundings) -> UnnamedVerdict {
        if let Some(problem) = self.problem() {
            return UnnamedVerdict::unknown(problem);
        }
        let output = if self.code { code_in(case.output) } else { case.output };
        let dir = match self.furnish(output) {
            Ok(dir) => dir,
            Err(error) => return UnnamedVerdict::unknown(format!("cannot make a directory for the check: {error}")),
        };
        let limit = Duration::from_secs_f64(self.timeout_s);
        let launch = self.launch(dir.path(), output, case, surroundings, limit);
        match launch.run(std::future::pending()).await {
            Ok(ended) => self.read_output(&ended, dir.path()),
            Err(error) => UnnamedVerdict::unknown(format!("cannot run the check: {error}")),
        }
    }

    fn furnish(&self, output: &str) -> io::Result<tempfile::TempDir> {
        let dir = tempfile::Builder::new().prefix("aegis-check-").tempdir()?;
        for (name, text) in &self.files {
            fs::write(dir.path().join(name), text)?;
        }
        if let Some(name) = &self.output_as {
            fs::write(dir.path().join(name), output)?;
        }
        Ok(dir)
    }

    fn launch(
        &self,
        dir: &Path,
        output: &str,
        case: &Case<'_>,
        surroundings: &Surroundings,
        limit: Duration,
    ) -> Launch {
        let mut command: Vec<OsString> = ["env", "-i", "LANG=C.UTF-8"].map(OsString::from).to_vec();
        let mut set = |name: &str, value: &std::ffi::OsStr| {
            let mut variable = OsString::from(name);
            variable.push("=");
            variable.push(value);
            command.push(variable);
        };
        set("PATH", &std::env::var_os("PATH").unwrap_or_default());
        set("HOME", dir.as_os_str());
        set("TMPDIR", dir.as_os_str());
        for (name, text) in [("AEGIS_EXPECTED", case.expected), ("AEGIS_QUESTION", case.question)] {
            if text.len() <= VARIABLE_MAX && !text.contains('\0') {
                set(name, text.as_ref());
            }
        }
        if let Some(run_dir) = &surroundings.run_dir {
            set("AEGIS_RUN_DIR", run_dir.as_os_str());
        }
        let seconds = limit.as_secs() + 1;
        let memory = self.memory_mb.saturating_mul(1024);
        // Limits of the shell, so that what it starts inherits them; errors are evidence too.
        let line = format!(
            "ulimit -t {seconds}; ulimit -v {memory}; ulimit -f {FILE_BLOCKS}; exec 2>&1\n{}",
            self.run
        );
        let command = sandbox::command(command, &line);
        Launch {
            directory: Some(dir.to_owned()),
            limit: Some(limit),
            input: Some(output.as_bytes().to_vec()),
            hush: true,
            ..Launch::new(command)
        }
    }

    fn read_output(&self, ended: &Ended, dir: &Path) -> UnnamedVerdict {
        // The directory has another name each time; evidence has the same words each time.
        let told = String::from_utf8_lossy(&ended.output).replace(&*dir.to_string_lossy(), ".");
        let told = told.trim();
        let skipped = told.chars().count().saturating_sub(EVIDENCE);
        let end: String = told.chars().skip(skipped).collect();
        let evidence = |how: String| if end.is_empty() { how } else { format!("{how}: {}", tail(&end)) };
        match ended.ending {
            Ending::Exited(0) => UnnamedVerdict::new(true, evidence("the check passed".to_owned())),
            Ending::Exited(1) => UnnamedVerdict::new(false, evidence("the check failed".to_owned())),
            Ending::Exited(code) => UnnamedVerdict::unknown(evidence(format!("the check ended with code {code}"))),
            Ending::Signalled(signal) => UnnamedVerdict::unknown(evidence(format!("the check was ended by signal {signal}"))),
            Ending::Interrupted => UnnamedVerdict::unknown("the check was interrupted"),
            Ending::TimedOut => {
                let how = evidence(format!("the check did not end within {} s", self.timeout_s));
                match self.on_timeout {
                    OnTimeout::Failure => UnnamedVerdict::new(false, how),
                    OnTimeout::Unknown => UnnamedVerdict::unknown(how),
                }
            }
        }
    }
}

/// The end of a text in one line, in back quotes.
fn tail(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skipped = line.chars().count().saturating_sub(super::EXCERPT);
    excerpt(&line.chars().skip(skipped).collect::<String>())
}

/// The last fenced block of a text, else the text.
fn code_in(text: &str) -> &str {
    let mut last = None;
    let mut open: Option<usize> = None;
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        let after = place + line.len();
        if line.trim_start().starts_with("```") {
            match open.take() {
                Some(from) => last = Some((from, place)),
                None => open = Some(after),
            }
        }
        place = after;
    }
    // A block that the answer's length cut off still counts.
    let last = last.or(open.map(|from| (from, text.len())));
    last.and_then(|(from, to)| text.get(from..to)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::trajectory::Verdict::{self, Failure, Success, Unknown};

    fn line(run: &str) -> Command {
        Command {
            run: run.to_owned(),
            files: BTreeMap::new(),
            output_as: None,
            code: false,
            timeout_s: 5.0,
            memory_mb: 2048,
            on_timeout: OnTimeout::Failure,
        }
    }

    async fn check(command: &Command, output: &str) -> UnnamedVerdict {
        let case = Case { question: "q", expected: "84", output };
        command.run(&case, &Surroundings::default()).await
    }

    #[tokio::test]
    async fn exit_codes_say() {
        let table: &[(&str, &str, Verdict)] = &[
            (r#"test "$(cat)" = "$AEGIS_EXPECTED""#, "84", Success),
            (r#"test "$(cat)" = "$AEGIS_EXPECTED""#, "85", Failure),
            ("exit 3", "", Unknown),
            ("kill -9 $$", "", Unknown),
            ("no-such-program-at-all", "", Unknown),
            (r#"test -z "$CARGO_MANIFEST_DIR$OPENAI_API_KEY""#, "", Success),
            (r#"test "$(ulimit -v) $(ulimit -t) $(ulimit -f)" = "2097152 6 131072""#, "", Success),
            ("", "", Unknown),
        ];
        for (run, output, verdict) in table {
            let said = check(&line(run), output).await;
            assert_eq!(said.verdict, *verdict, "{run}: {}", said.evidence);
        }
    }

    #[tokio::test]
    async fn code_is_tested_in_a_directory_of_its_own() {
        let command = Command {
            files: BTreeMap::from([("tests.sh".to_owned(), "test \"$(sh solution.sh 6 7)\" = 42".to_owned())]),
            output_as: Some("solution.sh".to_owned()),
            code: true,
            ..line("sh tests.sh")
        };
        let good = "First try:\n```sh\necho $1\n```\nBetter:\n```sh\necho $(($1 * $2))\n```\n";
        assert_eq!(check(&command, good).await.verdict, Success);
        assert_eq!(check(&command, "echo $(($1 * $2))").await.verdict, Success, "not fenced");
        assert_eq!(check(&command, "```sh\necho $(($1 * $2))").await.verdict, Success, "cut off");
        assert_eq!(check(&command, "```sh\necho $(($1 + $2))\n```").await.verdict, Failure);
        assert_eq!(check(&command, "no code at all").await.verdict, Failure);
    }

    #[tokio::test]
    async fn what_hangs_or_forks_ends_with_its_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let marks = dir.path().join("marks");
        let fork = format!("(while :; do echo x >> {}; sleep 0.05; done) & sleep 60", marks.display());
        for run in ["sleep 60", "while :; do :; done", fork.as_str()] {
            let begun = Instant::now();
            let hangs = Command { timeout_s: 0.4, ..line(run) };
            let said = check(&hangs, "").await;
            assert_eq!(said.verdict, Failure, "{}", said.evidence);
            assert!(begun.elapsed() < Duration::from_secs(30), "{run}");
            let lenient = Command { on_timeout: OnTimeout::Unknown, ..hangs };
            assert_eq!(check(&lenient, "").await.verdict, Unknown);
        }
        let before = fs::read(&marks).expect("it ran").len();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(fs::read(&marks).expect("it ran").len(), before, "what it started is gone");
    }

    #[tokio::test]
    async fn a_child_that_stays_behind_is_ended_too() {
        let begun = Instant::now();
        let said = check(&line("sleep 60 & exit 0"), "").await;
        assert_eq!(said.verdict, Success);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn a_check_sees_no_parent_no_network_and_leaves_nothing_behind() {
        if !sandbox::is_there() {
            return assert!(sandbox::words().contains("no sandbox here"));
        }
        let dir = tempfile::tempdir().expect("a directory");
        let marks = dir.path().join("marks");
        let escapes = format!("setsid sh -c 'while :; do echo x >> {}; sleep 0.05; done' & sleep 0.3", marks.display());
        let said = check(&line(&escapes), "").await;
        assert_eq!(said.verdict, Success, "{}", said.evidence);
        let before = fs::read(&marks).expect("it ran").len();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(fs::read(&marks).expect("it ran").len(), before, "what left its group is gone too");
        let own = std::process::id();
        for (run, verdict) in [
            (format!("test -e /proc/{own}/environ && exit 1; ls /proc/[0-9]*/environ | wc -l"), Success),
            ("cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -q CARGO_MANIFEST_DIR && exit 1; exit 0".to_owned(), Success),
            ("grep -c : /proc/net/dev | grep -qx 1".to_owned(), Success),
            ("exit 1".to_owned(), Failure),
        ] {
            let said = check(&line(&run), "").await;
            assert_eq!(said.verdict, verdict, "{run}: {}", said.evidence);
        }
    }

    #[tokio::test]
    async fn evidence_names_no_directory() {
        let said = check(&line("pwd; cat no-such-file; exit 1"), "").await;
        assert!(said.evidence.contains("`. cat: no-such-file"), "{}", said.evidence);
    }

    #[tokio::test]
    async fn output_and_files_are_bounded() {
        let said = check(&line("head -c 30000000 /dev/zero | tr '\\0' x; exit 1"), "").await;
        assert_eq!(said.verdict, Failure);
        assert!(said.evidence.len() < 1000);
        let said = check(&line("head -c 100000000 /dev/zero > big || exit 1"), "").await;
        assert_ne!(said.verdict, Success, "{}", said.evidence);
    }

    #[tokio::test]
    async fn names_stay_in_the_directory() {
        for name in ["../x", "/etc/x", "a/b", "", ".hidden"] {
            let command = Command { output_as: Some(name.to_owned()), ..line("true") };
            assert_eq!(check(&command, "x").await.verdict, Unknown, "{name}");
        }
    }
}
