//! The real program as a child process.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::lab::within;

/// The program.
pub const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");

/// `aegis serve` on a free port.
pub struct Served {
    pub address: SocketAddr,
    /// Where it listens for outcomes and tells counts, if it does.
    pub control: Option<SocketAddr>,
    /// What it says on standard error goes here.
    pub talk: PathBuf,
    child: Child,
}

/// The program with none of this process's own settings.
pub fn aegis(dir: &Path) -> Command {
    let mut command = Command::new(AEGIS);
    clean(&mut command, dir);
    command
}

fn clean(command: &mut Command, dir: &Path) {
    command.current_dir(dir).env_clear().env("HOME", dir).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).kill_on_drop(true);
}

impl Served {
    /// Starts the program in a directory.
    pub async fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_as(aegis(dir), "serve", dir, arguments).await
    }

    /// Starts another verb that listens.
    pub async fn start_verb(verb: &str, dir: &Path) -> Self {
        Self::start_as(aegis(dir), verb, dir, &[]).await
    }

    /// Starts `replay` of a run without a command.
    pub async fn start_replay(dir: &Path, run: &str) -> Self {
        Self::start_as(aegis(dir), "replay", dir, &[run]).await
    }

    /// Starts it with settings in its environment.
    pub async fn start_with(dir: &Path, arguments: &[&str], environment: &[(&str, String)]) -> Self {
        let mut command = aegis(dir);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_as(command, "serve", dir, arguments).await
    }

    /// Starts it by a shell, after these words of the shell's.
    pub async fn start_after(shell: &str, dir: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        clean(&mut command, dir);
        command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), AEGIS]);
        Self::start_as(command, "serve", dir, arguments).await
    }

    async fn start_as(command: Command, verb: &str, dir: &Path, arguments: &[&str]) -> Self {
        Self::start_alone(command, verb, dir, &[&["--listen", "127.0.0.1:0"], arguments].concat()).await
    }

    /// Starts a program that listens, with these arguments and no others.
    pub async fn start_alone(mut command: Command, verb: &str, dir: &Path, arguments: &[&str]) -> Self {
        let talk = dir.join("talk.txt");
        let file = std::fs::File::options().create(true).append(true).open(&talk).expect("a file");
        command.arg(verb).args(arguments).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let line = within(lines.next_line()).await.expect("readable");
        let line = line.unwrap_or_else(|| panic!("it ended: {}", std::fs::read_to_string(&talk).unwrap_or_default()));
        let said: serde_json::Value = serde_json::from_str(&line).expect("a JSON line");
        let named = |what: &str| said[what].as_str().and_then(|address| address.parse().ok());
        Self { address: named("listen").expect("an address"), control: named("control"), talk, child }
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("running")
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().cast_signed()), signal).expect("sent");
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        within(self.child.wait()).await.expect("waited")
    }

    /// Ends it in order and gives its exit code.
    pub async fn stop(mut self) -> Option<i32> {
        self.signal(Signal::SIGTERM);
        self.ended().await.code()
    }

    /// Ends it in order, and then the runs of these directories. Gives its exit code.
    pub async fn stop_and_end(self, dir: &Path, runs: &[&str]) -> Option<i32> {
        let code = self.stop().await;
        let (ended, out, talk) = verb(dir, &[&["runs", "end"], runs].concat()).await;
        assert_eq!(ended, Some(0), "{out}{talk}");
        code
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.talk).unwrap_or_default()
    }

    /// A figure of the process in kB, for example `VmHWM`, the most memory it ever held.
    pub fn kilobytes(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).expect("the figure");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

/// Runs a verb to its end: exit code, standard output, standard error.
pub async fn verb(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = within(aegis(dir).args(arguments).output()).await.expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let out = text(&output.stdout);
    crate::contract::check_output(arguments, &out);
    (output.status.code(), out, text(&output.stderr))
}

/// The beginning of a program in Python: `ask` makes a call of an agent with these messages and gives the words of the reply.
pub const ASK: &str = r#"
import http.client, json, os, re
host, path = re.match(r"http://([^/]+)(/.*)", os.environ["OPENAI_BASE_URL"]).groups()
def ask(agent, *messages):
    call = http.client.HTTPConnection(host)
    headers = {"content-type": "application/json", "x-aegis-agent": agent}
    call.request("POST", path + "/chat/completions", json.dumps({"model": "m", "messages": messages}), headers)
    answer = json.loads(call.getresponse().read())
    return answer["choices"][0]["message"]["content"] if "choices" in answer else "nothing"
"#;

/// Writes `c.toml`, with all that it names: a campaign over one task, the sum of 5 and 7, of a team that is declared to repeat
/// itself, with one plan.
pub fn write_campaign(dir: &Path, url: &str, command: &[&str], plan: &str) {
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write("plan.toml", plan);
    write("tasks.jsonl", "{\"id\":\"t\",\"question\":\"5 and 7\",\"answer\":\"12\"}\n");
    write(
        "c.toml",
        &format!(
            "format = 1\nname = \"c\"\nseed = 7\nupstream = \"{url}\"\ntasks = {{ file = \"tasks.jsonl\" }}\n\
             verify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\nproof.repeatable = true\n\
             [[system]]\nname = \"team\"\ncommand = {command:?}\n[[plan]]\nfile = \"plan.toml\"\n"
        ),
    );
}
