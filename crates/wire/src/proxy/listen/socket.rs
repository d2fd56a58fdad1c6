//! A client's socket: framing is checked before hyper reads, writes that stall are given up, a fault can reset it, and a
//! client that only ends its half of the connection gets its answer.

use std::{
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use hyper::Version;
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
    time::Sleep,
};

use super::framing::{Framing, FramingError};
use crate::{proxy::error::ProxyError, trajectory::CloseCause};

/// An interim reply (RFC 9110, 15.2.1): every client passes over it, and the system of one that is gone answers it with a
/// reset.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What the exchanges of a connection and its socket tell each other.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Link {
    reset: AtomicBool,
    /// The upstream has agreed to another protocol: what the client sends from now on is no HTTP.
    switched: AtomicBool,
    stalled: AtomicBool,
    /// Of the whole server: it is ending the connections that are left.
    stopped: Arc<AtomicBool>,
    /// Why exchanges end that are under way when their WebSocket does, where neither client nor server is the reason.
    ends_as: OnceLock<CloseCause>,
    exchanges: AtomicU32,
    /// How often everything that was written had left for the system.
    flushes: AtomicU64,
    /// Who waits for the next time.
    waiting: Mutex<Option<Waker>>,
    /// A request has come, and its answer has not ended.
    answering: AtomicBool,
    /// A request has come at all.
    has_asked: AtomicBool,
    /// Nothing of that answer has been written, and its client knows interim ones.
    unanswered: AtomicBool,
    /// Whoever waits for the end of the answer.
    reader: Mutex<Option<Waker>>,
}

/// An answer under way. Dropped when it is over.
#[derive(Debug)]
pub(in crate::proxy) struct AnswerUnderWay(Arc<Link>);

impl Drop for AnswerUnderWay {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Release);
        let reader = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Link {
    pub(in crate::proxy) fn new(stopped: Arc<AtomicBool>) -> Self {
        Self { stopped, ..Self::default() }
    }

    /// Why an exchange ends whose reply nobody reads on.
    pub(in crate::proxy) fn cause_of_end(&self) -> CloseCause {
        if self.stopped.load(Ordering::Acquire) {
            CloseCause::Stopped
        } else if self.stalled.load(Ordering::Acquire) {
            CloseCause::ClientStalled
        } else {
            self.ends_as.get().copied().unwrap_or(CloseCause::ClientGone)
        }
    }

    /// A WebSocket ends, and what is under way on it: for this reason, where it is not its client's.
    pub(in crate::proxy) fn end_as(&self, cause: Option<CloseCause>) {
        if let Some(cause) = cause {
            let _ = self.ends_as.set(cause);
        }
    }

    /// A request of this version has come.
    pub(in crate::proxy) fn answer(self: &Arc<Self>, version: Version) -> AnswerUnderWay {
        self.answering.store(true, Ordering::Release);
        self.has_asked.store(true, Ordering::Release);
        self.unanswered.store(version == Version::HTTP_11, Ordering::Release);
        AnswerUnderWay(Arc::clone(self))
    }

    /// Whether an answer is under way.
    pub(in crate::proxy) fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Acquire)
    }

    /// Whether a request has come since the connection began.
    pub(in crate::proxy) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
    }

    /// Waits for the end of the answer under way.
    fn poll_answered(&self, context: &Context<'_>) -> Poll<()> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.answering.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        *reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Closes the connection with a reset instead of an orderly end.
    pub(in crate::proxy) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
    }

    /// Opens the gate for a protocol that is not HTTP, for good. Only what the upstream has said may lead here.
    pub(in crate::proxy) fn switch(&self) {
        self.switched.store(true, Ordering::Release);
    }

    /// How often everything written had left for the system.
    pub(in crate::proxy) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// Waits until everything has left once more than that often.
    pub(in crate::proxy) fn poll_flushed_after(&self, count: u64, context: &Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.flushes() > count {
            return Poll::Ready(());
        }
        *waiting = Some(context.waker().clone());
        Poll::Pending
    }

    fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::AcqRel);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// Marks an exchange as under way.
    pub(in crate::proxy) fn enter(&self) {
        self.exchanges.fetch_add(1, Ordering::AcqRel);
    }

    /// Marks an exchange as over.
    pub(in crate::proxy) fn leave(&self) {
        self.exchanges.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A client's socket.
#[derive(Debug)]
pub(in crate::proxy) struct Socket {
    stream: TcpStream,
    framing: Framing,
    link: Arc<Link>,
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether something was written since the last flush.
    written: bool,
    /// The client sends nothing more, and waits for its answer.
    half_closed: Option<HalfClosed>,
}

/// Tells when a client that sends nothing more is gone.
struct HalfClosed(Pin<Box<dyn Future<Output = ()> + Send>>);

impl HalfClosed {
    /// Asks the client's system, by the way of an interim reply, whether anybody is there.
    fn probe(stream: &TcpStream) -> io::Result<Self> {
        let own = TcpStream::from_std(std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?))?;
        if stream.try_write(PROBE)? < PROBE.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(Self(Box::pin(async move {
            let _ = own.ready(Interest::ERROR).await;
        })))
    }

    /// Waits until the client is gone, an error, or the answer has ended.
    fn poll(&mut self, link: &Link, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.0.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        link.poll_answered(context).map(Ok)
    }
}

impl std::fmt::Debug for HalfClosed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HalfClosed")
    }
}

impl Socket {
    pub(in crate::proxy) fn new(stream: TcpStream, link: Arc<Link>, write_timeout: Duration) -> Self {
        Self {
            stream,
            framing: Framing::default(),
            link,
            write_timeout,
            stalled: None,
            written: false,
            half_closed: None,
        }
    }

    /// Answers a request that hyper will never see. Only where no reply is under way: it would land in its middle.
    fn refuse(&self, violation: FramingError) -> io::Error {
        if self.link.exchanges.load(Ordering::Acquire) == 0 {
            // The answer is small and the socket idle, so it fits the send buffer or is not worth waiting for.
            let _ = self.stream.try_write(&ProxyError::Framing(violation).to_bytes());
        }
        io::Error::new(io::ErrorKind::InvalidData, violation.to_string())
    }

    /// Whether a client that sends nothing more may only have ended its half: its request is whole, and nothing of the answer
    /// has left. Later, clients end a connection whose answer they no longer want.
    fn may_be_half_closed(&self) -> bool {
        self.link.answering.load(Ordering::Acquire)
            && self.link.unanswered.load(Ordering::Acquire)
            && !self.link.switched.load(Ordering::Acquire)
            && !self.written
            && self.framing.is_between()
    }

    /// Gives a write that makes no progress until the deadline, then fails it.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            self.written = true;
            self.link.unanswered.store(false, Ordering::Release);
            return written;
        }
        let timeout = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.link.stalled.store(true, Ordering::Release);
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(half_closed) = &mut this.half_closed {
            return half_closed.poll(&this.link, context);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() == before && buffer.remaining() > 0;
        if is_end && self.may_be_half_closed() {
            // What cannot be asked is taken for gone, as any other end is.
            let Ok(half_closed) = HalfClosed::probe(&self.stream) else { return read };
            let this = &mut *self;
            return this.half_closed.insert(half_closed).poll(&this.link, context);
        }
        if let Poll::Ready(Ok(())) = read
            && !self.link.switched.load(Ordering::Acquire)
            && let Some(new) = buffer.filled().get(before..)
            && let Err(violation) = self.framing.push(new)
        {
            buffer.set_filled(before);
            return Poll::Ready(Err(self.refuse(violation)));
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once everything was written, and often when there was nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() && std::mem::take(&mut self.written) {
            self.link.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.link.reset.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.link.reset.load(Ordering::Acquire) {
            // Without lingering, closing sends a reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}
