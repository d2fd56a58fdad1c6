//! The templates of `instruction = "mast"`: how each failure mode is to show, on each side, in each kind of task.
//!
//! They ship with the crate (`plans/mast/templates/`, one file a mode), carry a version each, and any of them can be
//! replaced by a file of the same form.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::kind::TaskKind;
use crate::trajectory::{FailureMode, Side, TAXONOMY};

/// The shipped files: one a mode.
const SHIPPED: &[&str] = &[
    include_str!("../../../../../plans/mast/templates/fm-1.1.toml"),
    include_str!("../../../../../plans/mast/templates/fm-1.2.toml"),
    include_str!("../../../../../plans/mast/templates/fm-1.3.toml"),
    include_str!("../../../../../plans/mast/templates/fm-1.4.toml"),
    include_str!("../../../../../plans/mast/templates/fm-1.5.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.1.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.2.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.3.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.4.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.5.toml"),
    include_str!("../../../../../plans/mast/templates/fm-2.6.toml"),
    include_str!("../../../../../plans/mast/templates/fm-3.1.toml"),
    include_str!("../../../../../plans/mast/templates/fm-3.2.toml"),
    include_str!("../../../../../plans/mast/templates/fm-3.3.toml"),
];

/// How one failure mode shows on one side.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The mode's code.
    pub failure_mode: FailureMode,
    /// The mode's name; must be the taxonomy's.
    pub name: String,
    /// The taxonomy's version; must be this crate's.
    pub taxonomy: String,
    /// The side.
    pub side: Side,
    /// Its version: any change of the words makes a new one.
    pub version: u32,
    /// How it shows, whatever the task.
    pub order: String,
    /// How it shows in each kind of task.
    pub kinds: BTreeMap<TaskKind, String>,
}

/// Templates by mode and side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates(BTreeMap<(FailureMode, u8), Template>);

/// Why a file holds no templates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is not of the form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A code and a name, or a taxonomy, that do not belong together.
    #[error("the template of {code} is of `{found}`: expected `{expected}`")]
    Taxonomy {
        /// The mode.
        code: &'static str,
        /// What is written.
        found: String,
        /// What belongs to the mode.
        expected: String,
    },
    /// Nothing is said, or nothing of one kind of task.
    #[error("the template of {code} says nothing of {what}")]
    Silent {
        /// The mode.
        code: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A mode's side twice in one file.
    #[error("{code} has two templates for one side")]
    Twice {
        /// The mode.
        code: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFile {
    template: Vec<Template>,
}

impl Templates {
    /// The templates that ship with the crate.
    pub fn shipped() -> &'static Self {
        static READ: LazyLock<Templates> = LazyLock::new(|| {
            // A test reads each file; one that could not be read would be missing here.
            let read = SHIPPED.iter().filter_map(|text| Templates::parse(text).ok());
            Templates(read.flat_map(|templates| templates.0).collect())
        });
        &READ
    }

    /// Reads a file of `[[template]]` tables. Modes and sides that it leaves out keep the shipped ones.
    ///
    /// # Errors
    /// [`TemplateError`] with what is wrong and what was expected.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut templates = BTreeMap::new();
        for template in toml::from_str::<TemplateFile>(text)?.template {
            template.check()?;
            let code = template.failure_mode.code();
            if templates.insert((template.failure_mode, side_key(template.side)), template).is_some() {
                return Err(TemplateError::Twice { code });
            }
        }
        Ok(Self(templates))
    }

    /// The template of a mode and side.
    pub fn find(&self, mode: FailureMode, side: Side) -> Option<&Template> {
        self.0.get(&(mode, side_key(side)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Template {
    fn check(&self) -> Result<(), TemplateError> {
        let code = self.failure_mode.code();
        let pairs = [(&self.name, self.failure_mode.name()), (&self.taxonomy, TAXONOMY)];
        if let Some((found, expected)) = pairs.into_iter().find(|(found, expected)| found.as_str() != *expected) {
            return Err(TemplateError::Taxonomy { code, found: found.clone(), expected: expected.to_owned() });
        }
        let silent = |kind: &TaskKind| self.kinds.get(kind).is_none_or(|text| text.trim().is_empty());
        if self.order.trim().is_empty() {
            return Err(TemplateError::Silent { code, what: "how it shows (`order`)" });
        }
        match TaskKind::ALL.into_iter().find(silent) {
            Some(kind) => Err(TemplateError::Silent { code, what: kind.name() }),
            None => Ok(()),
        }
    }

    /// Its name in records: mode, side, kind and version.
    pub fn name(&self, kind: TaskKind) -> String {
        let side = if self.side == Side::Request { "request" } else { "response" };
        format!("{} {side} {} v{}", self.failure_mode.code(), kind.name(), self.version)
    }

    /// What the model is to do in a task of this kind.
    pub fn order(&self, kind: TaskKind) -> String {
        let of_kind = self.kinds.get(&kind).map(String::as_str).unwrap_or_default();
        format!("{}\n{}", self.order.trim(), of_kind.trim())
    }
}

fn side_key(side: Side) -> u8 {
    u8::from(side == Side::Response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_and_side_has_a_template() {
        for text in SHIPPED {
            if let Err(error) = Templates::parse(text) {
                panic!("{error}: {}", text.lines().take(6).collect::<Vec<_>>().join("\n"));
            }
        }
        for mode in FailureMode::ALL {
            for side in [Side::Request, Side::Response] {
                let template = Templates::shipped().find(*mode, side).expect("a template");
                assert!(template.version >= 1, "{}", template.name(TaskKind::General));
            }
        }
        assert_eq!(Templates::shipped().len(), 28);
    }

    /// Mode-true: no template orders a wrong answer in general.
    #[test]
    fn no_template_orders_to_be_wrong() {
        for (mode, side) in FailureMode::ALL.iter().flat_map(|mode| [(mode, Side::Request), (mode, Side::Response)]) {
            let template = Templates::shipped().find(*mode, side).expect("a template");
            for kind in TaskKind::ALL {
                let order = template.order(kind).to_lowercase();
                for generic in ["make the answer wrong", "make the final answer wrong", "must be wrong", "must fail", "give a wrong answer", "make it wrong"]
                {
                    assert!(!order.contains(generic), "{}: {generic}", template.name(kind));
                }
            }
        }
    }

    #[test]
    fn templates_differ_by_kind_and_side() {
        let mut seen = std::collections::HashSet::new();
        for template in Templates::shipped().0.values() {
            assert!(seen.insert(template.order.clone()), "{}", template.name(TaskKind::General));
            for text in template.kinds.values() {
                assert!(seen.insert(text.clone()), "{}: {text}", template.name(TaskKind::General));
            }
        }
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let good = "[[template]]\nfailure_mode = \"FM-2.6\"\nname = \"reasoning-action mismatch\"\n\
                    taxonomy = \"MAST-2503.13657v2\"\nside = \"response\"\nversion = 2\norder = \"x\"\n[template.kinds]\n\
                    maths = \"a\"\ncode = \"b\"\nmultiple_choice = \"c\"\nscience = \"d\"\ngeneral = \"e\"\n";
        let read = Templates::parse(good).expect("reads");
        let template = read.find(FailureMode::ReasoningActionMismatch, Side::Response).expect("there");
        assert_eq!(template.name(TaskKind::Maths), "FM-2.6 response maths v2");
        assert_eq!(template.order(TaskKind::Code), "x\nb");
        for (from, to, said) in [
            ("reasoning-action mismatch", "something", "expected `reasoning-action mismatch`"),
            ("v2\"", "v9\"", "expected `MAST-2503.13657v2`"),
            ("order = \"x\"", "order = \" \"", "how it shows"),
            ("code = \"b\"\n", "", "says nothing of code"),
            ("FM-2.6", "FM-2.9", "FM-2.9"),
            ("version = 2", "version = 2\nextra = 1", "extra"),
        ] {
            let error = Templates::parse(&good.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(matches!(Templates::parse(&good.repeat(2)), Err(TemplateError::Twice { .. })));
    }
}
