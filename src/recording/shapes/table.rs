//! The table of shapes: one line each.

/// How a key may begin, and what must follow for it to be one.
pub(super) struct Shape {
    pub(super) begins: &'static str,
    pub(super) rule: Rule,
}

/// What must follow.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// A token of these characters, at least so long. The beginning is read as it is written, and begins a word.
    Token(Run, usize),
    /// As a token, but only exactly so long.
    Fixed(Run, usize),
    /// `sk-`: with a digit, or too long to be a word.
    Sk,
    /// Three parts with dots between.
    Jwt,
    /// `Bearer`, and a token with a digit or too long to be a word.
    Scheme,
    /// The name of a secret, and its value: `api_key = …`, `"token": "…"`.
    Named,
    /// `Authorization:` and its value, whatever the scheme.
    Authorization,
    /// `Cookie:` and its pairs.
    Cookie,
    /// A value in a URL.
    Query,
    /// A login in a URL.
    Login,
    /// The end of the first line of a private key.
    Pem,
    /// A mark in the middle of a key of Azure's.
    Azure,
}

/// Characters that come in runs.
#[derive(Clone, Copy)]
pub(super) enum Run {
    Alphanumeric,
    Capital,
    Dashed,
    Word,
    Dotted,
    Key,
    Escaped,
    NoDigit,
    Blank,
    Quote,
    Login,
    Pem,
    Name,
    Pair,
}

const fn shape(begins: &'static str, rule: Rule) -> Shape {
    Shape { begins, rule }
}

/// One line a shape.
pub(super) static SHAPES: &[Shape] = &[
    shape("sk-", Rule::Sk),
    shape("sk_live_", Rule::Token(Run::Alphanumeric, 10)),
    shape("sk_test_", Rule::Token(Run::Alphanumeric, 10)),
    shape("rk_live_", Rule::Token(Run::Alphanumeric, 10)),
    shape("rk_test_", Rule::Token(Run::Alphanumeric, 10)),
    shape("pk_live_", Rule::Token(Run::Alphanumeric, 10)),
    shape("pk_test_", Rule::Token(Run::Alphanumeric, 10)),
    shape("whsec_", Rule::Token(Run::Alphanumeric, 16)),
    shape("ghp_", Rule::Token(Run::Alphanumeric, 16)),
    shape("gho_", Rule::Token(Run::Alphanumeric, 16)),
    shape("ghu_", Rule::Token(Run::Alphanumeric, 16)),
    shape("ghs_", Rule::Token(Run::Alphanumeric, 16)),
    shape("ghr_", Rule::Token(Run::Alphanumeric, 16)),
    shape("github_pat_", Rule::Token(Run::Word, 16)),
    shape("glpat-", Rule::Token(Run::Word, 16)),
    shape("glsa_", Rule::Token(Run::Word, 16)),
    shape("dckr_pat_", Rule::Token(Run::Word, 16)),
    shape("npm_", Rule::Token(Run::Alphanumeric, 20)),
    shape("pypi-", Rule::Token(Run::Word, 40)),
    shape("dop_v1_", Rule::Token(Run::Alphanumeric, 32)),
    shape("xoxa-", Rule::Token(Run::Dashed, 10)),
    shape("xoxb-", Rule::Token(Run::Dashed, 10)),
    shape("xoxe-", Rule::Token(Run::Dashed, 10)),
    shape("xoxo-", Rule::Token(Run::Dashed, 10)),
    shape("xoxp-", Rule::Token(Run::Dashed, 10)),
    shape("xoxr-", Rule::Token(Run::Dashed, 10)),
    shape("xoxs-", Rule::Token(Run::Dashed, 10)),
    shape("xapp-", Rule::Token(Run::Dashed, 10)),
    shape("AIza", Rule::Token(Run::Word, 30)),
    shape("ya29.", Rule::Token(Run::Word, 16)),
    shape("hf_", Rule::Token(Run::Alphanumeric, 16)),
    shape("gsk_", Rule::Token(Run::Alphanumeric, 16)),
    shape("nvapi-", Rule::Token(Run::Word, 16)),
    shape("xai-", Rule::Token(Run::Alphanumeric, 16)),
    shape("csk-", Rule::Token(Run::Alphanumeric, 16)),
    shape("pplx-", Rule::Token(Run::Alphanumeric, 16)),
    shape("tvly-", Rule::Token(Run::Word, 16)),
    shape("jina_", Rule::Token(Run::Word, 16)),
    shape("pcsk_", Rule::Token(Run::Word, 16)),
    shape("lsv2_pt_", Rule::Token(Run::Word, 16)),
    shape("r8_", Rule::Token(Run::Alphanumeric, 16)),
    shape("SG.", Rule::Token(Run::Dotted, 20)),
    shape("AKIA", Rule::Fixed(Run::Capital, 16)),
    shape("ASIA", Rule::Fixed(Run::Capital, 16)),
    shape("JQQJ99", Rule::Azure),
    shape("eyJ", Rule::Jwt),
    shape("bearer", Rule::Scheme),
    shape("basic", Rule::Scheme),
    shape("authorization", Rule::Authorization),
    shape("cookie", Rule::Cookie),
    shape("api_key", Rule::Named),
    shape("api-key", Rule::Named),
    shape("apikey", Rule::Named),
    shape("access_key", Rule::Named),
    shape("access-key", Rule::Named),
    shape("accesskey", Rule::Named),
    shape("account_key", Rule::Named),
    shape("accountkey", Rule::Named),
    shape("secret_key", Rule::Named),
    shape("secret-key", Rule::Named),
    shape("secretkey", Rule::Named),
    shape("private_key", Rule::Named),
    shape("subscription-key", Rule::Named),
    shape("signing_key", Rule::Named),
    shape("secret", Rule::Named),
    shape("password", Rule::Named),
    shape("passwd", Rule::Named),
    shape("passphrase", Rule::Named),
    shape("token", Rule::Named),
    shape("jwt", Rule::Named),
    shape("?sig=", Rule::Query),
    shape("&sig=", Rule::Query),
    shape("?key=", Rule::Query),
    shape("&key=", Rule::Query),
    shape("://", Rule::Login),
    shape("PRIVATE KEY-----", Rule::Pem),
];
