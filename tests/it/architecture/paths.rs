//! Every path that a source file names, resolved to where it begins: `super::`, `self::`, groups, renames, inline modules
//! and the bodies of macros included.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{
    Attribute, Item, UseTree,
    spanned::Spanned as _,
    visit::{self, Visit},
};

/// One name as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// From the root: `crate`, then rooms; or the name of another crate, then its own.
    pub path: Vec<String>,
    /// The line, 1-based.
    pub line: usize,
    /// Whether it stands in code that is compiled for tests only.
    pub tests: bool,
    /// A method's name, of which nothing else is known.
    pub method: bool,
}

/// A source file's place: its module path below the crate, and whether only tests have it.
pub struct Source {
    /// The file.
    pub file: PathBuf,
    /// `["campaign", "cell"]`; empty for the crate's root.
    pub module: Vec<String>,
    /// Whether a parent declares it under `#[cfg(test)]`.
    pub tests: bool,
    /// What it holds.
    pub syntax: syn::File,
}

/// All files of a crate from its root file on, as its `mod` lines name them.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let dir = root.parent().expect("a directory").to_owned();
    collect(root, &dir, &[], false, &mut found);
    found
}

fn collect(file: &Path, dir: &Path, module: &[String], tests: bool, found: &mut Vec<Source>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let tests = tests || for_tests(&syntax.attrs);
    below(&syntax.items, file, dir, module, tests, found);
    found.push(Source { file: file.to_owned(), module: module.to_vec(), tests, syntax });
}

/// What `#[path = "…"]` says.
fn elsewhere(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(syn::MetaNameValue { path, value: syn::Expr::Lit(value), .. })
            if path.is_ident("path") =>
        {
            let syn::Lit::Str(text) = &value.lit else { return None };
            Some(text.value())
        }
        _ => None,
    })
}

fn below(items: &[Item], from: &Path, dir: &Path, module: &[String], tests: bool, found: &mut Vec<Source>) {
    for item in items {
        if let Item::Macro(called) = item {
            for name in listed(called.mac.tokens.clone()) {
                let file = dir.join(format!("{name}.rs"));
                if file.is_file() {
                    collect(&file, &dir.join(&name), &[module, &[name]].concat(), tests, found);
                }
            }
        }
        let Item::Mod(declared) = item else { continue };
        let name = declared.ident.to_string();
        let module = [module, std::slice::from_ref(&name)].concat();
        let tests = tests || for_tests(&declared.attrs);
        if let Some((_, items)) = &declared.content {
            below(items, from, &dir.join(&name), &module, tests, found);
            continue;
        }
        let (file, inside) = (dir.join(format!("{name}.rs")), dir.join(&name));
        let file = match elsewhere(&declared.attrs) {
            Some(path) => from.parent().expect("a directory").join(path),
            None if file.is_file() => file,
            None => inside.join("mod.rs"),
        };
        collect(&file, &inside, &module, tests, found);
    }
}

/// The modules that a macro's list declares, as `manipulators!` does: what stands before each `::`.
fn listed(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let named = tokens.windows(3).filter_map(|three| match three {
        [TokenTree::Ident(name), TokenTree::Punct(one), TokenTree::Punct(two)]
            if one.as_char() == ':' && two.as_char() == ':' =>
        {
            Some(name.to_string())
        }
        _ => None,
    });
    named.collect()
}

/// Whether `#[cfg(test)]`, or `#[test]`, stands there.
pub fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let words = match &attribute.meta {
            syn::Meta::List(list) if attribute.path().is_ident("cfg") => list.tokens.to_string(),
            syn::Meta::Path(path) if path.is_ident("test") => "test".to_owned(),
            _ => return false,
        };
        words == "test"
    })
}

/// Every name in a file.
pub fn named(source: &Source, crates: &BTreeSet<String>) -> Vec<Named> {
    let mut reader = Reader { module: source.module.clone(), tests: source.tests, crates, found: Vec::new() };
    reader.visit_file(&source.syntax);
    reader.found
}

struct Reader<'a> {
    module: Vec<String>,
    tests: bool,
    /// Other crates that may be named.
    crates: &'a BTreeSet<String>,
    found: Vec<Named>,
}

impl Reader<'_> {
    /// Takes a path that begins at the root, at `super`, or at another crate; what begins at a local name is known by the
    /// `use` that brought it.
    fn take(&mut self, segments: &[String], line: usize) {
        let mut at = self.module.clone();
        let mut rest = segments;
        match rest.first().map(String::as_str) {
            Some("crate") => (at, rest) = (Vec::new(), &rest[1..]),
            Some("self" | "super") => {
                while let Some(first) = rest.first().filter(|first| matches!(first.as_str(), "self" | "super")) {
                    if first == "super" {
                        at.pop();
                    }
                    rest = &rest[1..];
                }
            }
            Some(name) if self.crates.contains(name) => {
                self.found.push(Named { path: segments.to_vec(), line, tests: self.tests, method: false });
                return;
            }
            // Of a local name, what is called stays to be seen: `Timestamp::now`.
            Some(_) if segments.len() > 1 => {
                let path = segments.last().into_iter().cloned().collect();
                self.found.push(Named { path, line, tests: self.tests, method: true });
                return;
            }
            _ => return,
        }
        let path = ["crate".to_owned()].into_iter().chain(at).chain(rest.iter().cloned()).collect();
        self.found.push(Named { path, line, tests: self.tests, method: false });
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let line = tree.span().start().line;
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
            UseTree::Name(name) => self.leaf(before, &name.ident.to_string(), line),
            UseTree::Rename(name) => self.leaf(before, &name.ident.to_string(), line),
            UseTree::Glob(_) => self.leaf(before, "*", line),
        }
    }

    fn leaf(&mut self, before: &[String], name: &str, line: usize) {
        let whole = name == "self" && !before.is_empty();
        let path = if whole { before.to_vec() } else { [before, &[name.to_owned()]].concat() };
        self.take(&path, line);
    }

    /// The paths in what a macro is given: it is not parsed, so its words are read.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line, mut dotted) = (0, 0, false);
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = token.span().start().line;
                    }
                    // What is called of a type in angle brackets: `<Label>::ruled`.
                    if dotted || (colons == 2 && path.is_empty()) {
                        let path = vec![ident.to_string()];
                        self.found.push(Named { path, line, tests: self.tests, method: true });
                    } else {
                        path.push(ident.to_string());
                    }
                    (colons, dotted) = (0, false);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Punct(punct) => {
                    self.end(&mut path, line);
                    (colons, dotted) = (0, punct.as_char() == '.');
                }
                TokenTree::Group(group) => {
                    let inside = group.stream();
                    if group.delimiter() == Delimiter::Brace && colons == 2 {
                        self.end(&mut path, line);
                    }
                    self.end(&mut path, line);
                    self.tokens(inside);
                    (colons, dotted) = (0, false);
                }
                TokenTree::Literal(_) => (colons, dotted) = (0, false),
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        if !path.is_empty() {
            let path = std::mem::take(path);
            self.take(&path, line);
        }
    }

    fn inside(&mut self, attributes: &[Attribute], read: impl FnOnce(&mut Self)) {
        let before = self.tests;
        self.tests |= for_tests(attributes);
        read(self);
        self.tests = before;
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Fn(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Const(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            _ => &[],
        };
        self.inside(attributes, |reader| visit::visit_item(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.inside(&item.attrs, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.take(&segments, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        // What is called of a type in angle brackets: `<Label>::ruled`.
        if let (Some(_), Some(last)) = (&path.qself, path.path.segments.last()) {
            let line = last.ident.span().start().line;
            self.found.push(Named { path: vec![last.ident.to_string()], line, tests: self.tests, method: true });
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let line = call.method.span().start().line;
        let path = vec![call.method.to_string()];
        self.found.push(Named { path, line, tests: self.tests, method: true });
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The Rust files beneath a directory.
pub fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
