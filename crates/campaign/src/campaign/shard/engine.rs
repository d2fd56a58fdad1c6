//! Engines that run shards. Aegis starts nothing on them: it writes the file that a user reads and submits.

use std::fmt::Write as _;

use crate::launch::{shell_line, shell_word};

/// An engine that runs many processes on many machines.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Its name on the command line.
    pub name: &'static str,
    /// How its file ends.
    pub ending: &'static str,
    template: &'static str,
    submit: &'static str,
}

/// What a file for an engine is made of.
#[derive(Debug, Clone)]
pub struct EngineScript {
    /// The campaign's name.
    pub name: String,
    /// Shards.
    pub shards: u64,
    /// Cells at once in a shard, and cores that it is given.
    pub jobs: usize,
    /// The command that makes a shard, less which.
    pub command: Vec<String>,
    /// The command that puts them together.
    pub merge: Vec<String>,
    /// The container image, for engines that run containers.
    pub image: String,
}

impl Engine {
    /// All of them: one file and one line each.
    pub const ALL: [Engine; 4] = [
        Engine {
            name: "slurm",
            ending: "sbatch",
            template: include_str!("engines/slurm.sh"),
            submit: "sbatch --dependency=afterany:$(sbatch --parsable @FILE@) --wrap=@MERGE_WORD@",
        },
        Engine { name: "ray", ending: "py", template: include_str!("engines/ray.py"), submit: "python @FILE@" },
        Engine {
            name: "k8s",
            ending: "yaml",
            template: include_str!("engines/k8s.yaml"),
            submit: "kubectl apply -f @FILE@    # when it is complete, where the volume is: @MERGE@",
        },
        Engine {
            name: "hyperqueue",
            ending: "hq.py",
            template: include_str!("engines/hyperqueue.py"),
            submit: "python @FILE@",
        },
    ];

    /// The file.
    pub fn script(&self, of: &EngineScript) -> String {
        of.fill(self.template, "FILE")
    }

    /// The line that submits it, kept as `file`.
    pub fn submit(&self, of: &EngineScript, file: &str) -> String {
        of.fill(self.submit, file)
    }

    /// What a file of it is called if nobody says otherwise.
    pub fn file(&self, of: &EngineScript) -> String {
        format!("{}.{}", of.job(), self.ending)
    }
}

impl EngineScript {
    /// The job's name: letters, digits and dashes, as every engine allows.
    fn job(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = format!("aegis-{}", self.name).chars().map(plain).take(50).collect();
        name.trim_end_matches('-').to_owned()
    }

    fn fill(&self, template: &str, file: &str) -> String {
        let json = |words: &[String]| serde_json::to_string(words).unwrap_or_default().replace("\",\"", "\", \"");
        let merge = shell_line(&self.merge);
        let mut text = template.to_owned();
        for (place, value) in [
            ("@COMMAND_JSON@", json(&self.command)),
            ("@MERGE_JSON@", json(&self.merge)),
            ("@MERGE_WORD@", shell_word(&merge)),
            ("@COMMAND@", shell_line(&self.command)),
            ("@MERGE@", merge),
            ("@SHARDS@", self.shards.to_string()),
            ("@LAST@", self.shards.saturating_sub(1).to_string()),
            ("@JOBS@", self.jobs.to_string()),
            ("@IMAGE@", quoted_yaml(&self.image)),
            ("@NAME@", self.job()),
            ("@FILE@", shell_word(file)),
        ] {
            text = text.replace(place, &value);
        }
        text
    }
}

/// A word as YAML takes it: JSON strings are YAML.
fn quoted_yaml(word: &str) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", serde_json::Value::from(word));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_no_place_that_was_not_filled_and_words_stay_words() {
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let script = EngineScript {
            name: "Maths, it's".to_owned(),
            shards: 8,
            jobs: 4,
            command: words("aegis|campaign|it's here.toml|--jobs|4"),
            merge: words("aegis|shard|merge|a b|--out|c"),
            image: "registry/aegis:1".to_owned(),
        };
        for engine in Engine::ALL {
            let text = engine.script(&script);
            for place in ["@SHARDS@", "@COMMAND", "@MERGE", "@NAME@", "@JOBS@", "@LAST@", "@IMAGE@", "@FILE@"] {
                assert!(
                    !text.contains(place) && !engine.submit(&script, "f").contains(place),
                    "{place} in {}",
                    engine.name
                );
            }
            let kept = [r"'it'\''s here.toml'", "\"it's here.toml\""].iter().any(|word| text.contains(word));
            assert!(kept, "{text}");
            assert!(engine.name == "ray" || text.contains("aegis-maths--it-s"), "{text}");
        }
        assert_eq!(Engine::ALL[0].file(&script), "aegis-maths--it-s.sbatch");
    }
}
