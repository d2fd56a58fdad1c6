//! The backend as the exchange sees it: a request in, a reply out. `HttpUpstream`, the simulator and a replayed
//! recording implement it.

mod backend;
mod body;
mod connection;
mod error;
mod http;
mod altered_reply;
mod multiplexed;
mod origin;
mod paced;
mod pool;
mod replaceable;
mod tls;
mod upload;

pub use altered_reply::{AlteredReply, ReplyChange};
pub use backend::{Asker, BackendAnswering, BeyondBudget, Route, SentForm, Upstream};
pub use body::{Listener, ReceivedBody};
pub use error::{BodyError, UpstreamError};
pub use http::HttpUpstream;
pub use origin::{OriginError, UpstreamOrigin};
pub use paced::Paced;
pub use pool::Live;
pub use replaceable::ReplaceableUpstream;
pub(in crate::proxy) use tls::client_config;
pub use upload::{SentBody, Upload, UploadError};
pub(in crate::proxy) use upload::{UploadEnd, UploadPrefix};
