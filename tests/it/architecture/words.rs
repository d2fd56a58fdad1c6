//! Names say what a thing is, in the field's terms: words of narration stay out of them.

use syn::visit::{self, Visit};

use super::{all, paths::Source};

/// Words of which no type and no variant is made, at whatever place of its name.
const WORDS: &[&str] =
    &["Told", "Said", "Asked", "Heard", "Kept", "Known", "Due", "Fuller", "Narrowed", "Unmade", "House", "Life"];

/// Names that say nothing of what a function does or gives.
const FUNCTIONS: &[&str] =
    &["of", "about", "told", "said", "asked", "heard", "hear", "kept", "known", "due", "fuller", "narrowed", "unmade"];

/// Names that say nothing of what a file holds.
const MODULES: &[&str] = &[
    "told", "said", "asked", "heard", "hear", "kept", "known", "due", "fuller", "narrowed", "unmade", "gather", "life",
];

/// Names that stay, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// The parts of a name in camel case.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for letter in name.chars() {
        match parts.last_mut() {
            Some(part) if !letter.is_uppercase() => part.push(letter),
            _ => parts.push(letter.to_string()),
        }
    }
    parts
}

/// Names of a file that are made of these words, each with its place.
struct Names {
    file: String,
    found: Vec<(String, String)>,
}

impl Names {
    fn take(&mut self, name: &syn::Ident, is_banned: impl Fn(&str) -> bool) {
        let text = name.to_string();
        if is_banned(&text) {
            self.found.push((format!("{}:{}: `{text}`", self.file, name.span().start().line), text));
        }
    }

    fn type_name(&mut self, name: &syn::Ident) {
        self.take(name, |name| parts(name).iter().any(|part| WORDS.contains(&part.as_str())));
    }

    fn function(&mut self, name: &syn::Ident) {
        self.take(name, |name| FUNCTIONS.contains(&name));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Struct(item) => self.type_name(&item.ident),
            syn::Item::Enum(item) => self.type_name(&item.ident),
            syn::Item::Union(item) => self.type_name(&item.ident),
            syn::Item::Trait(item) => self.type_name(&item.ident),
            syn::Item::Type(item) => self.type_name(&item.ident),
            syn::Item::Mod(item) => self.take(&item.ident, |name| MODULES.contains(&name)),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.type_name(&variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.function(&signature.ident);
        visit::visit_signature(self, signature);
    }
}

fn banned(source: &Source) -> Vec<(String, String)> {
    let mut names = Names { file: source.file.display().to_string(), found: Vec::new() };
    names.visit_file(&source.syntax);
    names.found
}

#[test]
fn names_say_what_a_thing_is() {
    let found: Vec<(String, String)> = all().iter().flat_map(banned).collect();
    let stays = |name: &str| EXCEPTIONS.iter().any(|(kept, _)| *kept == name);
    let wrong: Vec<&str> = found.iter().filter(|(_, name)| !stays(name)).map(|(place, _)| place.as_str()).collect();
    assert!(wrong.is_empty(), "call these what they are:\n{}", wrong.join("\n"));
    let idle: Vec<_> = EXCEPTIONS.iter().filter(|(kept, _)| !found.iter().any(|(_, name)| name == kept)).collect();
    assert!(idle.is_empty(), "names that are no more: {idle:?}");
}

#[test]
fn every_kind_of_name_is_seen() {
    let text = "struct ToldA; enum B { SaidC } trait HeardD { fn of(); } type KeptE = u8; union DueF { a: u8 }
        impl B { fn about(&self) {} } fn told() { fn said() {} } mod gather { struct Life; }
        struct Asking; struct Holder; fn heard_run() {} enum Unknown { Duet }";
    let syntax = syn::parse_file(text).expect("Rust");
    let source = Source { file: "a.rs".into(), module: Vec::new(), tests: false, syntax };
    let names: Vec<String> = banned(&source).into_iter().map(|(_, name)| name).collect();
    let expected = ["ToldA", "SaidC", "HeardD", "of", "KeptE", "DueF", "about", "told", "said", "gather", "Life"];
    assert_eq!(names, expected);
}
