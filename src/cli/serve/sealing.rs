//! How a server lets go of its runs: those that are idle while it goes on, and all at its end. It seals only what no request can
//! go on with.

use std::{
    fs,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{
    cli::{Exit, Failure, Global, counted, logging},
    proxy::{EndedRun, Proxy, Server},
    trajectory::RunId,
};

/// Most runs that a server names which it leaves open.
const NAMED: usize = 20;
/// Runs that are sealed at once: each waits for the disk most of the time.
const SEALERS: usize = 16;
/// How long the runs of a server that stops are ruled on: a stop is waited for.
const LABELS: Duration = Duration::from_millis(500);
/// How often idle runs are looked for.
const IDLE_CHECK: Duration = Duration::from_secs(5);
/// Descriptors of the reserve: each that seals takes a few.
const RESERVED: usize = 4 * SEALERS;

/// Lets go of runs that have had no traffic for a while, beside the traffic: it waits for the disk. Named ones are put down,
/// the others sealed. Ends when the server stops, once what it is sealing is sealed.
pub(super) async fn release_idle(server: Server, idle: Duration, stop: impl Future<Output = ()>) {
    let mut tick = tokio::time::interval(IDLE_CHECK.min(idle.max(Duration::from_millis(100))));
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            _ = tick.tick() => {}
        }
        let server = server.clone();
        let sealing =
            tokio::task::spawn_blocking(move || server.lines().iter().for_each(|line| release_idle_of(line, idle)));
        // A panic in it was reported where it happened; the runs of the next look are others.
        let _ = sealing.await;
    }
}

fn release_idle_of(proxy: &Proxy, idle: Duration) {
    let retired = proxy.runs.retire_idle(idle, proxy.default_run.as_ref());
    // At once: sealing takes a while, and a request placed in one of them would be refused.
    proxy.identity.leave(&retired.iter().map(|run| run.id.clone()).collect::<Vec<_>>());
    for run in retired {
        if let Err(error) = proxy.runs.seal(&run) {
            tracing::error!(run = %run.id, %error, "cannot seal");
        }
    }
    conclude(proxy);
    for closing in proxy.runs.close_idle(idle, proxy.default_run.as_ref()) {
        if let Err(error) = proxy.runs.put_down(closing) {
            tracing::error!(%error, "cannot put a run down");
        }
    }
}

/// Descriptors that nobody gets while the server runs: sealing needs some, however many runs and connections are open.
#[derive(Debug)]
pub(super) struct DescriptorReserve(#[expect(dead_code, reason = "held, and given back when dropped")] Vec<fs::File>);

impl DescriptorReserve {
    pub(super) fn take() -> Self {
        Self((0..RESERVED).map_while(|_| fs::File::open("/dev/null").ok()).collect())
    }
}

/// Puts all runs down and says where they are: nothing that was recorded is lost, and programs go on with them once somebody
/// serves them again.
pub(super) fn put_down_all(server: &Server, global: &Global) -> Result<(), Failure> {
    let (mut left, mut ended) = (Vec::new(), Ok(()));
    // Each line, whatever became of the one before.
    for line in server.lines() {
        ended = ended.and(put_down_line(&line, &mut left));
    }
    label_within(LABELS, &left);
    if global.quiet {
        return ended;
    }
    for EndedRun { dir, steps, .. } in left.iter().take(NAMED) {
        let word = crate::launch::shell_word(&dir.to_string_lossy());
        logging::line(format_args!(
            "left open {}  {}  aegis show {word}  to end it: aegis runs end {word}",
            dir.display(),
            counted(*steps as usize, "step")
        ));
    }
    if let Some(more @ 1..) = left.len().checked_sub(NAMED) {
        logging::line(format_args!(
            "left open {more} more  aegis runs {}",
            crate::launch::shell_word(&server.line.runs.template().log_dir.to_string_lossy())
        ));
    }
    ended
}

/// Puts the runs of one line down, and adds them to those that are left open.
fn put_down_line(proxy: &Proxy, left: &mut Vec<EndedRun>) -> Result<(), Failure> {
    let failed = Mutex::new(None);
    let fail = |error| {
        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    // Each run gives its descriptors back once it is done with.
    side_by_side(proxy.runs.retire_displaced(), |run| proxy.runs.seal(&run).map_or_else(fail, drop));
    conclude(proxy);
    let put_down = Mutex::new(Vec::new());
    side_by_side(proxy.runs.close_all(), |closing| match proxy.runs.put_down(closing) {
        Ok(run) => put_down.lock().unwrap_or_else(PoisonError::into_inner).push(run),
        Err(error) => fail(error),
    });
    let mut put_down = put_down.into_inner().unwrap_or_else(PoisonError::into_inner);
    put_down.sort_by(|one, other| one.id.cmp(&other.id));
    left.append(&mut put_down);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |error| Err(Failure::new(Exit::Recording, error)))
}

/// Rules on runs that are left open, as far as there is time: whoever looks at one before its programs go on finds what is known
/// by now. Ending it rules anew.
fn label_within(due: Duration, left: &[EndedRun]) {
    let until = Instant::now() + due;
    let (labelled, waits) = mpsc::channel();
    let rest = Arc::new(Mutex::new(left.to_vec()));
    for _ in 0..SEALERS.min(left.len()) {
        let (labelled, rest) = (labelled.clone(), Arc::clone(&rest));
        let next = move || rest.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // The reading of a long recording cannot be cut: its thread is left, and ends with the program.
        let _ = thread::Builder::new().spawn(move || {
            while let Some(run) = next() {
                run.label();
                let _ = labelled.send(());
            }
        });
    }
    drop(labelled);
    while waits.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
}

/// Does what waits for the disk for each, several at once.
fn side_by_side<T: Send>(all: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = SEALERS.min(all.len());
    let rest = Mutex::new(all.into_iter());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || {
        while let Some(one) = next() {
            work(one);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where the system gives no thread, this one does the work of all.
            let _ = thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
}

/// Writes of runs that were sealed what all traffic says of them, where it differs from what was said on arrival, and
/// their labels, where they have one.
fn conclude(proxy: &Proxy) {
    let ended = proxy.runs.take_ended();
    let ids: Vec<RunId> = ended.iter().map(|run| run.id.clone()).collect();
    let late = proxy.identity.late_names(&ids);
    side_by_side(ended, |run| run.conclude(late.get(&run.id)));
}
