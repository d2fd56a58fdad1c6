//! Conversations as agent systems send them: each step posts the whole history again, and adds a
//! message and a reply to it.

use std::io::Write as _;

use crate::chat::Reply;
use crate::text::{Draw, fill};

/// The team; the roster of the measured proxy knows them by the first sentence of their prompts.
pub(crate) const AGENTS: [&str; 4] = ["planner", "solver", "critic", "writer"];

/// The sentence that a roster rule looks for.
pub(crate) fn introduction(agent: &str) -> String {
    format!("You are the {agent} of the team.")
}

/// The measures of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) steps: usize,
    /// 1..=4.
    pub(crate) agents: usize,
    /// Bytes of each system prompt.
    pub(crate) system: usize,
    /// Bytes of the new message (task, tool result, other agent) before each step.
    pub(crate) message: usize,
    pub(crate) reply: Reply,
    pub(crate) stream: bool,
    /// Calls of tools after each request to the model; `usize::MAX`: nothing else is asked.
    pub(crate) tools: usize,
}

impl Shape {
    /// Requests of 2 kB on average, nearly all of it new text.
    pub(crate) const SMALL: Self =
        Self { steps: 2, agents: 1, system: 460, message: 520, reply: Reply::of(16, 64), stream: false, tools: 0 };
    /// Requests of 32 kB on average, a fifth of it new text.
    pub(crate) const MIDDLE: Self =
        Self { steps: 8, agents: 1, system: 9_500, message: 4_230, reply: Reply::of(16, 64), stream: false, tools: 0 };
    /// Requests of 256 kB on average, a fortieth of it new text.
    pub(crate) const LARGE: Self = Self {
        steps: 64,
        agents: 1,
        system: 75_000,
        message: 4_630,
        reply: Reply::of(16, 64),
        stream: false,
        tools: 0,
    };
    /// Four agents over one growing transcript of thirty steps, 62 kB a request on average.
    pub(crate) const TEAM: Self =
        Self { steps: 30, agents: 4, system: 2_000, message: 2_000, reply: Reply::of(32, 60), stream: false, tools: 0 };
    /// Calls of tools, of the same size as [`Shape::SMALL`], and so are their results.
    pub(crate) const TOOLS: Self = Self { message: 1_850, tools: usize::MAX, ..Self::SMALL };
    /// An agent's turn: it asks its model, then each of its five tools.
    pub(crate) const TURN: Self = Self { steps: 6, message: 1_100, tools: 5, ..Self::SMALL };
}

/// One conversation over one shared transcript.
pub(crate) struct Conversation {
    shape: Shape,
    draw: Draw,
    /// Which agent of the team speaks first, so that a team of one is not always the same one.
    first: usize,
    systems: Vec<Vec<u8>>,
    transcript: Vec<u8>,
    step: usize,
    /// Bytes of text (prompts, messages, replies; JSON-escaped) said for the first time.
    pub(crate) first_said: u64,
}

impl Conversation {
    /// A conversation whose text no other seed gives.
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let first = (draw.next() % AGENTS.len() as u64) as usize;
        let systems: Vec<Vec<u8>> = (0..shape.agents)
            .map(|agent| {
                let mut text = introduction(AGENTS[(first + agent) % AGENTS.len()]).into_bytes();
                text.push(b' ');
                let left = shape.system.saturating_sub(text.len());
                fill(&mut draw, left, &mut text);
                text
            })
            .collect();
        let first_said = systems.iter().map(|text| text.len() as u64).sum();
        Self { shape, draw, first, systems, transcript: Vec::new(), step: 0, first_said }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.step >= self.shape.steps
    }

    /// The agent whose call the next request is.
    pub(crate) fn agent(&self) -> &'static str {
        AGENTS[(self.first + self.step % self.shape.agents) % AGENTS.len()]
    }

    /// Whether the next request is a call of a tool.
    pub(crate) fn asks_a_tool(&self) -> bool {
        self.shape.tools == usize::MAX || !self.step.is_multiple_of(self.shape.tools + 1)
    }

    /// Writes the next request's body.
    pub(crate) fn next_request(&mut self, out: &mut Vec<u8>) {
        if self.asks_a_tool() {
            return self.next_call(out);
        }
        let shape = self.shape;
        self.transcript.extend_from_slice(br#",{"role":"user","content":""#);
        fill(&mut self.draw, shape.message, &mut self.transcript);
        self.transcript.extend_from_slice(b"\"}");
        self.first_said += shape.message as u64;
        out.clear();
        let opening = format!(r#"{{"model":"{}","messages":[{{"role":"system","content":""#, shape.reply.model());
        out.extend_from_slice(opening.as_bytes());
        out.extend_from_slice(&self.systems[self.step % shape.agents]);
        out.extend_from_slice(b"\"}");
        out.extend_from_slice(&self.transcript);
        write!(out, r#"],"temperature":0.7,"max_tokens":{}"#, shape.reply.tokens).expect("a vector takes every write");
        if shape.stream {
            out.extend_from_slice(br#","stream":true,"stream_options":{"include_usage":true}"#);
        }
        out.push(b'}');
        self.step += 1;
    }

    /// Writes a call of one of five tools: its name says what to answer, as a model's does.
    fn next_call(&mut self, out: &mut Vec<u8>) {
        let (name, which) = (self.shape.reply.model(), self.step % 5);
        out.clear();
        write!(out, r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"{name}-k{which}","arguments":{{"text":""#, self.step)
            .expect("a vector takes every write");
        fill(&mut self.draw, self.shape.message, out);
        out.extend_from_slice(b"\"}}}");
        self.first_said += self.shape.message as u64;
        self.step += 1;
    }

    /// The reply's text, JSON-escaped, joins the history.
    pub(crate) fn answered(&mut self, text: &[u8]) {
        self.transcript.extend_from_slice(br#",{"role":"assistant","content":""#);
        self.transcript.extend_from_slice(text);
        self.transcript.extend_from_slice(b"\"}");
        self.first_said += text.len() as u64;
    }
}
