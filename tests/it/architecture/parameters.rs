//! Functions take values that have names: a pair in a signature says nothing of what its halves are, nor which comes first.

use syn::visit::{self, Visit};

use super::{all, paths::Source};

/// The parameters of a file that are tuples, each with its place.
struct TupleParameters {
    file: String,
    found: Vec<String>,
}

/// Whether a type is a tuple of two or more, or a reference to one.
fn is_tuple(of: &syn::Type) -> bool {
    match of {
        syn::Type::Tuple(tuple) => tuple.elems.len() > 1,
        syn::Type::Reference(reference) => is_tuple(&reference.elem),
        syn::Type::Paren(inner) => is_tuple(&inner.elem),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for TupleParameters {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        for input in &signature.inputs {
            if let syn::FnArg::Typed(parameter) = input
                && is_tuple(&parameter.ty)
            {
                let line = signature.ident.span().start().line;
                self.found.push(format!("{}:{line}: `{}`", self.file, signature.ident));
            }
        }
        visit::visit_signature(self, signature);
    }
}

fn tuples(source: &Source) -> Vec<String> {
    let mut parameters = TupleParameters { file: source.file.display().to_string(), found: Vec::new() };
    parameters.visit_file(&source.syntax);
    parameters.found
}

#[test]
fn no_function_takes_a_tuple() {
    let found: Vec<String> = all().iter().flat_map(tuples).collect();
    assert!(found.is_empty(), "take each value by itself, or make a type of them:\n{}", found.join("\n"));
}

#[test]
fn every_form_of_a_tuple_parameter_is_seen() {
    let text = "fn a((x, y): (u8, u8)) {} fn b(both: &(u8, u8)) {} trait C { fn d(&self, all: &mut (u8, u8, u8)); }
        impl E { fn f(self, _: (u8, u8)) { fn g(_: ((u8, u8))) {} } }
        fn none(_: (), write: &mut (dyn Write + Send), list: &[(u8, u8)], each: impl Fn((u8, u8))) {}";
    let syntax = syn::parse_file(text).expect("Rust");
    let source = Source { file: "a.rs".into(), module: Vec::new(), tests: false, syntax };
    let found = tuples(&source);
    let names: Vec<&str> = found.iter().filter_map(|place| place.split('`').nth(1)).collect();
    assert_eq!(names, ["a", "b", "d", "f", "g"]);
}
