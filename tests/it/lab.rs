//! A laboratory: the real proxy on a free port, raw clients. Nothing sleeps; what must happen is waited for, with a
//! deadline.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use aegis::{
    identity::Identity,
    plan::{self, Plan},
    proxy::{
        Gate, HttpUpstream, Limits, ManipulatorModel, NamedServers, Proxy, RunTemplate, Runs, UpstreamOrigin,
        WithServers, serve, upstream::Upstream,
    },
    recording::{self, Recording, Settings},
    trajectory::{CloseCause, RunId, Step},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use crate::scripted::split_head;

/// Longest wait for anything in a test.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// What a lab is started with.
pub struct Setup {
    pub limits: Limits,
    pub config: &'static str,
    pub plan: Option<Arc<Plan>>,
    pub default_run: Option<&'static str>,
    pub settings: Settings,
    pub routes: Vec<(&'static str, SocketAddr, Option<&'static str>)>,
    /// The default upstream's own key.
    pub key: Option<&'static str>,
    pub ca_file: Option<PathBuf>,
    /// The manipulators' model.
    pub asking: Option<Arc<ManipulatorModel>>,
    /// Whether runs that nobody names are told by lineage.
    pub lineage: bool,
    /// Servers of tools, by name.
    pub mcp: Vec<(&'static str, SocketAddr)>,
    /// Peers, by name.
    pub a2a: Vec<(&'static str, SocketAddr)>,
    /// Who may ask.
    pub gate: Gate,
}

impl Default for Setup {
    fn default() -> Self {
        let limits =
            Limits { head_timeout: Duration::from_secs(10), drain: Duration::from_secs(10), ..Limits::default() };
        Self {
            limits,
            config: "",
            plan: None,
            default_run: Some("r0"),
            settings: Settings::default(),
            routes: Vec::new(),
            key: None,
            ca_file: None,
            asking: None,
            lineage: false,
            mcp: Vec::new(),
            a2a: Vec::new(),
            gate: Gate::default(),
        }
    }
}

impl Setup {
    /// With a plan in TOML.
    pub fn planned(text: &str) -> Self {
        let plan = plan::parse(text, "plan.toml").unwrap_or_else(|errors| panic!("{errors}"));
        Self { plan: Some(Arc::new(plan)), ..Self::default() }
    }
}

/// A running proxy.
pub struct Lab {
    pub address: SocketAddr,
    pub proxy: Arc<Proxy>,
    pub logs: PathBuf,
    pub dir: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<usize>>,
}

impl Lab {
    /// The proxy before an upstream on this machine.
    pub async fn before(upstream: SocketAddr, setup: Setup) -> Self {
        Self::before_url(&format!("http://{upstream}"), setup).await
    }

    /// The proxy before the upstream at a URL.
    pub async fn before_url(url: &str, setup: Setup) -> Self {
        let origin = UpstreamOrigin::parse(url, setup.key.map(|key| ("KEY", key))).expect("an origin");
        let route = |(_, address, key): &(&str, SocketAddr, Option<&str>)| {
            UpstreamOrigin::parse(&format!("http://{address}"), key.map(|key| ("KEY", key))).expect("an origin")
        };
        let routes = setup.routes.iter().map(route).collect();
        let silence = setup.limits.silence_timeout;
        let upstream = HttpUpstream::new(origin, routes, setup.ca_file.as_deref(), silence).expect("an upstream");
        Self::over(upstream.shared(), setup).await
    }

    /// The proxy before any upstream.
    pub async fn over(upstream: Arc<dyn Upstream>, setup: Setup) -> Self {
        let tools = setup.mcp.iter().map(|(name, address)| (format!("/mcp/{name}"), format!("http://{address}/mcp")));
        let peers = setup.a2a.iter().map(|(name, address)| (format!("/a2a/{name}"), format!("http://{address}")));
        let servers: BTreeMap<String, String> = tools.chain(peers).collect();
        let server = |(place, url): (&String, &String)| {
            let origin = UpstreamOrigin::mounted(url, None, place.clone()).expect("an origin");
            let server = HttpUpstream::new(origin, Vec::new(), None, setup.limits.silence_timeout);
            (place.clone(), server.expect("an upstream").shared())
        };
        let upstream: Arc<dyn Upstream> = Arc::new(WithServers::new(upstream, servers.iter().map(server).collect()));
        let dir = tempfile::tempdir().expect("a directory");
        let logs = dir.path().join("logs");
        let template = RunTemplate {
            log_dir: logs.clone(),
            recording: setup.settings,
            plan: setup.plan,
            upstream: upstream.name().to_owned(),
            base_url: None,
            config: None,
            equality: aegis::equality::EqualitySetting::default(),
        };
        let runs = Runs::new(template);
        let proxy = Arc::new(Proxy {
            identity: Identity { lineage: setup.lineage.then(Arc::default), ..identity(setup.config) },
            upstream,
            runs: match setup.asking {
                Some(asking) => Arc::new(runs.asking(asking)),
                None => Arc::new(runs),
            },
            default_run: setup.default_run.map(|run| RunId::parse(run).expect("an id")),
            routes: setup.routes.iter().map(|(model, ..)| regex::Regex::new(model).expect("a pattern")).collect(),
            servers: NamedServers::new(servers),
            gate: setup.gate,
            limits: setup.limits,
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(Arc::clone(&proxy), listener, async move {
            let _ = stopped.await;
        }));
        Self { address, proxy, logs, dir, stop: Some(stop), server: Some(server) }
    }

    /// Stops accepting and waits for exchanges under way; says how many were cut.
    pub async fn drain(&mut self) -> usize {
        drop(self.stop.take());
        match self.server.take() {
            Some(server) => within(server).await.expect("the server ends"),
            None => 0,
        }
    }

    /// Drains, seals and reads a run.
    pub async fn sealed(&mut self, run: &str) -> Recording {
        self.drain().await;
        for run in self.proxy.runs.retire() {
            run.recorder.seal().expect("sealed");
            aegis::ruling::settle(run.dir(), None).expect("label").ok();
        }
        recording::read(&self.logs.join(run)).expect("a recording")
    }

    /// A run as far as it is written.
    pub fn recorded(&self, run: &str) -> Recording {
        recording::read(&self.logs.join(run)).expect("a recording")
    }

    /// How the exchanges of a run ended so far, in the order of their steps.
    pub fn causes(&self, run: &str) -> Vec<Option<CloseCause>> {
        let last = |step: &Step| step.last_attempt().and_then(|attempt| attempt.cause);
        self.recorded(run).trajectory.steps.iter().map(last).collect()
    }

    /// One request on a connection of its own.
    pub async fn post(&self, path: &str, body: &[u8]) -> Reply {
        self.post_with(path, body, "").await
    }

    /// One request with further header lines.
    pub async fn post_with(&self, path: &str, body: &[u8], headers: &str) -> Reply {
        Reply::parse(&self.raw(&request("POST", path, body, &format!("Connection: close\r\n{headers}"))).await)
    }

    /// Sends bytes and reads until the other side closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut client = self.client().await;
        client.send(bytes).await;
        client.rest().await;
        client.seen
    }

    /// A connection of its own.
    pub async fn client(&self) -> Client {
        Client::connect(self.address).await
    }
}

/// A client that shows every byte.
pub struct Client {
    pub stream: TcpStream,
    /// What was read so far.
    pub seen: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("connect"), seen: Vec::new() }
    }

    /// Sends bytes. A proxy that refuses may close before all is written, so a failure is no failure of the test.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = within(self.stream.write_all(bytes)).await;
    }

    /// Sends a request of JSON.
    pub async fn post(&mut self, path: &str, body: &[u8]) {
        self.send(&request("POST", path, body, "")).await;
    }

    /// Reads until these bytes have come; says whether they have.
    pub async fn read_until(&mut self, needle: &[u8]) -> bool {
        let mut buffer = vec![0; 65536];
        while find(&self.seen, needle).is_none() {
            match within(self.stream.read(&mut buffer)).await {
                Ok(count @ 1..) => self.seen.extend_from_slice(&buffer[..count]),
                _ => return false,
            }
        }
        true
    }

    /// Reads to the end of the connection; the error if it was no orderly one.
    pub async fn rest(&mut self) -> Option<std::io::ErrorKind> {
        within(self.stream.read_to_end(&mut self.seen)).await.err().map(|error| error.kind())
    }

    /// Reads to the end and gives the reply.
    pub async fn reply(&mut self) -> Reply {
        self.rest().await;
        Reply::parse(&self.seen)
    }
}

/// A request as bytes.
pub fn request(method: &str, path: &str, body: &[u8], headers: &str) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn identity(config: &str) -> Identity {
    aegis::cli::Config::parse(config, "aegis.toml")
        .and_then(|config| config.identity())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A reply as a client reads it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the framing says that the body is whole.
    pub whole: bool,
}

impl Reply {
    pub fn parse(bytes: &[u8]) -> Self {
        let (head, body) = split_head(bytes);
        let head = String::from_utf8_lossy(head).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let (body, whole) = if lower.contains("transfer-encoding: chunked") {
            dechunk(body)
        } else {
            (body.to_vec(), length.is_none_or(|length| length == body.len()))
        };
        Self { status, head, body, whole }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let prefix = format!("{}:", name.to_lowercase());
        self.head
            .lines()
            .find(|line| line.to_lowercase().starts_with(&prefix))
            .map(|line| line[prefix.len()..].trim().to_owned())
    }

    /// Asserts that this is an error of the proxy's own, in the shape that SDKs read.
    pub fn assert_own_error(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}{}", self.head, self.text());
        let error = &self.json()["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
        assert!(error.get("param").is_some(), "{error}");
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(self.header("x-aegis-error").as_deref(), Some(code));
    }
}

fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = find(bytes, b"\r\n") else { return (body, false) };
        let Ok(size) = usize::from_str_radix(String::from_utf8_lossy(&bytes[..end]).trim(), 16) else {
            return (body, false);
        };
        let rest = &bytes[end + 2..];
        if size == 0 {
            return (body, rest.starts_with(b"\r\n"));
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..size.min(rest.len())]);
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        bytes = &rest[size + 2..];
    }
}

pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, needle)
}

/// Waits, but not for ever.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("within the deadline")
}

/// Waits until a condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    until_within(DEADLINE, what, condition).await;
}

/// Waits until a condition holds, this long at most.
pub async fn until_within(limit: Duration, what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A chat request of one user message.
pub fn chat(text: &str) -> Vec<u8> {
    serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string().into_bytes()
}
