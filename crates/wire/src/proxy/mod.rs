//! Listening, and the one way that a request takes (`exchange`). Nothing here knows an API's field names, what a
//! manipulator does, or whether the upstream is real.

mod arrival;
mod ask;
mod attached;
mod beside_messages;
mod broken_streams;
mod card;
mod chunks;
mod asking;
mod decided;
mod delivery;
mod disturb;
mod pending_reply;
mod error;
mod error_codes;
mod exchange;
mod faults;
mod frames;
mod logprobs;
mod read_whole;
mod reading_on;
mod readopt;
mod headers;
mod heavy;
mod inject;
mod stored;
mod limits;
mod memory;
mod listen;
mod lock;
pub mod model;
mod strip;
mod negotiating;
mod open_step;
mod opening;
mod recorded_answers;
mod remembered;
mod reshape;
mod run;
mod run_cards;
mod runs;
mod server;
mod setup;
mod shared;
mod spans;
mod speakers;
mod spoken_steps;
mod servers;
mod tape;
mod tunnel;
mod skipped;
mod unread;
mod user_name;
mod users;
pub mod upstream;
mod waiting;
mod watched;

pub use asking::{AnswerFormat, AskingSettings, ManipulatorModel};
pub use attached::ATTACHED_PATHS;
pub use attached::client::{AttachClient, AttachError, AttachedMessage, AttachedMessages, ReturnedReply};
pub use error::ProxyError;
pub use error_codes::PROXY_CODES;
pub use limits::Limits;
pub use listen::{
    CONTROL_CODES, CONTROL_ROUTES, ControlRoute, HEALTH_PATHS, audit_schema, control_error_schema,
    framing::{Framing, FramingError},
    gate::{Gate, Token},
    http_route::{BodySchema, HttpRoute, RouteAnswer, body_schema},
    serve, serve_control,
};
pub use memory::BodyMemory;
pub use negotiating::NegotiatingUpstream;
pub use recorded_answers::RecordedAnswers;
pub use run::Run;
pub use runs::{ClosingRun, EndError, EndedRun, RunStanding, Runs};
pub use server::Server;
pub use servers::{NamedServers, WithServers};
pub use setup::{RunSetup, RunTemplate};
pub use shared::Proxy;
pub use spans::send_spans;
pub use upstream::{HttpUpstream, OriginError, UpstreamOrigin};
pub use user_name::UserName;
pub use users::{User, UserGrant, Users};
pub use watched::{LiveWatch, SignListener};
