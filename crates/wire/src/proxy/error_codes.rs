//! The codes of errors of the proxy's own making, as programs read them in `x-aegis-error`.

use hyper::StatusCode;

/// Each with its status.
pub const PROXY_CODES: &[(&str, u16)] = &[
    ("refused_framing", 400),
    ("head_too_large", 431),
    ("target_too_long", 414),
    ("refused_target", 400),
    ("body_too_large", 413),
    ("too_many_requests", 429),
    ("body_timeout", 408),
    ("body_broken", 400),
    ("invalid_id", 400),
    ("secret_name", 400),
    ("doubled_v1", 404),
    ("unknown_host", 421),
    ("web_page", 403),
    ("no_token", 401),
    ("no_such_reply", 404),
    ("no_such_object", 404),
    ("shared_list", 403),
    ("unchecked_socket", 403),
    ("no_run", 400),
    ("no_server", 404),
    ("two_servers", 409),
    ("not_attached", 404),
    ("run_sealed", 409),
    ("stopped_by_rule", 409),
    ("unreadable_body", 400),
    ("busy", 503),
    ("no_websocket", 426),
    ("stopping", 503),
    ("recording_failed", 503),
    ("upstream_unreachable", 502),
    ("upstream_timeout", 504),
    ("upstream_closed", 502),
    ("upstream_framing", 502),
    ("upstream_switched", 502),
    ("closed", 502),
    ("not_recorded", 409),
    ("diverged", 409),
    ("over_budget", 409),
    ("internal", 502),
];

/// A code of the list, with its status; `internal` for what is none.
pub(super) fn listed(code: &str) -> (&'static str, StatusCode) {
    let (code, status) = PROXY_CODES.iter().find(|(listed, _)| *listed == code).copied().unwrap_or(("internal", 502));
    (code, StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_of_an_error_is_listed() {
        let source = include_str!("error.rs");
        let status = source.split("fn code(").nth(1).and_then(|rest| rest.split("fn cause(").next()).expect("it");
        let made: BTreeSet<&str> = status.split('"').skip(1).step_by(2).collect();
        let listed: BTreeSet<&str> = PROXY_CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(made, listed);
    }
}
