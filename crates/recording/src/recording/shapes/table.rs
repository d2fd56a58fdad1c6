//! The table of shapes: one line each.

/// How a key may begin, and what must follow for it to be one.
pub(super) struct KeyShape {
    pub(super) begins: &'static str,
    pub(super) rule: ShapeRule,
}

/// What must follow.
#[derive(Clone, Copy)]
pub(super) enum ShapeRule {
    /// A token of these characters, at least so long. The beginning is read as it is written, and begins a word.
    Token(CharRun, usize),
    /// As a token, but only exactly so long.
    Fixed(CharRun, usize),
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
    /// A mark in the middle of a bot's token: digits, the mark, and a token.
    Bot,
}

/// Characters that come in runs.
#[derive(Clone, Copy)]
pub(super) enum CharRun {
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
    /// As `Word`: the second and the third part of a token, which lie ahead of words that are still to be looked at.
    Claims,
    Signature,
}

const fn shape(begins: &'static str, rule: ShapeRule) -> KeyShape {
    KeyShape { begins, rule }
}

/// One line a shape.
pub(super) static SHAPES: &[KeyShape] = &[
    shape("sk-", ShapeRule::Sk),
    shape("sk_live_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("sk_test_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("rk_live_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("rk_test_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("pk_live_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("pk_test_", ShapeRule::Token(CharRun::Alphanumeric, 10)),
    shape("whsec_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("ghp_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("gho_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("ghu_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("ghs_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("ghr_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("github_pat_", ShapeRule::Token(CharRun::Word, 16)),
    shape("glpat-", ShapeRule::Token(CharRun::Word, 16)),
    shape("glsa_", ShapeRule::Token(CharRun::Word, 16)),
    shape("dckr_pat_", ShapeRule::Token(CharRun::Word, 16)),
    shape("npm_", ShapeRule::Token(CharRun::Alphanumeric, 20)),
    shape("pypi-", ShapeRule::Token(CharRun::Word, 40)),
    shape("dop_v1_", ShapeRule::Token(CharRun::Alphanumeric, 32)),
    shape("xoxa-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxb-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxe-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxo-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxp-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxr-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xoxs-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("xapp-", ShapeRule::Token(CharRun::Dashed, 10)),
    shape("AIza", ShapeRule::Token(CharRun::Word, 30)),
    shape("ya29.", ShapeRule::Token(CharRun::Word, 16)),
    shape("hf_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("gsk_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("nvapi-", ShapeRule::Token(CharRun::Word, 16)),
    shape("xai-", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("csk-", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("pplx-", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("tvly-", ShapeRule::Token(CharRun::Word, 16)),
    shape("jina_", ShapeRule::Token(CharRun::Word, 16)),
    shape("pcsk_", ShapeRule::Token(CharRun::Word, 16)),
    shape("lsv2_pt_", ShapeRule::Token(CharRun::Word, 16)),
    shape("r8_", ShapeRule::Token(CharRun::Alphanumeric, 16)),
    shape("lsv2_sk_", ShapeRule::Token(CharRun::Word, 16)),
    shape("SG.", ShapeRule::Token(CharRun::Dotted, 20)),
    shape("hvs.", ShapeRule::Token(CharRun::Word, 20)),
    shape("hvb.", ShapeRule::Token(CharRun::Word, 20)),
    shape("AQ.", ShapeRule::Token(CharRun::Word, 30)),
    shape("ABSK", ShapeRule::Token(CharRun::Key, 40)),
    shape("GOCSPX-", ShapeRule::Token(CharRun::Word, 20)),
    shape("e2b_", ShapeRule::Token(CharRun::Alphanumeric, 32)),
    shape("fc-", ShapeRule::Fixed(CharRun::Alphanumeric, 32)),
    shape("key-", ShapeRule::Fixed(CharRun::Alphanumeric, 32)),
    shape("dapi", ShapeRule::Fixed(CharRun::Alphanumeric, 32)),
    shape("shpat_", ShapeRule::Token(CharRun::Alphanumeric, 24)),
    shape("shpca_", ShapeRule::Token(CharRun::Alphanumeric, 24)),
    shape("shpss_", ShapeRule::Token(CharRun::Alphanumeric, 24)),
    shape("sbp_", ShapeRule::Token(CharRun::Alphanumeric, 32)),
    shape("sb_secret_", ShapeRule::Token(CharRun::Word, 20)),
    shape("ATATT3x", ShapeRule::Token(CharRun::Word, 40)),
    shape("lin_api_", ShapeRule::Token(CharRun::Alphanumeric, 24)),
    shape("figd_", ShapeRule::Token(CharRun::Word, 24)),
    shape("ntn_", ShapeRule::Token(CharRun::Alphanumeric, 32)),
    shape("phx_", ShapeRule::Token(CharRun::Alphanumeric, 24)),
    shape("xkeysib-", ShapeRule::Token(CharRun::Dashed, 32)),
    shape("sk_", ShapeRule::Token(CharRun::Alphanumeric, 40)),
    shape("fw_", ShapeRule::Token(CharRun::Alphanumeric, 20)),
    shape("hooks.slack.com/services/", ShapeRule::Token(CharRun::Key, 24)),
    shape("discord.com/api/webhooks/", ShapeRule::Token(CharRun::Key, 30)),
    shape("discordapp.com/api/webhooks/", ShapeRule::Token(CharRun::Key, 30)),
    shape(":AA", ShapeRule::Bot),
    shape("AKIA", ShapeRule::Fixed(CharRun::Capital, 16)),
    shape("ASIA", ShapeRule::Fixed(CharRun::Capital, 16)),
    shape("JQQJ99", ShapeRule::Azure),
    shape("eyJ", ShapeRule::Jwt),
    shape("bearer", ShapeRule::Scheme),
    shape("basic", ShapeRule::Scheme),
    shape("authorization", ShapeRule::Authorization),
    shape("cookie", ShapeRule::Cookie),
    shape("api_key", ShapeRule::Named),
    shape("api-key", ShapeRule::Named),
    shape("apikey", ShapeRule::Named),
    shape("access_key", ShapeRule::Named),
    shape("access-key", ShapeRule::Named),
    shape("accesskey", ShapeRule::Named),
    shape("account_key", ShapeRule::Named),
    shape("accountkey", ShapeRule::Named),
    shape("secret_key", ShapeRule::Named),
    shape("secret-key", ShapeRule::Named),
    shape("secretkey", ShapeRule::Named),
    shape("private_key", ShapeRule::Named),
    shape("subscription-key", ShapeRule::Named),
    shape("signing_key", ShapeRule::Named),
    shape("secret", ShapeRule::Named),
    shape("password", ShapeRule::Named),
    shape("passwd", ShapeRule::Named),
    shape("passphrase", ShapeRule::Named),
    shape("token", ShapeRule::Named),
    shape("jwt", ShapeRule::Named),
    // The same names in German, Spanish, Portuguese, French, Italian, Dutch, Polish, Turkish, Russian, Chinese, Japanese
    // and Korean.
    shape("passwort", ShapeRule::Named),
    shape("kennwort", ShapeRule::Named),
    shape("schlüssel", ShapeRule::Named),
    shape("contraseña", ShapeRule::Named),
    shape("clave", ShapeRule::Named),
    shape("senha", ShapeRule::Named),
    shape("chave", ShapeRule::Named),
    shape("mot de passe", ShapeRule::Named),
    shape("clé", ShapeRule::Named),
    shape("jeton", ShapeRule::Named),
    shape("wachtwoord", ShapeRule::Named),
    shape("hasło", ShapeRule::Named),
    shape("parola", ShapeRule::Named),
    shape("şifre", ShapeRule::Named),
    shape("пароль", ShapeRule::Named),
    shape("ключ", ShapeRule::Named),
    shape("токен", ShapeRule::Named),
    shape("密码", ShapeRule::Named),
    shape("密碼", ShapeRule::Named),
    shape("密钥", ShapeRule::Named),
    shape("口令", ShapeRule::Named),
    shape("令牌", ShapeRule::Named),
    shape("パスワード", ShapeRule::Named),
    shape("トークン", ShapeRule::Named),
    shape("비밀번호", ShapeRule::Named),
    shape("토큰", ShapeRule::Named),
    shape("?sig=", ShapeRule::Query),
    shape("&sig=", ShapeRule::Query),
    shape("?key=", ShapeRule::Query),
    shape("&key=", ShapeRule::Query),
    shape("://", ShapeRule::Login),
    shape("PRIVATE KEY-----", ShapeRule::Pem),
];
