//! Rules of which a finding is no defect.

use std::path::Path;

use crate::{
    cli::{Exit, Failure, config::Config},
    trajectory::nearest,
    verdict::{RULES, Weight},
};

/// A rule that finds defects, by name.
pub(in crate::cli) fn defect_rule(name: &str) -> Result<String, String> {
    let rules = || RULES.iter().filter(|rule| rule.weight == Weight::Defect).map(|rule| rule.name);
    if rules().any(|rule| rule == name) {
        return Ok(name.to_owned());
    }
    let near = nearest(name, rules()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    Err(format!("no rule of defects is called so{near}: expected one of {}", rules().collect::<Vec<_>>().join(", ")))
}

/// The rules that the command line and `[test] allow` name.
pub(in crate::cli) fn allowed(said: &[String], config: &Config) -> Result<Vec<String>, Failure> {
    let of_file = config.test.allow.iter().map(|rule| {
        let file = config.file.as_deref().unwrap_or_else(|| Path::new("aegis.toml"));
        defect_rule(rule)
            .map_err(|why| Failure::new(Exit::Usage, format!("{}: [test] allow `{rule}`: {why}", file.display())))
    });
    of_file.chain(said.iter().cloned().map(Ok)).collect()
}
