//! The integration tests: one binary, a file per subject, everything over real sockets on free ports.
#![expect(unreachable_pub, reason = "a test binary has no outside; `pub` marks what other files of it use")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot go on is to fail, in its tools as in itself"
)]

mod acceptance;
mod accounts;
mod agentchaos;
mod amend;
mod annotate;
mod architecture;
mod assembled;
mod attacked;
mod attribute;
mod background;
mod bodies;
mod boundaries;
mod branches;
mod campaign;
mod client_verdict;
mod clients;
mod container;
mod conformance;
mod context;
mod dataset;
mod dry_runs;
mod durability;
mod earlier_version;
mod echo;
mod endings;
mod example_data;
mod examples;
mod executions;
mod fault_transcripts;
mod faults;
mod foreign;
mod formats;
mod fuzz;
mod frames;
mod fuller;
mod framing;
mod growth;
mod h2_peers;
mod half_closed;
mod hostile;
mod identity;
mod independent;
mod init;
mod invariants;
mod lab;
mod label_gates;
mod learned;
mod limits;
mod lineage;
mod memory;
mod mode_judge;
mod modes;
mod monitor;
mod mistakes;
mod outputs;
mod parameters;
mod passing;
mod plans;
mod program;
mod proof;
mod prove;
mod readme;
mod rewards;
mod rewriting;
mod rewriting_hostile;
mod replay;
mod replay_exact;
mod reruns;
mod retries;
mod retry;
mod routing;
mod rows;
mod run_told;
mod score;
mod scripted;
mod secrets;
mod shutdown;
mod shard;
mod side_by_side;
mod stored_state;
mod suggested;
mod suggested_lines;
mod surfaces;
mod survival;
mod task_sets;
mod terminal;
mod told_lines;
mod told_true;
mod tidy;
mod trace;
mod unread;
mod upstream_team;
mod unsure;
mod upstream_failures;
mod upstream_h2;
mod viewer;
mod watch;
mod websocket;
