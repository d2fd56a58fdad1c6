//! The spans of one trace, each told what it is of, and who is above whom.

use std::collections::HashMap;

use super::{conventions, langgraph, span::TraceSpan};

/// How far up agents and wrappers are looked for.
pub(super) const HIGHEST: usize = 256;

/// The spans of one trace, and who is above whom.
pub(super) struct SpanTree {
    pub(super) spans: Vec<TraceSpan>,
    places: HashMap<String, usize>,
    pub(super) doubled: u64,
}

impl SpanTree {
    pub(super) fn build(all: Vec<TraceSpan>) -> Self {
        let (mut spans, mut places, mut doubled) =
            (Vec::<TraceSpan>::with_capacity(all.len()), HashMap::<String, usize>::new(), 0);
        for mut span in all {
            let earlier = places.get(&span.id).and_then(|place| spans.get_mut(*place));
            doubled += u64::from(earlier.is_some());
            // Some exporters send a span when it begins, and again when it has ended.
            if earlier.as_ref().is_some_and(|earlier| earlier.ended.is_some() || span.ended.is_none()) {
                continue;
            }
            span.span_kind = conventions::span_kind(&span);
            span.agent = conventions::agent(&span);
            span.node = langgraph::loop_node(&span);
            if let Some(earlier) = earlier {
                *earlier = span;
            } else {
                places.insert(span.id.clone(), spans.len());
                spans.push(span);
            }
        }
        Self { spans, places, doubled }
    }

    /// The span above; `None` at a root, and where the one above is not in the trace.
    fn parent(&self, span: &TraceSpan) -> Option<&TraceSpan> {
        self.spans.get(*self.places.get(span.parent.as_ref()?)?)
    }

    /// A span and those above it, up to a height: a trace may go round.
    pub(super) fn upwards<'a>(&'a self, span: &'a TraceSpan) -> impl Iterator<Item = &'a TraceSpan> {
        std::iter::successors(Some(span), |span| self.parent(span)).take(HIGHEST)
    }

    /// How many spans name a parent that is not here: what is above them is not known.
    pub(super) fn orphans(&self) -> usize {
        self.spans.iter().filter(|span| span.parent.is_some() && self.parent(span).is_none()).count()
    }
}
