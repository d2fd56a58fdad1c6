//! The ready-made plans: the folder `plans` is part of the program, so that a plan can be named where no file is.

use crate::trajectory::nearest;

/// Their names and texts, by name; the build script lists them.
static FOLDER: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/plans.rs"));

/// A plan that ships with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedPlan {
    /// Its path below `plans`, without the ending: `faults/rate-limit`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl ShippedPlan {
    /// What it does: the comment that it begins with.
    pub fn description(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }

    /// The last part of its name.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    fn folder(&self) -> &'static str {
        self.name.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Every ready-made plan, by name.
pub fn shipped() -> Vec<ShippedPlan> {
    FOLDER.iter().map(|(name, text)| ShippedPlan { name, text }).collect()
}

/// The plans that a word names: one by its name or the last part of it, or all that lie in a folder, those of folders
/// inside it left out. Empty where it names none.
pub fn shipped_as(word: &str) -> Vec<ShippedPlan> {
    let word = word.trim_end_matches('/');
    let word = word.strip_suffix(".toml").unwrap_or(word);
    let word = word.strip_prefix("plans/").unwrap_or(word);
    let plans = shipped();
    if let Some(plan) = plans.iter().find(|plan| plan.name == word) {
        return vec![*plan];
    }
    let ends = |name: &str| name == word || name.strip_suffix(word).is_some_and(|before| before.ends_with('/'));
    let named: Vec<ShippedPlan> = plans.iter().copied().filter(|plan| ends(plan.name)).collect();
    if !named.is_empty() || word.is_empty() {
        return named;
    }
    plans.into_iter().filter(|plan| ends(plan.folder())).collect()
}

/// The nearest name of a ready-made plan or of a folder of them to one that there is not.
pub fn nearest_shipped(word: &str) -> Option<&'static str> {
    let plans = shipped();
    let names = plans.iter().flat_map(|plan| [plan.short_name(), plan.name, plan.folder()]);
    // The names are the program's own, but the search lends them only as long as the list is there.
    let near = nearest(word, names.filter(|name| !name.is_empty()))?.to_owned();
    plans.iter().flat_map(|plan| [plan.short_name(), plan.name, plan.folder()]).find(|name| **name == *near)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(word: &str) -> Vec<&'static str> {
        shipped_as(word).into_iter().map(|plan| plan.name).collect()
    }

    #[test]
    fn a_plan_is_named_by_its_path_its_last_part_or_its_folder() {
        for word in ["rate-limit", "faults/rate-limit", "plans/faults/rate-limit.toml", "rate-limit.toml"] {
            assert_eq!(named(word), ["faults/rate-limit"], "{word}");
        }
        assert_eq!(named("llm_error_single"), ["faults/agentchaos/llm_error_single"]);
        assert!(named("faults").contains(&"faults/overload") && named("plans/faults/").len() == named("faults").len());
        assert!(!named("faults").iter().any(|name| name.contains("agentchaos")), "{:?}", named("faults"));
        assert_eq!(named("agentchaos").len(), 65);
        for none in ["", "limit", "templates", "fm-1.1", "../faults"] {
            assert_eq!(named(none), Vec::<&str>::new(), "{none:?}");
        }
        assert_eq!(nearest_shipped("rate-limits"), Some("rate-limit"));
        assert_eq!(nearest_shipped("something else"), None);
    }

    #[test]
    fn last_parts_name_one_plan_each() {
        let plans = shipped();
        let mut names: Vec<&str> = plans.iter().map(ShippedPlan::short_name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plans.len());
        assert!(plans.iter().all(|plan| plan.description().len() > 10));
    }

    #[test]
    fn what_is_part_of_the_program_is_what_lies_in_the_folder() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        for plan in shipped() {
            let file = root.join(format!("{}.toml", plan.name));
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some(plan.text), "{}", file.display());
        }
    }

    /// Fault plans are for any program: they aim at whoever calls.
    #[test]
    fn fault_plans_aim_at_any_agent() {
        for plan in shipped().iter().filter(|plan| plan.name.starts_with("faults/")) {
            let read = crate::plan::parse(plan.text, plan.name).expect("reads");
            let any = read.injections.iter().all(|injection| injection.agents.matches("anybody at all"));
            assert!(any && read.injections.iter().all(|injection| injection.instance.is_none()), "{}", plan.name);
        }
    }
}
