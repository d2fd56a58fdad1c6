//! One name, one type: who greps for a type finds one definition.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::paths::{Source, for_tests};

/// Names that two types may have, with the reason.
const SHARED: &[(&str, &str)] = &[];

/// Where the types of one name are defined.
type Defined = BTreeMap<String, Vec<String>>;

struct Types<'a> {
    file: String,
    found: &'a mut Defined,
}

impl Types<'_> {
    fn take(&mut self, name: &syn::Ident) {
        let place = format!("{}:{}", self.file, name.span().start().line);
        self.found.entry(name.to_string()).or_default().push(place);
    }

    /// What a macro defines stands in its tokens: `enum Name`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut defines = false;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if defines => {
                    self.take(&word);
                    defines = false;
                }
                TokenTree::Ident(word) => {
                    defines = ["struct", "enum", "union", "trait"].iter().any(|kind| word == kind);
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => defines = false,
            }
        }
    }
}

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = match item {
            syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Mod(item) => (&item.attrs, None),
            syn::Item::Fn(item) => (&item.attrs, None),
            syn::Item::Impl(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if !for_tests(attributes) {
            if let Some(name) = name {
                self.take(name);
            }
            visit::visit_item(self, item);
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
    }
}

fn defined(sources: &[Source]) -> Defined {
    let mut found = Defined::new();
    for source in sources.iter().filter(|source| !source.tests) {
        Types { file: source.file.display().to_string(), found: &mut found }.visit_file(&source.syntax);
    }
    found
}

#[test]
fn one_name_is_one_type() {
    let found = defined(&super::all());
    let twice = |name: &str| found.get(name).is_some_and(|places| places.len() > 1);
    let repeated: Vec<_> = found
        .iter()
        .filter(|(name, _)| twice(name) && !SHARED.iter().any(|(shared, _)| shared == name))
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(repeated.is_empty(), "types of one name; say in the name what sets each apart:\n{}", repeated.join("\n"));
    let idle: Vec<_> = SHARED.iter().filter(|(name, _)| !twice(name)).collect();
    assert!(idle.is_empty(), "names that are not shared: {idle:?}");
}

#[test]
fn every_kind_of_type_is_seen() {
    let text = "struct A; enum B {} union C { a: u8 } trait D {} type E = u8; fn f() { struct G; } mod m { struct H; }
        macro_rules! made { () => { pub enum I {} } } thread_local! { static X: u8 = { struct J; 0 } }
        #[cfg(test)] struct T1; #[cfg(test)] mod tests { struct T2; } #[test] fn t() { struct T3; }
        impl Iterator for A { type Item = u8; }";
    let source =
        |tests| Source { file: "a.rs".into(), module: Vec::new(), tests, syntax: syn::parse_file(text).expect("Rust") };
    let names: String = defined(&[source(false)]).into_keys().collect();
    assert_eq!(names, "ABCDEGHIJ");
    assert!(defined(&[source(true)]).is_empty());
    assert!(defined(&[source(false), source(false)]).values().all(|places| places.len() == 2));
}
