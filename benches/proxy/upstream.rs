//! The mock backend: a blocking thread a connection, two system calls a request, so that it costs
//! less than any proxy before it. It never decides anything: the model name says what to answer.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl;

use crate::chat::Ask;
use crate::wire::Wire;

/// Small, for a thousand streams are two thousand threads.
pub(crate) const STACK: usize = 256 * 1024;

/// Starts the backend for the life of this process and returns its port.
pub(crate) fn start() -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A proxy that goes away in the middle is what the kill test does: nothing to report.
            let serve = move || drop(serve(socket));
            thread::Builder::new().stack_size(STACK).spawn(serve).expect("the system has threads left");
        }
    });
    Ok(port)
}

/// Waits until `due`, to about a microsecond after [`precise`].
pub(crate) fn sleep_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > Duration::ZERO {
        thread::sleep(left);
    }
}

/// Takes the 50 µs of slack off this thread's sleeps.
pub(crate) fn precise() {
    prctl::set_timerslack(1).expect("a thread may set its own timer slack");
}

fn serve(socket: TcpStream) -> io::Result<()> {
    precise();
    let mut wire = Wire::new(socket)?;
    let mut body = Vec::new();
    while let Some(head) = wire.head()? {
        body.clear();
        wire.body(&head, |bytes, _| body.extend_from_slice(bytes))?;
        let is_known =
            head.path.ends_with("/chat/completions") || head.path.ends_with("/mcp") || head.path.ends_with("/mcp/calc");
        let ask = if is_known { Ask::of(&body) } else { None };
        match ask {
            Some(ask) if ask.stream => stream(&mut wire, &ask)?,
            Some(ask) => whole(&mut wire, &ask)?,
            None => wire.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"")?,
        }
        if head.close {
            break;
        }
    }
    Ok(())
}

fn whole(wire: &mut Wire, ask: &Ask) -> io::Result<()> {
    sleep_until(Instant::now() + ask.reply.wait);
    let body = ask.whole();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_bench\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    wire.send(head.as_bytes(), &body)
}

/// One write a token, as backends do; the head and the role go out with the first one.
fn stream(wire: &mut Wire, ask: &Ask) -> io::Result<()> {
    let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nX-Request-Id: req_bench\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut due = Instant::now() + ask.reply.wait;
    for index in 0.. {
        let Some(frame) = ask.frame(index) else { break };
        out.extend_from_slice(format!("{:x}\r\n", frame.len()).as_bytes());
        out.extend_from_slice(&frame);
        out.extend_from_slice(b"\r\n");
        if index == 0 {
            continue;
        }
        if index <= ask.reply.tokens {
            sleep_until(due);
            due += ask.reply.pace;
        } else {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        wire.send(&out, b"")?;
        out.clear();
    }
    Ok(())
}
