//! `LangGraph`'s metadata, which every tracer passes on under names of its own: the node that made a call, and the nodes
//! around it. A node of a tool loop (`agent`, `model`) is nobody's name while a node around it has one.

use serde_json::Value;

use super::{
    super::{ForeignAgent, fields::text},
    convention::{Convention, named},
    span::TraceSpan,
};

/// What `LangGraph` calls a graph that nobody named.
pub(super) const UNNAMED: &str = "LangGraph";
/// Nodes of the tool loop that `create_agent` and `create_react_agent` make, and others that are no agent's name.
const LOOP: &[&str] = &["agent", "model", "tools", "call_model", "llm", "__start__", "__end__"];

/// Reads the metadata.
#[derive(Debug)]
pub(super) struct LangGraph;

impl Convention for LangGraph {
    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        let metadata = span.json("metadata").unwrap_or_default();
        let (name, place) = node(&|name| value(span, &metadata, name), LOOP)?;
        named(&name, &place, span)
    }
}

/// The node of a loop, for a call that nothing else names.
pub(super) fn loop_node(span: &TraceSpan) -> Option<ForeignAgent> {
    let metadata = span.json("metadata").unwrap_or_default();
    let (node, place) = value(span, &metadata, "langgraph_node")?;
    named(&node, &place, span)
}

/// Whether the nodes are a graph's of several agents, and not a tool loop's.
pub(super) fn is_graph(nodes: &Value) -> bool {
    nodes.as_array().into_iter().flatten().filter_map(Value::as_str).any(|node| !LOOP.contains(&node))
}

/// A field of the metadata, and where it stands.
fn value(span: &TraceSpan, metadata: &Value, name: &str) -> Option<(String, String)> {
    let prefixes = [
        "traceloop.association.properties.",
        "langfuse.observation.metadata.",
        "metadata.",
        "ai.telemetry.metadata.",
        "",
    ];
    let own = prefixes.iter().find_map(|prefix| {
        let place = format!("{prefix}{name}");
        // Langfuse writes each as JSON.
        let said = span.text(&place).map(|said| said.trim_matches('"').to_owned())?;
        Some((said, place))
    });
    own.or_else(|| Some((text(metadata, name)?.to_owned(), format!("metadata.{name}"))))
}

/// The node that has a name of its own, and where it stands; `nobody`: nodes that have none.
fn node(field: &dyn Fn(&str) -> Option<(String, String)>, nobody: &[&str]) -> Option<(String, String)> {
    if let Some(named) = field("lc_agent_name").filter(|(name, _)| name != UNNAMED) {
        return Some(named);
    }
    // `outer:id|inner:id`: the innermost node that has a name of its own.
    if let Some((path, place)) = field("langgraph_checkpoint_ns").or_else(|| field("checkpoint_ns")) {
        let mut nodes = path.rsplit('|').map(|node| node.split(':').next().unwrap_or_default());
        if let Some(found) = nodes.find(|node| !node.is_empty() && !nobody.contains(node)) {
            let own = field("langgraph_node").filter(|(own, _)| own == found);
            return Some((found.to_owned(), own.map_or(place, |(_, place)| place)));
        }
    }
    field("langgraph_node").filter(|(node, _)| !nobody.contains(&node.as_str()))
}
