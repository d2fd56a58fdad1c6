//! Blocking HTTP/1.1, as much as both ends of a measurement need: a head, then a body by length or
//! by chunks. One read a message where the kernel has it whole, so that both ends cost little.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use memchr::memmem;

/// Longer than the longest message, so that one read can take it.
const BUFFER: usize = 384 * 1024;

/// One connection and what was read ahead of it.
pub(crate) struct Wire {
    socket: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// When the last read returned.
    pub(crate) read_at: Instant,
}

/// What a head says about its message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// 0 for a request.
    pub(crate) status: u16,
    pub(crate) path: String,
    length: Option<usize>,
    chunked: bool,
    pub(crate) close: bool,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: vec![0; BUFFER], start: 0, end: 0, read_at: Instant::now() })
    }

    /// Connects to a port of this machine; a read that waits longer than `patience` fails.
    pub(crate) fn connect(port: u16, patience: Duration) -> io::Result<Self> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(patience))?;
        Self::new(socket)
    }

    /// Writes head and body by one system call where the kernel takes both.
    pub(crate) fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut parts = [IoSlice::new(head), IoSlice::new(body)];
        let mut left = &mut parts[..];
        while !left.is_empty() {
            let written = self.socket.write_vectored(left)?;
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }

    /// The next head; `None` when the peer closed between two messages.
    pub(crate) fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            let have = &self.buffer[self.start..self.end];
            if let Some(at) = memmem::find(have, b"\r\n\r\n") {
                let head = Head::parse(&have[..at]).ok_or_else(|| invalid("an HTTP/1.1 head"))?;
                self.start += at + 4;
                return Ok(Some(head));
            }
            if self.more()? == 0 {
                return if self.start == self.end { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// Gives the body's bytes to `take` as they arrive, with the time of their read.
    pub(crate) fn body(&mut self, head: &Head, mut take: impl FnMut(&[u8], Instant)) -> io::Result<()> {
        if !head.chunked {
            return self.exactly(head.length.unwrap_or(0), &mut take);
        }
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(&line, 16).map_err(|_| invalid("a chunk's length"))?;
            self.exactly(length, &mut take)?;
            if !self.line()?.is_empty() {
                return Err(invalid("the end of a chunk"));
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn exactly(&mut self, mut left: usize, take: &mut impl FnMut(&[u8], Instant)) -> io::Result<()> {
        while left > 0 {
            if self.start == self.end && self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let now = left.min(self.end - self.start);
            take(&self.buffer[self.start..self.start + now], self.read_at);
            self.start += now;
            left -= now;
        }
        Ok(())
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            let have = &self.buffer[self.start..self.end];
            if let Some(at) = memmem::find(have, b"\r\n") {
                let line = String::from_utf8_lossy(&have[..at]).into_owned();
                self.start += at + 2;
                return Ok(line);
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn more(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let read = self.socket.read(&mut self.buffer[self.end..])?;
        self.read_at = Instant::now();
        self.end += read;
        Ok(read)
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (first, second) = (words.next()?, words.next()?);
        let mut head = Self::default();
        if first.starts_with("HTTP/") {
            head.status = second.parse().ok()?;
        } else {
            second.clone_into(&mut head.path);
        }
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Some(value.parse().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("connection") {
                head.close = value.eq_ignore_ascii_case("close");
            }
        }
        Some(head)
    }
}

fn invalid(expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected {expected}"))
}
