//! An upstream that another one can take the place of while requests are under way: with other certificates, for example.

use std::sync::{Arc, PoisonError, RwLock};

use hyper::Request;

use super::{
    backend::{BackendAnswering, Upstream},
    upload::SentBody,
};

/// An upstream by the name of the first one.
#[derive(Debug)]
pub struct ReplaceableUpstream {
    name: String,
    now: RwLock<Arc<dyn Upstream>>,
}

impl ReplaceableUpstream {
    /// With the first one.
    pub fn new(first: Arc<dyn Upstream>) -> Self {
        Self { name: first.name().to_owned(), now: RwLock::new(first) }
    }

    /// Requests from now on go to this one; those under way end where they are.
    pub fn replace(&self, next: Arc<dyn Upstream>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
}

impl Upstream for ReplaceableUpstream {
    fn name(&self) -> &str {
        &self.name
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        let now = Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move { now.send(request).await })
    }

    fn opens_sockets(&self) -> bool {
        self.now.read().unwrap_or_else(PoisonError::into_inner).opens_sockets()
    }
}
