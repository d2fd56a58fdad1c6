//! `aegis run` before a terminal, and its end by signals. The terminal is one of `script` (util-linux).

use std::{path::Path, process::Stdio};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    lab::{find, until, within},
    program::AEGIS,
};

/// A command line on a terminal of its own.
struct Screen {
    script: Child,
    keys: ChildStdin,
    shown: ChildStdout,
    seen: Vec<u8>,
}

impl Screen {
    fn of(dir: &Path, line: &str) -> Self {
        let mut command = Command::new("script");
        command.args(["-qefc", line, "/dev/null"]).current_dir(dir).kill_on_drop(true);
        command.env("SHELL", "/bin/sh").env("HOME", dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Who runs the tests may have settings of their own.
        command.env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE").env("TERM", "xterm");
        let mut script = command.spawn().expect("`script` of util-linux");
        let (keys, shown) = (script.stdin.take().expect("keys"), script.stdout.take().expect("a screen"));
        Self { script, keys, shown, seen: Vec::new() }
    }

    async fn shows(&mut self, text: &str) {
        while find(&self.seen, text.as_bytes()).is_none() {
            let read = within(self.shown.read_buf(&mut self.seen)).await.expect("a screen");
            assert!(read > 0, "{text}: {}", String::from_utf8_lossy(&self.seen));
        }
    }

    async fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.expect("pressed");
    }

    async fn ended(mut self) -> Option<i32> {
        let _ = within(self.shown.read_to_end(&mut self.seen)).await;
        within(self.script.wait()).await.expect("it ends").code()
    }
}

/// A campaign whose cells take a while.
fn long_campaign(dir: &Path) {
    let tasks = [2, 3, 4, 5].map(|count| {
        let question = format!("A box holds 6 eggs. How many eggs do {count} boxes hold?");
        format!("{{\"id\": \"t{count}\", \"question\": \"{question}\", \"answer\": \"{}\"}}\n", 6 * count)
    });
    std::fs::write(dir.join("t.jsonl"), tasks.concat()).expect("written");
    let text = "format = 1\nname = \"c\"\nupstream = \"simulator\"\ntasks.file = \"t.jsonl\"\nclean.repeats = 2\n\
                verify.answer = 'ANSWER: (.*)'\nverify.checks = [{ numeric = {} }]\n[[system]]\nname = \"s\"\n\
                command = [\"sh\", \"-c\", 'sleep 0.4; exec \"$1\" example pipeline --task \"$2\"', \"sh\", \"{aegis}\", \"{question}\"]\n\
                [[plan]]\nfile = \"p.toml\"\n";
    std::fs::write(dir.join("c.toml"), text).expect("written");
    let plan = "[[injection]]\nagent = \"*\"\nwhen.call = 0\nfault.latency = { ms = 1 }\n";
    std::fs::write(dir.join("p.toml"), plan).expect("written");
}

/// How far it is and how long it takes still, on one line that is drawn anew; nothing of it where nobody looks.
#[tokio::test]
async fn a_long_campaign_shows_how_long_it_will_take() {
    let dir = tempfile::tempdir().expect("a directory");
    long_campaign(dir.path());
    let line = format!("stty cols 120; {AEGIS} campaign c.toml --out there");
    let mut screen = Screen::of(dir.path(), &line);
    screen.shows(" of 4 ").await;
    screen.shows(" so far, about ").await;
    screen.shows("s to go").await;
    screen.shows("1 of 4").await;
    screen.shows("RESULT").await;
    screen.ended().await;

    let mut command = Command::new(AEGIS);
    command.args(["campaign", "c.toml", "--out", "elsewhere"]).current_dir(dir.path()).env("HOME", dir.path());
    let done = within(command.stdin(Stdio::null()).output()).await.expect("it ran");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("RESULT"), "{said}");
    for drawn in ["to go", "so far", "\u{1b}", "\r"] {
        assert!(!said.contains(drawn), "{drawn:?}: {said}");
    }
}

/// Verdicts, errors and heads of tables have colours on a terminal, unless `NO_COLOR` or `--color` says otherwise; elsewhere
/// there are none, unless that is asked for.
#[tokio::test]
async fn verdicts_have_colours_on_a_terminal_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let task = "example pipeline --task 'A box holds 6 eggs. How many eggs do 7 boxes hold?'";
    let recorded = format!("{AEGIS} run --upstream simulator --run r --check false -- {AEGIS} {task}");
    std::fs::write(dir.path().join("p.toml"), "[[injection]]\nagent = \"x\"\nwhen.call = 0\nfault.reset = {}\n")
        .expect("written");
    let test = format!("test p.toml --upstream simulator --name t --overwrite -- {AEGIS} {task}");
    let mut screen = Screen::of(dir.path(), &recorded);
    screen.shows("RESULT  \u{1b}[31mfinding\u{1b}[0m").await;
    screen.ended().await;
    for (line, painted) in [
        ("show nothing", "\u{1b}[31merror\u{1b}[0m: "),
        ("runs logs", "\u{1b}[31mr "),
        ("show logs/r", "\u{1b}[31mfailure"),
        ("agents logs/r", "\u{1b}[2magent"),
        ("plan list hang", "\u{1b}[1mhang\u{1b}[0m"),
        ("doctor --upstream simulator", "\u{1b}[32mok "),
        (&test, "\u{1b}[33minconclusive\u{1b}[0m"),
    ] {
        let mut screen = Screen::of(dir.path(), &format!("{AEGIS} {line}"));
        screen.shows(painted).await;
        screen.ended().await;
        for plain in [
            format!("NO_COLOR=1 {AEGIS} {line}"),
            format!("TERM=dumb {AEGIS} {line}"),
            format!("{AEGIS} --color never {line}"),
        ] {
            let mut screen = Screen::of(dir.path(), &plain);
            let _ = within(screen.shown.read_to_end(&mut screen.seen)).await;
            let shown = String::from_utf8_lossy(&screen.seen).into_owned();
            assert!(!shown.contains("\u{1b}[0m"), "{plain}: {shown:?}");
            assert!(!plain.starts_with("TERM=dumb") || !shown.contains('\u{1b}'), "nothing is drawn there: {shown:?}");
        }
        let piped = async |said: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{said} {AEGIS} {line}")]).current_dir(dir.path()).env("HOME", dir.path());
            command.env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
            let done = within(command.stdin(Stdio::null()).output()).await.expect("it ran");
            String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
        };
        assert!(!piped("").await.contains('\u{1b}'), "{line}");
        assert!(piped("CLICOLOR_FORCE=1").await.contains(painted), "{line}");
    }
}

fn run(program: &str) -> String {
    format!("{AEGIS} run --upstream simulator --log-dir logs --run r -- {program}")
}

#[tokio::test]
async fn a_program_may_ask_the_user() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut screen = Screen::of(dir.path(), &run("sh -c 'printf you:; read -r line; echo \"<$line>\"'"));
    screen.shows("you:").await;
    screen.press("hello\n").await;
    screen.shows("<hello>").await;
    assert_eq!(screen.ended().await, Some(3), "no model call was made");
}

/// Until the program has the terminal: keys that are pressed before that are for Aegis.
const LENT: &str = "until read -r stat < /proc/$$/stat && set -- ${stat##*) } && [ \"$6\" = $$ ]; do :; done";

#[tokio::test]
async fn ctrl_c_reaches_the_program_as_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = format!("sh -c 'trap \"echo heard; exit 5\" INT; {LENT}; echo ready; while :; do sleep 1; done'");
    let mut screen = Screen::of(dir.path(), &run(&program));
    screen.shows("ready").await;
    screen.press("\x03").await;
    screen.shows("heard").await;
    screen.shows("the command ended with 5").await;
    assert_eq!(screen.ended().await, Some(3));
    // A shell that hears of it just before it starts a command thinks of it when that has ended.
    let program = format!("sh -c '{LENT}; echo ready; while :; do sleep 1; done'");
    let mut screen = Screen::of(dir.path(), &run(&program).replace("--run r", "--run s"));
    screen.shows("ready").await;
    screen.press("\x03").await;
    assert_eq!(screen.ended().await, Some(130), "it was meant for both");
    assert!(aegis::recording::read(&dir.path().join("logs/s")).expect("a recording").sealed);
}

/// Ctrl-Z gives the shell back, `fg` the program.
#[tokio::test]
async fn a_program_can_be_stopped_and_resumed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut screen = Screen::of(dir.path(), "sh -i");
    screen.press(&format!("{}\n", run("sh -c 'printf yo; echo u:; read -r line; echo \"<$line>\"'"))).await;
    screen.shows("you:").await;
    screen.press("\x1a").await;
    screen.shows("topped").await;
    screen.press("echo at the sh''ell\n").await;
    screen.shows("at the shell").await;
    screen.press("fg\n").await;
    screen.press("hello\n").await;
    screen.shows("<hello>").await;
    screen.press("exit\n").await;
    screen.ended().await;
}

/// A program whose process number is in `child`, some time after its start: it is guarded a moment after it runs, and a
/// busy machine makes that moment long.
async fn long_run(dir: &Path) -> (Child, Pid) {
    // Who runs the tests may ignore HUP (`nohup`), and that is inherited.
    let mut command = Command::new("env");
    command.current_dir(dir).env("HOME", dir).stdin(Stdio::null()).kill_on_drop(true);
    command.args([
        "--default-signal=HUP",
        AEGIS,
        "run",
        "--upstream",
        "simulator",
        "--log-dir",
        "logs",
        "--run",
        "r",
        "--",
    ]);
    command.args(["sh", "-c", "sleep 60 & echo $! > made; sleep 0.3; mv made child; wait"]);
    let aegis = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until("the program runs", || dir.join("child").exists()).await;
    let child = std::fs::read_to_string(dir.join("child")).expect("a number").trim().parse().expect("a number");
    (aegis, Pid::from_raw(child))
}

fn signal(aegis: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(aegis.id().expect("it runs")).expect("an id")), signal).expect("sent");
}

/// Whether a process is there, and no zombie that nobody has waited for yet.
fn lives(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[tokio::test]
async fn every_signal_ends_the_program_and_seals_the_run() {
    for (sent, code) in [(Signal::SIGHUP, 129), (Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut aegis, child) = long_run(dir.path()).await;
        signal(&aegis, sent);
        assert_eq!(within(aegis.wait()).await.expect("it ends").code(), Some(code), "{sent}");
        until("the child is gone", || !lives(child)).await;
        assert!(aegis::recording::read(&dir.path().join("logs/r")).expect("a recording").sealed, "{sent}");
    }
}

#[tokio::test]
async fn a_kill_leaves_no_orphans() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut aegis, child) = long_run(dir.path()).await;
    signal(&aegis, Signal::SIGKILL);
    within(aegis.wait()).await.expect("it ends");
    until("the child is gone", || !lives(child)).await;
}

/// What is started to outlive its terminal does.
#[tokio::test]
async fn an_ignored_hangup_stays_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("nohup");
    command.args([AEGIS, "run", "--upstream", "simulator", "--log-dir", "logs", "--", "sh", "-c"]);
    command.args(["kill -HUP $PPID; echo still here"]).current_dir(dir.path()).env("HOME", dir.path());
    let ran = within(command.stdin(Stdio::null()).output()).await.expect("it ran");
    assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("still here"));
}
