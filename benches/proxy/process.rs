//! What a process tree has used: CPU time by its POSIX clock (threads that ended included), peak
//! resident memory, and what everybody else on the machine used meanwhile.

use std::fs;
use std::io;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// The processor of load and upstream, and that of the proxies.
const OURS: usize = 0;
const THEIRS: usize = 1;

/// A process that this program started, and everything it started in turn. Killed when dropped.
pub(crate) struct Tree {
    child: Child,
}

impl Tree {
    /// Starts `command` on the processor of the proxies.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // A child inherits the affinity of the thread that starts it.
        pin(THEIRS);
        let child = command.spawn();
        pin(OURS);
        Ok(Self { child: child? })
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The first process and its descendants.
    pub(crate) fn members(&self) -> Vec<Pid> {
        let mut found = vec![pid(&self.child)];
        let mut next = 0;
        while next < found.len() {
            let parent = found[next];
            found.extend(children(parent));
            next += 1;
        }
        found
    }

    /// CPU time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        self.members().into_iter().map(cpu_of).sum()
    }

    /// Forgets the peak of resident memory, so that the next one is of what follows.
    pub(crate) fn forget_peak(&self) {
        for member in self.members() {
            drop(fs::write(format!("/proc/{member}/clear_refs"), "5"));
        }
    }

    /// The sum of the peaks of resident memory, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.members().into_iter().filter_map(|member| status_kilobytes(member, "VmHWM:")).sum::<u64>() * 1024
    }

    /// SIGKILL, at once.
    pub(crate) fn kill(&mut self) {
        for member in self.members() {
            let _ = kill(member, Signal::SIGKILL);
        }
        drop(self.child.wait());
    }

    /// SIGTERM and the wait for the end; returns how long that took, or `None` if it had to be killed
    /// or ended with a failure.
    pub(crate) fn stop(&mut self, patience: Duration) -> Option<Duration> {
        let start = Instant::now();
        let _ = kill(pid(&self.child), Signal::SIGTERM);
        while start.elapsed() < patience {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success().then(|| start.elapsed());
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        None
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.kill();
        }
    }
}

/// CPU time of this process so far: load and upstream.
pub(crate) fn own_cpu() -> Duration {
    cpu_of(Pid::this())
}

/// CPU time of all that was started here and has ended, what those started included.
pub(crate) fn ended_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let [user, system] = [usage.user_time(), usage.system_time()]
        .map(|time| Duration::from_micros(time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_usec().unsigned_abs()));
    user + system
}

/// CPU time that the whole machine has used so far; the kernel tells it in hundredths of a second.
pub(crate) fn machine_cpu() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = text.lines().next().unwrap_or("").split_whitespace().skip(1).flat_map(str::parse).collect();
    // user, nice, system, idle, iowait, irq, softirq
    let ticks: u64 = fields.iter().take(7).sum::<u64>() - fields.iter().skip(3).take(2).sum::<u64>();
    Duration::from_millis(ticks * 10)
}

/// Keeps this program on the first processor. With one processor there is nothing to choose.
pub(crate) fn pin_self() {
    pin(OURS);
}

/// Two thousand sockets and more: as many files as the system lets one open, children too.
pub(crate) fn raise_file_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard.min(65_536), hard)?)
}

/// Bytes of the files below a directory.
pub(crate) fn bytes_below(directory: &std::path::Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_below(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    // A machine with one processor refuses the second one: everything then shares the first.
    if set.set(processor).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn cpu_of(pid: Pid) -> Duration {
    let now = clock_getcpuclockid(pid).and_then(nix::time::clock_gettime);
    now.map(Duration::from).unwrap_or_default()
}

fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).map(Pid::from_raw).collect::<Vec<_>>())
        .collect()
}

fn status_kilobytes(pid: Pid, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
}
