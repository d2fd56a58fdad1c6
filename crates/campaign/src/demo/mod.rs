//! The whole job in small: the campaign of `examples/campaigns/demo.toml`, carried by the program itself, so that it
//! runs in any directory, without a key and without a network.

use std::io;

use crate::{
    campaign::{self, Campaign, Files},
    plan::PlanError,
};

/// The campaign file.
const FILE: &str = include_str!("../../../../examples/campaigns/demo.toml");

/// The files that it names.
const SHIPPED: &[(&str, &str)] = &[
    ("../tasks.jsonl", include_str!("../../../../examples/tasks.jsonl")),
    ("../pipeline/aegis.toml", include_str!("../../../../examples/pipeline/aegis.toml")),
    ("../debate/aegis.toml", include_str!("../../../../examples/debate/aegis.toml")),
    ("../../plans/corrupt-number.toml", include_str!("../../../../plans/corrupt-number.toml")),
    ("../../plans/corrupt-plan.toml", include_str!("../../../../plans/corrupt-plan.toml")),
    ("../../plans/confirm-wrong-result.toml", include_str!("../../../../plans/confirm-wrong-result.toml")),
    ("../../plans/end-early.toml", include_str!("../../../../plans/end-early.toml")),
    ("../../plans/corrupt-one-debater.toml", include_str!("../../../../plans/corrupt-one-debater.toml")),
    ("../../plans/corrupt-two-debaters.toml", include_str!("../../../../plans/corrupt-two-debaters.toml")),
];

/// The demo's campaign.
///
/// # Errors
/// A file that ships with this program is damaged.
pub fn campaign() -> Result<Campaign, PlanError> {
    campaign::parse(FILE, "demo.toml", &Shipped)
}

struct Shipped;

impl Files for Shipped {
    fn read(&self, path: &str) -> io::Result<String> {
        let found = SHIPPED.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_ships_is_whole() {
        let campaign = super::campaign().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((campaign.tasks.len(), campaign.systems.len(), campaign.plans.len()), (6, 2, 6));
    }
}
