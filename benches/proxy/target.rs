//! What is measured: the direct way, nginx as a plain reverse proxy, and Aegis with recording on.
//! Each runs with one worker, and ends when it is dropped.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use crate::chat::INSTRUCTION;
use crate::conversation::{AGENTS, introduction};
use crate::process::Tree;

/// How long a proxy may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A way from the load to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// No proxy.
    Direct,
    /// nginx, unbuffered, without a log.
    Nginx,
    /// Aegis, recording, agents matched.
    Aegis,
    /// The same with a plan that edits every request.
    #[value(skip)]
    AegisEditing,
    /// Aegis, told of no run: lineage finds the run of each request.
    #[value(skip)]
    AegisInferring,
    /// An earlier Aegis, the three ways.
    #[value(skip)]
    Last,
    /// Editing.
    #[value(skip)]
    LastEditing,
    /// Told of no run.
    #[value(skip)]
    LastInferring,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Aegis => "Aegis",
            Self::AegisEditing => "Aegis, editing",
            Self::AegisInferring => "Aegis, by lineage",
            Self::Last => "the last Aegis",
            Self::LastEditing => "the last, editing",
            Self::LastInferring => "the last, by lineage",
        }
    }

    pub(crate) fn is_aegis(self) -> bool {
        self.last().is_some()
    }

    /// The same way through the program that is measured beside it.
    pub(crate) fn last(self) -> Option<Self> {
        match self {
            Self::Aegis => Some(Self::Last),
            Self::AegisEditing => Some(Self::LastEditing),
            Self::AegisInferring => Some(Self::LastInferring),
            _ => None,
        }
    }

    pub(crate) fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::LastEditing | Self::LastInferring)
    }

    pub(crate) fn edits(self) -> bool {
        matches!(self, Self::AegisEditing | Self::LastEditing)
    }

    fn infers(self) -> bool {
        matches!(self, Self::AegisInferring | Self::LastInferring)
    }
}

/// Where everything of a run of this program lies.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The measured program.
    pub(crate) aegis: PathBuf,
    /// An earlier one, measured in turn with it.
    pub(crate) last: Option<PathBuf>,
    pub(crate) upstream: u16,
    /// Directories of targets are made below it. They stay until all is measured: ext4 gives away no inode in the five
    /// seconds after its file was deleted, and whoever creates a file then looks past all of them. A round that followed the
    /// removal of ten thousand files measured that, at three times the cost of a run.
    pub(crate) scratch: PathBuf,
}

/// A running target.
pub(crate) struct Target {
    pub(crate) port: u16,
    tree: Option<Tree>,
    pub(crate) directory: PathBuf,
    /// From the start of the process to the first accepted connection.
    pub(crate) started_in: Duration,
}

impl Target {
    /// Starts `way` in a fresh directory that is called like this.
    pub(crate) fn start(site: &Site, way: Way, name: &str) -> io::Result<Self> {
        let mut number = 0;
        let directory = loop {
            let directory = site.scratch.join(format!("{name}-{number}"));
            if !directory.exists() {
                break directory;
            }
            number += 1;
        };
        fs::create_dir_all(&directory)?;
        Self::start_in(site, way, directory)
    }

    /// Starts `way` in a directory that is there.
    pub(crate) fn start_in(site: &Site, way: Way, directory: PathBuf) -> io::Result<Self> {
        let start = Instant::now();
        let port = if way == Way::Direct { site.upstream } else { free_port()? };
        let tree = match way {
            Way::Direct => None,
            Way::Nginx => Some(nginx(site, port, &directory)?),
            _ if way.is_last() => {
                let last = site.last.as_ref().ok_or_else(|| Error::other("no earlier program was named"))?;
                Some(aegis(last, site, port, &directory, way)?)
            }
            _ => Some(aegis(&site.aegis, site, port, &directory, way)?),
        };
        let mut target = Self { port, tree, directory, started_in: Duration::ZERO };
        target.wait(start)?;
        target.started_in = start.elapsed();
        Ok(target)
    }

    /// The process tree; `None` for the direct way.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    /// Where Aegis records.
    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// Ends the target in an orderly way; how long that took. `None`: it failed to.
    pub(crate) fn stop(&mut self) -> Option<Duration> {
        self.tree.as_mut().map_or(Some(Duration::ZERO), |tree| tree.stop(PATIENCE))
    }

    /// Ends the runs that a stopped Aegis has left open; how long that took. `None`: it failed to.
    pub(crate) fn end_runs(&self, aegis: &Path) -> Option<Duration> {
        let start = Instant::now();
        let runs: Vec<PathBuf> = fs::read_dir(self.logs()).ok()?.flatten().map(|entry| entry.path()).collect();
        // As many as a command line holds.
        for some in runs.chunks(500) {
            let mut command = Command::new(aegis);
            command.args(["--quiet", "runs", "end"]).args(some).stdout(Stdio::null());
            command.stderr(Stdio::null());
            command.status().ok().filter(ExitStatus::success)?;
        }
        Some(start.elapsed())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.kill();
        }
    }

    fn wait(&mut self, start: Instant) -> io::Result<()> {
        loop {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            if self.tree.as_mut().is_some_and(Tree::has_ended) || start.elapsed() > PATIENCE {
                let said = fs::read_to_string(self.directory.join("output")).unwrap_or_default();
                return Err(Error::other(format!("the target did not start: {}", said.trim())));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn start(command: &mut Command, directory: &Path) -> io::Result<Tree> {
    let output = fs::OpenOptions::new().create(true).append(true).open(directory.join("output"))?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    Tree::start(command)
}

fn nginx(site: &Site, port: u16, directory: &Path) -> io::Result<Tree> {
    let config = directory.join("nginx.conf");
    let (here, upstream) = (directory.display(), site.upstream);
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {here}/{kind};\n"))
        .concat();
    fs::write(
        &config,
        format!(
            "user root; daemon off; worker_processes 1; pid {here}/pid; error_log {here}/error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
{temporary}  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_body_buffer_size 512k;
  upstream backend {{ server 127.0.0.1:{upstream}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_request_buffering off;
      proxy_buffering off;
      proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;
    }}
  }}
}}
"
        ),
    )?;
    start(Command::new("nginx").arg("-c").arg(&config).arg("-p").arg(directory), directory)
}

fn aegis(program: &Path, site: &Site, port: u16, directory: &Path, way: Way) -> io::Result<Tree> {
    let config = directory.join("aegis.toml");
    let roster = AGENTS
        .map(|agent| format!("[[agent]]\nname = \"{agent}\"\nsystem_contains = \"{}\"\n\n", introduction(agent)))
        .concat();
    fs::write(&config, roster)?;
    let mut command = Command::new(program);
    command.env("AEGIS_WORKERS", "1").current_dir(directory).arg("serve");
    command.arg("--upstream").arg(format!("http://127.0.0.1:{}", site.upstream));
    command.arg("--mcp").arg(format!("calc=http://127.0.0.1:{}/mcp", site.upstream));
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.arg("--log-dir").arg(directory.join("logs")).arg("--config").arg(&config);
    if !way.infers() {
        // Requests that name no run are this one's: what a hop costs, not what telling runs apart costs.
        command.arg("--run").arg("bench");
    }
    if way.edits() {
        let plan = directory.join("plan.toml");
        fs::write(&plan, editing_plan())?;
        command.arg("--plan").arg(plan);
    }
    start(&mut command, directory)
}

/// Appends the instruction to the last user message of every request.
fn editing_plan() -> String {
    format!(
        "format = 1
seed = 7

[[injection]]
agent = \"*\"
failure_mode = \"FM-2.2\"
when.always = true
manipulator.append_instruction = {{ text = \"{INSTRUCTION}\", role = \"user\" }}
"
    )
}
