//! Secrets × places: keys of real vendors, and five kinds of a user's own, in each place of an exchange. None is readable in what
//! is recorded, and prose and code stay.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{sample, secrets::everything};
use crate::recording::{Captured, Open, Recorder, Redactor, Secrets, Settings};

/// How a vendor's keys begin, and the lengths of the runs behind that, with what stands between them.
const VENDORS: &[(&str, &[usize], &str)] = &[
    ("sk-", &[48], ""),
    ("sk-proj-", &[60], ""),
    ("sk-ant-api03-", &[90], ""),
    ("sk-or-v1-", &[64], ""),
    ("ghp_", &[36], ""),
    ("gho_", &[36], ""),
    ("ghs_", &[36], ""),
    ("github_pat_", &[22, 59], "_"),
    ("glpat-", &[20], ""),
    ("glsa_", &[32, 8], "_"),
    ("dckr_pat_", &[27], ""),
    ("npm_", &[36], ""),
    ("pypi-", &[150], ""),
    ("dop_v1_", &[64], ""),
    ("xoxb-", &[12, 12, 24], "-"),
    ("xapp-1-", &[11, 13, 64], "-"),
    ("AIza", &[35], ""),
    ("ya29.", &[64], ""),
    ("hf_", &[34], ""),
    ("gsk_", &[52], ""),
    ("nvapi-", &[64], ""),
    ("xai-", &[80], ""),
    ("csk-", &[48], ""),
    ("pplx-", &[48], ""),
    ("tvly-", &[32], ""),
    ("jina_", &[60], ""),
    ("pcsk_", &[6, 60], "_"),
    ("lsv2_pt_", &[32, 10], "_"),
    ("lsv2_sk_", &[32, 10], "_"),
    ("r8_", &[37], ""),
    ("SG.", &[22, 43], "."),
    ("hvs.", &[90], ""),
    ("AQ.", &[50], ""),
    ("ABSK", &[110], ""),
    ("GOCSPX-", &[28], ""),
    ("e2b_", &[40], ""),
    ("fc-", &[32], ""),
    ("dapi", &[32], ""),
    ("shpat_", &[32], ""),
    ("sbp_", &[40], ""),
    ("ATATT3x", &[180], ""),
    ("sk_live_", &[24], ""),
    ("whsec_", &[32], ""),
    ("https://hooks.slack.com/services/T0", &[9, 11, 24], "/"),
    ("https://discord.com/api/webhooks/1", &[18, 68], "/"),
    ("eyJ", &[17, 60, 43], "."),
    ("Bearer ", &[32], ""),
    ("-----BEGIN RSA PRIVATE KEY-----\\n", &[64, 64], "\\n"),
];
/// The names of a secret in the most spoken languages, as texts give it a value.
const NAMES: &[&str] = &[
    "password: ",
    "API_KEY=",
    "密码：",
    "密钥: ",
    "पासवर्ड: ",
    "contraseña = ",
    "mot de passe : ",
    "كلمة المرور: ",
    "পাসওয়ার্ড: ",
    "Пароль: ",
    "senha: ",
    "پاس ورڈ: ",
    "kata sandi: ",
    "Passwort: ",
    "パスワード：",
];
const VALUE: &str = "Kd93hf72LqPz";
/// What the process itself has: each is known by where it stands, and has no shape.
const OWN: &[(&str, &str)] = &[
    ("own header of any vendor", "9f8e7d6c5b4a39281706"),
    ("own cookie", "c0ffee12c0ffee34c0ff"),
    ("own query", "77aa88bb99cc00dd11ee"),
    ("own variable", "ad41f0be72c95d683e17"),
    ("own [secrets]", "hunter-is-declared-2"),
];

/// Characters of a key, none of them twice in a short distance.
fn run(length: usize, from: usize) -> String {
    const ALPHABET: &[u8] = b"Qz7Wm3Xk9Rt2Yb5Nc8Vd1Lf4Jh6Gs0PaTe";
    (from..from + length).map(|at| char::from(ALPHABET[(at * 7 + at / 34) % ALPHABET.len()])).collect()
}

/// A secret: its name, the text in which it stands, and what must not be readable of it.
struct SampleSecret {
    name: String,
    text: String,
    core: String,
}

fn samples() -> Vec<SampleSecret> {
    let vendors = VENDORS.iter().map(|(begins, runs, between)| {
        let parts: Vec<String> = runs.iter().enumerate().map(|(at, length)| run(*length, at * 11)).collect();
        let core = parts.iter().max_by_key(|part| part.len()).cloned().unwrap_or_default();
        SampleSecret { name: (*begins).to_owned(), text: format!("{begins}{}", parts.join(between)), core }
    });
    let bot = SampleSecret { name: "bot".to_owned(), text: format!("1234567890:AA{}", run(33, 0)), core: run(33, 0) };
    let aws = format!("AKIA{}", run(16, 0).to_ascii_uppercase());
    let aws = SampleSecret { name: "AKIA".to_owned(), core: aws.clone(), text: aws };
    let named =
        |name: &&str| SampleSecret { name: (*name).to_owned(), text: format!("{name}{VALUE}"), core: VALUE.to_owned() };
    let own =
        |own: &(&str, &str)| SampleSecret { name: own.0.to_owned(), text: own.1.to_owned(), core: own.1.to_owned() };
    vendors.chain([bot, aws]).chain(NAMES.iter().map(named)).chain(OWN.iter().map(own)).collect()
}

fn redactor() -> Redactor {
    let values = OWN[3..].iter().map(|(_, value)| (*value).to_owned()).collect();
    let redactor = Redactor::new(&Secrets { values, ..Secrets::default() }).expect("compiles");
    let cookie = format!("theme=dark; sid={}", OWN[1].1);
    let headers: [(&str, &[u8]); 2] = [("X-Acme-Access-Token", OWN[0].1.as_bytes()), ("Cookie", cookie.as_bytes())];
    redactor.add_credentials(&format!("/v1/x?session_id={}", OWN[2].1), &headers);
    redactor
}

/// What is recorded of a text.
type Place = fn(&Recorder, &str);

fn asks(recorder: &Recorder, body: String) {
    sample::exchange(recorder, 0, "a", &Bytes::from(body), &Bytes::from_static(b"{}")).expect("records");
}

fn answers(recorder: &Recorder, pieces: &[String]) {
    let pieces: Vec<(Bytes, u64)> = pieces.iter().map(|piece| (Bytes::from(piece.clone()), 1)).collect();
    sample::open(recorder, 0, "a", &Bytes::from_static(b"{}")).expect("records");
    recorder.close(sample::closing(0, Captured::Stream(&pieces))).expect("records");
}

fn nested(text: &str, depth: usize) -> Value {
    (0..depth).fold(json!({"v": text}), |value, _| json!({"v": value.to_string()}))
}

const PLACES: &[(&str, Place)] = &[
    ("request text", |to, text| asks(to, json!({"messages": [{"role": "user", "content": text}]}).to_string())),
    ("prompt, text around", |to, text| {
        asks(to, json!({"messages": [{"content": format!("It is\n{text}\nkeep it")}]}).to_string())
    }),
    ("tool arguments", |to, text| {
        asks(to, json!({"tool_calls": [{"function": {"arguments": nested(text, 0).to_string()}}]}).to_string())
    }),
    ("JSON in JSON, three deep", |to, text| asks(to, nested(text, 3).to_string())),
    ("broken JSON", |to, text| asks(to, format!("{{\"messages\": [{{\"content\": \"{text}\" "))),
    ("plain body", |to, text| asks(to, format!("--x\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--x--"))),
    ("whole reply", |to, text| {
        let reply = Bytes::from(json!({"choices": [{"message": {"content": text}}]}).to_string());
        sample::exchange(to, 0, "a", &Bytes::from_static(b"{}"), &reply).expect("records");
    }),
    ("error of the upstream", |to, text| {
        let reply = Bytes::from(json!({"error": {"message": format!("Incorrect key provided: {text}.")}}).to_string());
        sample::exchange(to, 0, "a", &Bytes::from_static(b"{}"), &reply).expect("records");
    }),
    ("event of a stream", |to, text| {
        answers(
            to,
            &[
                format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]})),
                "data: [DONE]\n\n".to_owned(),
            ],
        );
    }),
    ("stream in pieces", |to, text| {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let events = letters.chunks(3).map(|piece| {
            format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": piece.concat()}}]}))
        });
        answers(to, &events.collect::<Vec<_>>());
    }),
    ("headers and path", |to, text| {
        let body = Bytes::from_static(b"{}");
        let agent = sample::agent("a");
        let headers: [(&str, &[u8]); 2] = [("user-agent", text.as_bytes()), ("x-request-id", text.as_bytes())];
        let path = format!("/v1/chat/completions?x={}", text.replace(' ', "%20"));
        to.open(Open { path: &path, headers: &headers, ..sample::opening(0, &agent, &body) }).expect("records");
    }),
    ("note, evidence of an agent", |to, text| {
        let body = Bytes::from_static(b"{}");
        let agent = crate::trajectory::Attribution { evidence: format!("prompt holds {text}"), ..sample::agent("a") };
        to.note(&format!("upstream says: {text}"));
        to.open(sample::opening(0, &agent, &body)).expect("records");
    }),
];

/// Whether a text stands readable in what was recorded.
fn leaks(dir: &Path, core: &str) -> bool {
    let all = everything(dir);
    // A stream's pieces stand between their events: what is read together is looked for together, too.
    let joined: Vec<u8> = crate::recording::read(&dir.join("r"))
        .expect("reads")
        .trajectory
        .steps
        .iter()
        .flat_map(|step| {
            let reply = step.last_attempt().map(|attempt| attempt.reply.to_vec()).unwrap_or_default();
            let lines = String::from_utf8_lossy(&reply).into_owned();
            let texts = lines
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            texts
                .filter_map(|event| event.pointer("/choices/0/delta/content")?.as_str().map(str::to_owned))
                .collect::<String>()
                .into_bytes()
        })
        .collect();
    [all, joined].iter().any(|bytes| memchr::memmem::find(bytes, core.as_bytes()).is_some())
}

#[test]
fn no_secret_is_readable_in_any_place() {
    let samples = samples();
    let mut readable: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    println!("{:>4} secrets", samples.len());
    for (place, record) in PLACES {
        for secret in &samples {
            let logs = tempfile::tempdir().expect("a directory");
            let settings = Settings { redactor: redactor(), ..Settings::default() };
            let recorder = Recorder::create(logs.path(), sample::manifest("r"), &settings).expect("creates");
            record(&recorder, &secret.text);
            if leaks(logs.path(), &secret.core) {
                readable.entry(place).or_default().push(&secret.name);
            }
        }
        println!("{:>4} readable  {place}  {:?}", readable.get(place).map_or(0, Vec::len), readable.get(place));
    }
    assert!(readable.is_empty(), "{readable:#?}");
}

#[test]
fn a_credential_of_ones_own_is_not_readable_in_base64() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    for (name, value) in OWN {
        for before in ["", "u", "u:", "me:"] {
            let packed = STANDARD.encode(format!("{before}{value}:x"));
            let masked = redactor().text(&packed).into_owned();
            let plain = STANDARD.decode(masked.replace('*', "A")).unwrap_or_default();
            assert!(memchr::memmem::find(&plain, value.as_bytes()).is_none(), "{name} behind `{before}`: {masked}");
        }
    }
}

/// Prose and code: the pages and the sources of this project, but for those that speak of keys.
#[test]
fn a_megabyte_of_prose_and_code_stays() {
    const ENOUGH: usize = 1 << 20;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut dirs = ["docs", "crates/dataset/src", "crates/conversation/src", "crates/viewer/src", "python/aegis/src"]
        .map(|dir| root.join(dir))
        .to_vec();
    let (mut length, mut masked) = (0, Vec::new());
    while let Some(dir) = dirs.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(dir).expect("lists").flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            length += text.len();
            let spans = Redactor::default().find(text.as_bytes(), 0..text.len());
            masked.extend(
                spans.into_iter().map(|span| format!("{}: {}", path.display(), text.get(span).unwrap_or_default())),
            );
        }
    }
    println!("{length} bytes, {} masked: {masked:#?}", masked.len());
    assert!(length >= ENOUGH, "{length}");
    assert!(masked.len() * ENOUGH <= 3 * length, "{} of {length} bytes: {masked:#?}", masked.len());
}
