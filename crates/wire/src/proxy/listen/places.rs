//! Places for connections: as many as there are descriptors for. Where none is free, idle connections make room.

use std::{sync::Arc, time::Duration};

use nix::sys::{
    resource::{Resource, getrlimit},
    socket::{setsockopt, sockopt},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};

/// What the system holds for a client that does not read, in bytes; Linux takes twice as much.
const SEND_BUFFER: usize = 256 << 10;
/// Descriptors that are kept for recordings, for what the program itself opens, and for the end: a quarter, or so many.
const RESERVED: u64 = 256;
/// A connection takes its own descriptor, and mostly one to the upstream.
const OF_CONNECTION: u64 = 2;
/// Fewest connections, however few descriptors there are.
const FEWEST: usize = 8;

/// The places of a server.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    free: Arc<Semaphore>,
    /// How often somebody waited for a place.
    wanted: watch::Sender<u64>,
}

impl ConnectionPlaces {
    /// At most so many, and no more than the process has descriptors for.
    pub(super) fn new(most: usize) -> Self {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let for_connections = (descriptors - RESERVED.min(descriptors / 4)) / OF_CONNECTION;
        let for_connections = usize::try_from(for_connections).unwrap_or(usize::MAX).max(FEWEST);
        let most = most.min(for_connections).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(most)), wanted: watch::Sender::new(0) }
    }

    /// Tells a connection when its place is wanted.
    pub(super) fn wanted(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Waits for a connection and a place for it.
    pub(super) async fn accept(&self, listener: &TcpListener) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let place = if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            place
        } else {
            // The next client waits in the system's queue; whoever is idle makes room for it.
            self.make_room();
            Arc::clone(&self.free).acquire_owned().await.ok()?
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                // Without a bound the system takes megabytes for a client that does not read, and so does its record.
                let _ = setsockopt(&stream, sockopt::SndBuf, &SEND_BUFFER);
                Some((stream, place))
            }
            Err(error) => {
                // Out of descriptors, most likely: a pause lets some be freed.
                tracing::debug!(%error, "cannot accept a connection");
                self.make_room();
                tokio::time::sleep(Duration::from_millis(50)).await;
                None
            }
        }
    }

    fn make_room(&self) {
        self.wanted.send_modify(|times| *times += 1);
    }
}
