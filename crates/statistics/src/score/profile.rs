//! Which scorer's rules hold.

use serde::Serialize;

use crate::trajectory::nearest;

/// A named set of scoring rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Ours: canonical agents, equal steps, every gold row in the denominator.
    #[default]
    Strict,
    /// The public scorer of the Aegis repository, `evaluation/evaluate.py`.
    Aegis,
    /// The scorer of its fork, `evaluation/get_numbers.py` at commit a3c0c3f.
    AegisFork,
    /// The public scorer of Who&When, `Automated_FA/evaluate.py`.
    Whowhen,
    /// AgenTracer's answers and reward; its authors published no scorer.
    Agentracer,
}

/// A profile that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{name}`: expected one of strict, aegis, aegis-fork, whowhen, agentracer{}",
    .nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownProfile {
    /// What was written.
    pub name: String,
    /// The nearest name, if any is near.
    pub nearest: Option<&'static str>,
}

impl Profile {
    /// All profiles, the default first.
    pub const ALL: [Profile; 5] =
        [Profile::Strict, Profile::Aegis, Profile::AegisFork, Profile::Whowhen, Profile::Agentracer];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Strict => "strict",
            Profile::Aegis => "aegis",
            Profile::AegisFork => "aegis-fork",
            Profile::Whowhen => "whowhen",
            Profile::Agentracer => "agentracer",
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile {
            name: name.chars().take(80).collect(),
            nearest: nearest(name, Self::ALL.map(Profile::name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_a_slip_is_named() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        let error = "agentracr".parse::<Profile>().expect_err("unknown");
        assert_eq!(error.nearest, Some("agentracer"));
    }
}
