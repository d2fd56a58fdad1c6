//! `[manipulator]` of aegis.toml and its flags: the model that manipulators may ask.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use serde::Deserialize;

use super::{Exit, Failure, upstream_origin::origin};
use crate::{
    budget::{Budget, Price},
    manipulator::Templates,
    proxy::{AnswerFormat, AskingSettings, HttpUpstream, ManipulatorModel, upstream::Upstream},
    simulator::Simulator,
    surface::ParameterSetting,
};

/// Flags that win over `[manipulator]`.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_field_names, reason = "a field is the name of its option")]
pub(super) struct AskingArgs {
    /// Upstream of the model for `rewrite_with_model`. Default: [manipulator] of aegis.toml.
    #[arg(long, env = "AEGIS_MANIPULATOR_UPSTREAM", value_name = "URL")]
    manipulator_upstream: Option<String>,
    /// Model for `rewrite_with_model`.
    #[arg(long, env = "AEGIS_MANIPULATOR_MODEL", value_name = "NAME")]
    manipulator_model: Option<String>,
    /// Request parameter of that model; VALUE `none` omits it; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    manipulator_parameter: Vec<ParameterSetting>,
}

/// `[manipulator]`: the model that manipulators may ask.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ManipulatorConfig {
    /// `http://…`, `https://…` or `simulator`; must serve chat completions.
    pub url: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Environment variable with its key.
    pub key_env: Option<String>,
    /// Temperature; 0.7 if not given.
    pub temperature: Option<f64>,
    /// Request parameters, each `"NAME=VALUE"`; `"seed=none"` omits one. Parameters that the upstream refuses are
    /// omitted or replaced.
    #[schemars(with = "Vec<String>")]
    pub parameters: Vec<ParameterSetting>,
    /// How JSON answers are requested: by schema, as an object, or in words.
    pub answers: AnswersConfig,
    /// Time limit for all answers of one edit, in seconds; 20 if not given. A shorter timeout of the client limits it
    /// further.
    pub deadline_s: Option<f64>,
    /// File of templates that replace shipped ones.
    pub templates: Option<PathBuf>,
    /// Maximum calls over all runs.
    pub max_calls: Option<u64>,
    /// Maximum tokens over all runs, input and output.
    pub max_tokens: Option<u64>,
    /// Maximum cost over all runs, in the unit of the prices.
    pub max_cost: Option<f64>,
    /// Price of a million input tokens.
    pub price_input: f64,
    /// Price of a million output tokens.
    pub price_output: f64,
}

/// How a backend can be told to answer in JSON.
#[derive(Debug, Clone, Copy, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswersConfig {
    /// By a schema.
    #[default]
    JsonSchema,
    /// As some JSON object.
    JsonObject,
    /// By words alone.
    Text,
}

impl AskingArgs {
    /// What names it, each as its option and value.
    pub(super) fn given_options(&self) -> [(&'static str, &Option<String>); 2] {
        [("--manipulator-upstream", &self.manipulator_upstream), ("--manipulator-model", &self.manipulator_model)]
    }

    /// The model that flags name, in words; empty if they name none.
    pub(super) fn named(&self) -> String {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{} {}", part(&self.manipulator_upstream), part(&self.manipulator_model)).trim().to_owned()
    }

    /// The model, if one is named. `seed` is the simulator's.
    ///
    /// # Errors
    /// Whatever cannot be used, with what was expected.
    pub(super) fn asking(
        &self,
        config: &ManipulatorConfig,
        seed: u64,
    ) -> Result<Option<Arc<ManipulatorModel>>, Failure> {
        let Some(url) = self.manipulator_upstream.as_ref().or(config.url.as_ref()) else { return Ok(None) };
        let settings = self.settings(config, url)?;
        let upstream: Arc<dyn Upstream> = if url == "simulator" {
            Arc::new(Simulator::new(seed))
        } else {
            let usage = |error: crate::proxy::OriginError| Failure::new(Exit::Usage, error);
            let origin = origin(url, config.key_env.as_deref()).map_err(usage)?;
            HttpUpstream::new(origin, Vec::new(), None, settings.deadline).map(HttpUpstream::shared).map_err(usage)?
        };
        Ok(Some(Arc::new(ManipulatorModel::new(upstream, settings))))
    }

    fn settings(&self, config: &ManipulatorConfig, url: &str) -> Result<AskingSettings, Failure> {
        let defaults = AskingSettings::default();
        let named = self.manipulator_model.clone().or_else(|| config.model.clone());
        let Some(model) = named.or_else(|| (url == "simulator").then(|| url.to_owned())) else {
            return Err(Failure::new(Exit::Usage, "the manipulator's upstream has no model")
                .hint("name one: --manipulator-model NAME, or `model` in [manipulator] of aegis.toml"));
        };
        let refuse = |name: &str, found: f64, expected: &str| {
            Failure::new(Exit::Usage, format!("`manipulator.{name}` is {found}: expected {expected}"))
        };
        let temperature = config.temperature.or(defaults.temperature);
        if let Some(hot) = temperature.filter(|degree| !(0.0..=2.0).contains(degree)) {
            return Err(refuse("temperature", hot, "a number from 0 to 2"));
        }
        for (name, money) in [("price_input", config.price_input), ("price_output", config.price_output)] {
            if !(money.is_finite() && money >= 0.0) {
                return Err(refuse(name, money, "an amount from 0"));
            }
        }
        let deadline = match config.deadline_s {
            None => defaults.deadline,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|deadline| !deadline.is_zero())
                .ok_or_else(|| refuse("deadline_s", seconds, "seconds above 0"))?,
        };
        Ok(AskingSettings {
            model,
            temperature,
            parameters: [config.parameters.as_slice(), self.manipulator_parameter.as_slice()].concat().into(),
            answers: match config.answers {
                AnswersConfig::JsonSchema => AnswerFormat::JsonSchema,
                AnswersConfig::JsonObject => AnswerFormat::JsonObject,
                AnswersConfig::Text => AnswerFormat::Text,
            },
            deadline,
            budget: Budget { calls: config.max_calls, tokens: config.max_tokens, cost: config.max_cost },
            price: Price { input: config.price_input, output: config.price_output },
            templates: config.templates.as_ref().map(read_templates).transpose()?,
            ..defaults
        })
    }
}

/// What is said where a plan needs a model and none is named.
pub(super) fn unnamed(plan: &str) -> Failure {
    let error = format!("{plan} lets a model rewrite messages (`rewrite_with_model`), and no model is named");
    Failure::new(Exit::Usage, error)
        .hint("--manipulator-upstream URL --manipulator-model NAME, or `--manipulator-upstream simulator`")
}

fn read_templates(path: &PathBuf) -> Result<Templates, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read the templates in `{name}`: {error}")))?;
    Templates::parse(&text).map_err(|error| Failure::new(Exit::Usage, format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_refused_before_a_run() {
        let args = |url: &str, model: Option<&str>| AskingArgs {
            manipulator_upstream: Some(url.to_owned()).filter(|url| !url.is_empty()),
            manipulator_model: model.map(str::to_owned),
            manipulator_parameter: Vec::new(),
        };
        let config = |text: &str| toml::from_str::<ManipulatorConfig>(text).expect("a table");
        for (args, text, expected) in [
            (args("", None), "", Ok(false)),
            (args("simulator", None), "", Ok(true)),
            (args("", None), "url = \"simulator\"\nmax_calls = 3\ndeadline_s = 5", Ok(true)),
            (args("http://127.0.0.1:9", Some("m")), "answers = \"json_object\"", Ok(true)),
            (args("http://127.0.0.1:9", None), "", Err("has no model")),
            (args("nowhere", Some("m")), "", Err("is not an upstream")),
            (args("simulator", None), "temperature = 3", Err("from 0 to 2")),
            (args("simulator", None), "deadline_s = 0", Err("seconds above 0")),
            (args("simulator", None), "price_output = -1", Err("an amount from 0")),
            (args("simulator", None), "templates = \"no-such.toml\"", Err("cannot read the templates")),
            (args("http://h", Some("m")), "key_env = \"AEGIS_NO_SUCH_KEY\"", Err("AEGIS_NO_SUCH_KEY")),
        ] {
            match (args.asking(&config(text), 7), expected) {
                (Ok(asking), Ok(expected)) => assert_eq!(asking.is_some(), expected, "{text}"),
                (Err(failure), Err(expected)) => {
                    let error = failure.error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
