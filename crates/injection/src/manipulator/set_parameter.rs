//! `set_parameter`: the model is asked with other settings.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError};
use crate::surface::Conversation;
use crate::trajectory::Side;

/// Sets parameters of the request, for example model, temperature or token limit.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-3.1"
/// when.call = 0
/// manipulator.set_parameter = { max_tokens = 5 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_changed = true
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetParameter {
    /// Model.
    pub model: Option<String>,
    /// Temperature, at least 0.
    pub temperature: Option<f64>,
    /// Probability mass to sample from, above 0 and at most 1.
    pub top_p: Option<f64>,
    /// Maximum length of the answer in tokens.
    pub max_tokens: Option<std::num::NonZeroU32>,
    /// Stop strings.
    pub stop: Option<Vec<String>>,
    /// Seed of the upstream.
    pub seed: Option<i64>,
}

impl Manipulator for SetParameter {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        if let Some(model) = &self.model {
            conversation.model.clone_from(model);
        }
        if let Some(tokens) = self.max_tokens {
            conversation.max_tokens = Some(u64::from(tokens.get()));
        }
        if let Some(stop) = &self.stop {
            conversation.stop.clone_from(stop);
        }
        let sampling = &mut conversation.sampling;
        sampling.temperature = self.temperature.or(sampling.temperature);
        sampling.top_p = self.top_p.or(sampling.top_p);
        sampling.seed = self.seed.or(sampling.seed);
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.set().is_empty() {
            return Err("expected a parameter: `model`, `temperature`, `top_p`, `max_tokens`, `stop` or `seed`".to_owned());
        }
        if self.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            return Err("`model` is empty: expected a name".to_owned());
        }
        if let Some(hot) = self.temperature.filter(|degree| !(*degree >= 0.0 && degree.is_finite())) {
            return Err(format!("`temperature` is {hot}: expected a number from 0"));
        }
        if let Some(part) = self.top_p.filter(|part| !(*part > 0.0 && *part <= 1.0)) {
            return Err(format!("`top_p` is {part}: expected a number above 0 and at most 1"));
        }
        if self.stop.as_ref().is_some_and(|stop| stop.is_empty() || stop.iter().any(String::is_empty)) {
            return Err("`stop` holds an empty text: expected strings at which the answer stops".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        format!("sets {}", self.set().join(", "))
    }
}

impl SetParameter {
    fn set(&self) -> Vec<String> {
        let mut set = Vec::new();
        set.extend(self.model.as_ref().map(|model| format!("the model to `{model}`")));
        set.extend(self.temperature.map(|degree| format!("the temperature to {degree}")));
        set.extend(self.top_p.map(|part| format!("top_p to {part}")));
        set.extend(self.max_tokens.map(|tokens| format!("the longest answer to {tokens} tokens")));
        set.extend(self.stop.as_ref().map(|stop| format!("stop strings to {stop:?}")));
        set.extend(self.seed.map(|seed| format!("the seed to {seed}")));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::context;
    use crate::manipulator::{edited_request, ManipulatorError};

    #[test]
    fn what_is_given_is_set_and_nothing_else() {
        let before = Conversation { model: "m".to_owned(), max_tokens: Some(9), ..Conversation::default() };
        let edit = |set: &SetParameter| edited_request(set, &before, &context(&before));
        let hot = edit(&SetParameter { temperature: Some(1.5), ..SetParameter::default() }).expect("applies");
        assert_eq!((hot.sampling.temperature, hot.max_tokens, hot.model.as_str()), (Some(1.5), Some(9), "m"));
        let same = SetParameter { model: Some("m".to_owned()), ..SetParameter::default() };
        assert_eq!(edit(&same), Err(ManipulatorError::Unchanged));
    }

    #[test]
    fn parameters_are_checked() {
        let base = SetParameter::default;
        for set in [
            base(),
            SetParameter { model: Some(" ".to_owned()), ..base() },
            SetParameter { temperature: Some(-1.0), ..base() },
            SetParameter { temperature: Some(f64::NAN), ..base() },
            SetParameter { top_p: Some(0.0), ..base() },
            SetParameter { stop: Some(vec![String::new()]), ..base() },
        ] {
            assert!(set.check(Side::Request).is_err(), "{set:?}");
        }
        assert!(SetParameter { seed: Some(-1), ..base() }.check(Side::Request).is_ok());
    }
}
