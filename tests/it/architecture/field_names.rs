//! Only surfaces know the field names of APIs.

use super::{
    all,
    paths::{self, Source},
};

/// The text of the strings in code that is not for tests.
fn strings(source: &Source) -> Vec<String> {
    struct Strings(Vec<String>);
    impl<'ast> syn::visit::Visit<'ast> for Strings {
        fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
            self.0.push(text.value());
        }
        fn visit_macro(&mut self, called: &'ast syn::Macro) {
            let mut open = vec![called.tokens.clone()];
            while let Some(tokens) = open.pop() {
                for token in tokens {
                    match token {
                        proc_macro2::TokenTree::Group(group) => open.push(group.stream()),
                        proc_macro2::TokenTree::Literal(literal) => {
                            if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                                self.0.push(text.value());
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            if !paths::for_tests(&item.attrs) {
                syn::visit::visit_item_mod(self, item);
            }
        }
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            if !paths::for_tests(&item.attrs) {
                syn::visit::visit_item_fn(self, item);
            }
        }
        fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    }
    let mut found = Strings(Vec::new());
    syn::visit::Visit::visit_file(&mut found, &source.syntax);
    found.0
}

/// Words that only APIs use. Other people's formats, traces and task sets are written in their words, which APIs share.
#[test]
fn field_names_of_apis_stay_in_surfaces() {
    const FIELDS: &[&str] = &["choices", "tool_calls", "response_format", "delta", "prompt_tokens"];
    let mut leaked = Vec::new();
    for source in all().iter().filter(|source| !source.tests) {
        let room = source.module.iter().map(String::as_str).collect::<Vec<_>>();
        if matches!(room[..], ["surface" | "simulator" | "foreign", ..] | ["dataset", "formats" | "task_sets", ..] | [])
        {
            continue;
        }
        for text in strings(source).iter().filter(|text| FIELDS.contains(&text.trim_start_matches('/'))) {
            leaked.push(format!("{}: {} knows {text:?}", source.file.display(), room.join("::")));
        }
    }
    assert!(leaked.is_empty(), "{}", leaked.join("\n"));
}
