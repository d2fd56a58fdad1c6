//! Parts of a campaign, each made where there is room, and put together into what one machine would have made.
//!
//! A shard is a directory of its own with the state of a campaign in it: cells, recordings, journal. Beside them lie the
//! campaign that it is a part of, whole ([`CampaignSnapshot`]), and `shard.json`: which part, and of what
//! ([`CampaignDigest`]). [`merge`] takes such directories, from any machine and of any division, and concludes over their
//! chains without an upstream. Nothing here starts a process anywhere: engines that exist do, from a file that
//! [`Engine::script`] writes.

mod digest;
mod engine;
mod merge_cells;
mod snapshot;
mod listed;
mod manifest;
mod merge;
mod part;
mod threads;
mod work;

pub(super) use digest::CampaignDigest;
pub use engine::{Engine, EngineScript};
pub use manifest::shard_schema;
pub use merge::{MergeOptions, Merged, merge};
pub use part::{PartError, ShardPart};
pub use snapshot::{CampaignSnapshot, NotedFiles};
pub use work::{ShardEnd, ShardOptions, run_shard};
