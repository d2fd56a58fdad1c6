//! Lines of the client, and lines to it. Threads of their own read and write: whoever waits for standard input could not end before
//! the client does.

use std::{
    io::{BufRead, Read, Write},
    thread,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt},
    sync::{mpsc, oneshot},
};

/// Longest line of either side.
const LINE_MAX: u64 = 64 << 20;
/// Lines that wait at most.
const LINES_MAX: usize = 64;

/// The lines of standard input, to its end. Blank ones are no messages.
pub(super) fn client_lines() -> mpsc::Receiver<Bytes> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(line) = client_line(&mut input) {
            if !line.trim_ascii().is_empty() && sender.blocking_send(Bytes::from(line)).is_err() {
                break;
            }
        }
    });
    lines
}

/// The next line without its end; `None` at the end of input, and where a line is too long.
fn client_line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    input.take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
    whole_line(line)
}

/// The same of what a server says.
pub(super) async fn server_line(output: &mut (impl AsyncBufRead + Unpin)) -> Option<Bytes> {
    let mut line = Vec::new();
    output.take(LINE_MAX).read_until(b'\n', &mut line).await.ok()?;
    whole_line(line).map(Bytes::from)
}

fn whole_line(mut line: Vec<u8>) -> Option<Vec<u8>> {
    if line.len() as u64 == LINE_MAX {
        tracing::error!("a line is longer than {LINE_MAX} bytes: nothing more is read");
        return None;
    }
    // The last one may have no end.
    if *line.last()? == b'\n' {
        line.pop();
    }
    Some(line)
}

/// Bytes for the client, and who waits until they are written.
#[derive(Debug)]
struct ClientLine {
    bytes: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
}

/// Standard output, for everybody who has a line for the client.
#[derive(Debug, Clone)]
pub(super) struct ClientOutput(mpsc::Sender<ClientLine>);

impl ClientOutput {
    /// Begins to write.
    pub(super) fn start() -> Self {
        let (sender, mut lines) = mpsc::channel::<ClientLine>(LINES_MAX);
        thread::spawn(move || {
            let mut output = std::io::stdout().lock();
            while let Some(line) = lines.blocking_recv() {
                if output.write_all(&line.bytes).and_then(|()| output.flush()).is_err() {
                    break;
                }
                let _ = line.written.map(|written| written.send(()));
            }
        });
        Self(sender)
    }

    /// Writes a line, its end included. A client that has left gets none.
    pub(super) async fn line(&self, bytes: Vec<u8>) {
        let _ = self.0.send(ClientLine { bytes, written: None }).await;
    }

    /// Waits until everything is written, so long at most.
    pub(super) async fn flushed(&self, limit: Duration) {
        let (sender, written) = oneshot::channel();
        let last = ClientLine { bytes: Vec::new(), written: Some(sender) };
        let _ = tokio::time::timeout(limit, async {
            let _ = self.0.send(last).await;
            written.await
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_byte_for_byte() {
        let mut input = &b"{\"a\": 1}\r\n\n{}\nlast"[..];
        let lines: Vec<_> = std::iter::from_fn(|| client_line(&mut input)).collect();
        assert_eq!(lines, [&b"{\"a\": 1}\r"[..], b"", b"{}", b"last"]);
    }
}
