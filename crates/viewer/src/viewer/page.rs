//! The page's files, as they are embedded. There is no build step: what stands here is what the browser gets.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its name, which is its address.
    pub name: &'static str,
    /// What it is.
    pub kind: &'static str,
    /// Its text.
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! modules {
    ($($name:literal)*) => {
        /// The page's modules, each behind those that it imports from.
        pub const MODULES: &[File] =
            &[$(File { name: $name, kind: SCRIPT, text: include_str!(concat!("page/", $name)) }),*];
    };
}

modules! {
    "vendor/preact.js"
    "format.js"
    "route.js"
    "source.js"
    "text.js"
    "marks.js"
    "list.js"
    "part.js"
    "keys.js"
    "lanes.js"
    "change.js"
    "step.js"
    "annotate.js"
    "modes.js"
    "run.js"
    "runs.js"
    "compare.js"
    "trace.js"
    "attribution.js"
    "matrix.js"
    "cells.js"
    "campaign.js"
    "dataset.js"
    "app.js"
}

/// The page itself.
pub const PAGE: File =
    File { name: "index.html", kind: "text/html; charset=utf-8", text: include_str!("page/index.html") };
/// How it looks, in layers.
pub const STYLES: &[File] = &[
    File { name: "base.css", kind: "text/css; charset=utf-8", text: include_str!("page/base.css") },
    File { name: "screens.css", kind: "text/css; charset=utf-8", text: include_str!("page/screens.css") },
];

/// The file of an address below `/page/`.
pub fn file(name: &str) -> Option<&'static File> {
    MODULES.iter().chain(STYLES).find(|file| file.name == name)
}

/// All modules as one script without imports, for a page that has no server.
///
/// Each module becomes a function that returns what it exports; the imports take it from there. Only the forms that the
/// modules have are understood: `import { a, b as c } from './x.js';`, `export` before a declaration, and one
/// `export{a as b}` at a module's end.
pub fn script() -> String {
    let mut script = String::from("'use strict';\nconst modules = {};\n");
    for module in MODULES {
        let mut exports: Vec<(String, String)> = Vec::new();
        script.extend(["modules['", module.name, "'] = (() => {\n"]);
        let mut text = module.text;
        while let Some((before, import)) = text.split_once("import {").filter(|(before, _)| before_code(before)) {
            script.push_str(before);
            let (names, rest) = import.split_once('}').unwrap_or((import, ""));
            let (from, rest) = rest.split_once(';').unwrap_or((rest, ""));
            let from = from.trim().trim_start_matches("from").trim().trim_matches('\'').trim_start_matches("./");
            script.extend(["const {", &names.replace(" as ", ": "), "} = modules['", from, "'];"]);
            text = rest;
        }
        let (text, listed) = text.rsplit_once("export{").map_or((text, ""), |(text, listed)| (text, listed));
        for name in listed.split(['}', ',']).filter_map(|name| name.split_once(" as ")) {
            exports.push((name.1.to_owned(), name.0.to_owned()));
        }
        for line in text.split_inclusive('\n') {
            let Some(declared) = line.strip_prefix("export ") else {
                script.push_str(line);
                continue;
            };
            let words = declared.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'));
            let name = words.filter(|word| !word.is_empty()).find(|word| !DECLARES.contains(word));
            exports.extend(name.map(|name| (name.to_owned(), name.to_owned())));
            script.push_str(declared);
        }
        let exports: Vec<String> = exports.iter().map(|(name, own)| format!("{name}: {own}")).collect();
        script.extend(["\nreturn {", &exports.join(", "), "};\n})();\n"]);
    }
    script
}

/// Words before the name of a declaration.
const DECLARES: [&str; 5] = ["async", "function", "const", "let", "class"];

/// Whether nothing but comments stands in a text: imports come before all else.
fn before_code(text: &str) -> bool {
    let mut comment = false;
    text.lines().all(|line| {
        let line = line.trim();
        comment |= line.starts_with("/*");
        let fine = comment || line.is_empty() || line.starts_with("//");
        comment &= !line.ends_with("*/");
        fine
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// sha-256 of `preact/standalone.module.js` of htm 3.1.1 on npm.
    const VENDORED: &str = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7";

    #[test]
    fn the_vendored_file_is_npms() {
        let text = file("vendor/preact.js").expect("it is there").text;
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, VENDORED);
    }

    #[test]
    fn every_file_of_the_page_is_embedded_and_short() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/viewer/page");
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            let name = entry.file_name().into_string().expect("a name");
            if entry.path().is_dir() {
                continue;
            }
            assert!(name == PAGE.name || file(&name).is_some(), "{name} is not in the list");
            let text = std::fs::read_to_string(entry.path()).expect("text");
            assert!(text.lines().count() < 400, "{name} is too long");
            for word in ["innerHTML", "eval(", "document.write", "http://", "https://"] {
                assert!(!text.contains(word) || text.contains("www.w3.org"), "{name} holds {word}");
            }
        }
    }

    #[test]
    fn every_module_is_asked_for_at_once() {
        // Found by imports alone, they would be asked for one layer after the other.
        for module in MODULES {
            assert!(PAGE.text.contains(&format!("href=\"/page/{0}\"", module.name)) || module.name == "app.js");
        }
    }

    #[test]
    fn imports_name_what_an_earlier_module_exports() {
        for (at, module) in MODULES.iter().enumerate().skip(1) {
            assert!(module.text.starts_with("/**"), "{} says what it is", module.name);
            let mut text = module.text;
            while let Some((_, import)) = text.split_once("import {") {
                let (names, rest) = import.split_once('}').expect("a brace");
                let (_, from) = rest.split_once("'./").expect("a path");
                let (from, rest) = from.split_once('\'').expect("a quote");
                let earlier = MODULES[..at].iter().find(|module| module.name == from);
                let exporter = earlier.unwrap_or_else(|| panic!("{} imports {from}, which is behind it", module.name));
                for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    let name = name.split(" as ").next().unwrap_or_default();
                    let forms = ["function", "const", "class", "async function"];
                    let declared = forms.iter().any(|form| exporter.text.contains(&format!("export {form} {name}")));
                    let listed = exporter.text.contains(&format!(" as {name}"));
                    assert!(declared || listed, "{}: {from} exports no {name}", module.name);
                }
                text = rest;
            }
        }
    }

    #[test]
    fn one_script_has_neither_imports_nor_exports() {
        let script = script();
        for line in script.lines() {
            assert!(!line.starts_with("import ") && !line.starts_with("export "), "{line}");
        }
        assert!(!script.contains("export{") && !script.to_lowercase().contains("</script"));
        assert!(script.contains("render: M") && script.contains("html: fe"));
    }
}
