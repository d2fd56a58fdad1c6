//! Tables of what a listener answers: requests are led by one, and the `OpenAPI` document is made from it.

use hyper::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes a reference to the schema of a body.
pub type BodySchema = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a body, for a row of a table.
pub fn body_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What an answer holds.
#[derive(Debug, Clone, Copy)]
pub enum RouteAnswer {
    /// JSON, with the schema of its type.
    Json(BodySchema),
    /// Something else, of this media type.
    Other(&'static str),
    /// Nothing (204).
    Nothing,
}

/// A request that is answered, and what is done for it.
#[derive(Debug)]
pub struct HttpRoute<A> {
    /// The method.
    pub method: &'static str,
    /// The path; `{name}` stands for any segment.
    pub path: &'static str,
    /// What comes of it, in a sentence without its full stop.
    pub about: &'static str,
    /// The body that it takes.
    pub takes: Option<BodySchema>,
    /// What its answer holds.
    pub answers: RouteAnswer,
    action: A,
}

impl<A: Copy> HttpRoute<A> {
    /// A request that takes no body.
    pub const fn get(path: &'static str, about: &'static str, action: A, answers: RouteAnswer) -> Self {
        Self { method: "GET", path, about, takes: None, answers, action }
    }

    /// A request that changes something.
    pub const fn post(
        path: &'static str,
        about: &'static str,
        action: A,
        takes: Option<BodySchema>,
        answers: RouteAnswer,
    ) -> Self {
        Self { method: "POST", path, about, takes, answers, action }
    }

    /// What a request asks for, and what stands in its path where the table has a name.
    pub fn matched<'p>(routes: &[Self], method: &Method, path: &'p str) -> Option<(A, Vec<&'p str>)> {
        let segments: Vec<&str> = path.split('/').collect();
        routes.iter().filter(|route| *method == route.method).find_map(|route| {
            let known: Vec<&str> = route.path.split('/').collect();
            let is_name = |known: &str| known.starts_with('{');
            let fits = known.len() == segments.len()
                && known.iter().zip(&segments).all(|(known, asked)| is_name(known) || known == asked);
            let named = || known.iter().zip(&segments).filter(|(known, _)| is_name(known)).map(|(_, asked)| *asked);
            fits.then(|| (route.action, named().collect()))
        })
    }
}
