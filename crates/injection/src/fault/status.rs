//! `status`: the service refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnswerBody, Attempts, Disturbance, Fault, HeaderName, HeaderValue};

/// Answers with an HTTP error instead of asking the upstream, with the provider's body.
///
/// SDKs try 408, 409, 429 and 5xx again, twice by default; `sdk_retry = "suppress"` tells them not to. `insufficient_quota`
/// and `context_length_exceeded` as `code_name` bring their own message and type along.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.status = { code = 429, retry_after_s = 1, attempts = "first" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "status"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// HTTP status.
    pub code: ErrorStatus,
    /// Header `retry-after` in seconds.
    pub retry_after_s: Option<u32>,
    /// Header `retry-after-ms` in milliseconds.
    pub retry_after_ms: Option<u32>,
    /// Header `retry-after` with the date this many seconds from now.
    pub retry_after_date: Option<u32>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
    /// Whether SDKs may retry.
    #[serde(default)]
    pub sdk_retry: SdkRetry,
    /// Error message, instead of the provider's.
    pub message: Option<String>,
    /// Error type, instead of the provider's.
    pub kind: Option<String>,
    /// Error code, instead of the provider's.
    pub code_name: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<HeaderName, HeaderValue>,
}

/// An HTTP status of an error: 400 to 599.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "i64", into = "i64")]
#[schemars(with = "u16", extend("minimum" = 400, "maximum" = 599))]
pub struct ErrorStatus(u16);

impl TryFrom<i64> for ErrorStatus {
    type Error = String;

    fn try_from(code: i64) -> Result<Self, String> {
        match u16::try_from(code) {
            Ok(status) if (400..600).contains(&status) => Ok(Self(status)),
            _ => Err(format!("`{code}` is not an error status: expected 400 to 599")),
        }
    }
}

impl From<ErrorStatus> for i64 {
    fn from(status: ErrorStatus) -> i64 {
        status.0.into()
    }
}

/// Whether an SDK may retry the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SdkRetry {
    /// As usual.
    #[default]
    Allow,
    /// Not: the answer has the header `x-should-retry: false`.
    Suppress,
}

impl Fault for Status {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        if !self.attempts.include(attempt) {
            return None;
        }
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let own = [
            ("retry-after", self.retry_after_s.map(|seconds| seconds.to_string())),
            ("retry-after-ms", self.retry_after_ms.map(|ms| ms.to_string())),
            ("x-should-retry", (self.sdk_retry == SdkRetry::Suppress).then(|| "false".to_owned())),
        ];
        headers.extend(own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Some(Disturbance::Answer {
            status: self.code.0,
            headers,
            retry_after_date: self.retry_after_date.map(|seconds| Duration::from_secs(seconds.into())),
            body: AnswerBody::Error {
                message: self.message.clone(),
                kind: self.kind.clone(),
                code: self.code_name.clone(),
            },
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.retry_after_s.is_some() && self.retry_after_date.is_some() {
            return Err("both `retry_after_s` and `retry_after_date` are given: expected one of them".to_owned());
        }
        let own = ["retry-after", "retry-after-ms", "x-should-retry"];
        match self.headers.keys().find(|name| own.contains(&name.to_string().as_str())) {
            Some(name) => Err(format!("header `{name}` has a parameter of its own")),
            None => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let wait = match (self.retry_after_s.or(self.retry_after_date), self.retry_after_ms) {
            (Some(seconds), _) => format!(" and asks to wait {seconds} s"),
            (None, Some(ms)) => format!(" and asks to wait {ms} ms"),
            (None, None) => String::new(),
        };
        let retry = if self.sdk_retry == SdkRetry::Suppress { ", SDK retries suppressed" } else { "" };
        format!("answers with HTTP {}{wait} instead of asking the upstream, {}{retry}", self.code.0, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(parameters: &str) -> Vec<(String, String)> {
        let status: Status = toml::from_str(parameters).expect(parameters);
        assert_eq!(status.check(), Ok(()));
        match status.disturb(7, 0).expect("the first try is met") {
            Disturbance::Answer { status, headers, .. } if parameters.contains(&status.to_string()) => headers,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headers_say_when_and_whether_to_try_again() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (parameters, expected) in [
            ("retry_after_s = 2", header("retry-after", "2")),
            ("retry_after_ms = 20", header("retry-after-ms", "20")),
            ("sdk_retry = 'suppress'", header("x-should-retry", "false")),
            ("headers = { X-Request-Id = 'req_1' }", header("x-request-id", "req_1")),
        ] {
            assert_eq!(headers(&format!("code = 503\n{parameters}")), [expected], "{parameters}");
        }
        let dated: Status = toml::from_str("code = 429\nretry_after_date = 5").expect("reads");
        assert!(matches!(
            dated.disturb(0, 0),
            Some(Disturbance::Answer { retry_after_date: Some(wait), .. }) if wait == Duration::from_secs(5)
        ));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in ["code = 200", "code = 600", "code = -1", "code = 429\nheaders = { a = \"b\\r\\nc\" }", "code = 'x'"] {
            assert!(toml::from_str::<Status>(bad).is_err(), "{bad}");
        }
        for bad in ["retry_after_s = 1\nretry_after_date = 1", "headers = { Retry-After = '1' }"] {
            let status: Status = toml::from_str(&format!("code = 429\n{bad}")).expect(bad);
            assert!(status.check().is_err(), "{bad}");
        }
        let once: Status = toml::from_str("code = 429\nattempts = 'first'").expect("reads");
        assert!(once.disturb(0, 0).is_some() && once.disturb(0, 1).is_none());
    }
}
