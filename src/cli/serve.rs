//! `aegis serve`: the proxy, until it is told to stop.

pub(super) mod monitoring;
mod pruning;
mod reloading;
mod sealing;
pub(super) mod tokens;

use crate::cli::printed::{ListeningAt, printed};
use std::{
    io::Write,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use nix::sys::signal::Signal;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
};

use self::{
    monitoring::Monitoring,
    pruning::{KeepArgs, prune_hourly},
    reloading::Reload,
    sealing::{DescriptorReserve, put_down_all, release_idle},
    tokens::TokensSource,
};
use super::{
    Exit, Failure, Global,
    config::Config,
    logging,
    matching::MatchArgs,
    settings,
    settings::{PlannedArgs, ProxyArgs},
    signals::{Signals, number},
    terminal,
    watch::WatchArgs,
};
use crate::{
    proxy::{Gate, Proxy, Server, Token, serve, serve_control},
    trajectory::RunId,
};

/// Connections that wait to be accepted: a program may start all its agents at once.
const BACKLOG: u32 = 4096;

/// Options of `serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    planned: PlannedArgs,
    /// Address to listen on. Port 0 selects a free port and prints it as a JSON line.
    #[arg(long, env = "AEGIS_LISTEN", value_name = "ADDR")]
    listen: Option<String>,
    /// Run of requests that name none.
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Number of proxies behind one address. With more than one, requests must name their run.
    #[arg(long, env = "AEGIS_INSTANCES", default_value_t = 1, value_name = "N")]
    instances: u32,
    /// Let go of a run after this many seconds without traffic: one that no request has named is sealed, a named one goes on
    /// with the next request that names it.
    #[arg(long, default_value_t = 300, value_name = "S")]
    idle: u64,
    /// Control address: runs, their end and outcome (/aegis/v1/runs), Prometheus metrics (GET /metrics).
    /// Its token is read from `AEGIS_CONTROL_TOKEN`, or generated and printed.
    #[arg(long, value_name = "ADDR")]
    control: Option<String>,
    /// Also request `logprobs`; they are recorded for `attribute --method confidence` and hidden from the program.
    #[arg(long)]
    ask_logprobs: bool,
    #[command(flatten)]
    token: TokenArgs,
    /// Tokens file: users with a token each (`aegis token`), who see nothing of each other. SIGHUP reads it again.
    /// Default: `[serve] tokens` of aegis.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "no_token"])]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    keep: KeepArgs,
}

/// What clients must show.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TokenArgs {
    /// Token that clients must send, in the base URL (http://HOST:PORT/t/TOKEN/v1) or as header `x-aegis-token`.
    /// Default: the variable that `token_env` of aegis.toml names.
    #[arg(long, env = "AEGIS_TOKEN", hide_env_values = true, value_name = "TOKEN", conflicts_with = "no_token")]
    token: Option<String>,
    /// Listen beyond this machine without a token: anyone who reaches the port can use the upstream's key.
    #[arg(long)]
    no_token: bool,
}

impl TokenArgs {
    /// The same for a listener whose clients know no token.
    pub(super) fn without_token(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// Whether a token is given here.
    fn is_given(&self) -> bool {
        self.token.as_ref().is_some_and(|token| !token.is_empty())
    }

    /// Puts the token into the gate, and checks that there is one where others than this machine can ask.
    ///
    /// # Errors
    /// There is none, and nobody said that there need be none.
    pub(super) fn guard(&self, gate: &mut Gate, listen: &str, token_env: Option<&str>) -> Result<(), Failure> {
        let given = self.token.clone().filter(|token| !token.is_empty());
        gate.token = match (given, token_env.filter(|_| !self.no_token)) {
            (Some(token), _) => Some(Token::new(&token)),
            (None, Some(name)) => {
                let missing = || Failure::new(Exit::Usage, format!("token_env: the variable `{name}` is not set"));
                let token = std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(missing)?;
                Some(Token::new(&token))
            }
            (None, None) => None,
        };
        let alone = match listen.parse::<SocketAddr>() {
            Ok(address) => address.ip().to_canonical().is_loopback(),
            // What is no address at all is refused where it is bound.
            Err(_) => listen.rsplit_once(':').is_none_or(|(host, _)| host.eq_ignore_ascii_case("localhost")),
        };
        if alone || self.no_token || gate.token.is_some() {
            return Ok(());
        }
        let error = format!("{listen} can be reached from other machines, and no token is asked of who asks there");
        Err(Failure::new(Exit::Usage, error).hint(
            "set one: AEGIS_TOKEN=$(openssl rand -hex 16), clients take http://HOST:PORT/t/$AEGIS_TOKEN/v1 as base URL \
             or send `x-aegis-token`; or say that none is needed: --no-token",
        ))
    }
}

impl ServeArgs {
    /// The tokens file, if there is one.
    ///
    /// # Errors
    /// A single token is set, too.
    fn tokens_source(&self, config: &Config) -> Result<Option<TokensSource>, Failure> {
        let Some(path) = self.tokens.clone().or_else(|| config.serve.tokens.clone()) else { return Ok(None) };
        let single =
            self.token.is_given() || (self.tokens.is_none() && self.token.no_token) || config.token_env.is_some();
        if single {
            let error = format!("each user has a token in `{}`, and a single token is set, too", path.display());
            return Err(Failure::new(Exit::Usage, error).hint(
                "use one of both: --tokens FILE or [serve] tokens; or --token, AEGIS_TOKEN, token_env or --no-token",
            ));
        }
        Ok(Some(TokensSource(path)))
    }
}

pub(super) fn run(arguments: &ServeArgs, global: &Global) -> Result<Exit, Failure> {
    logging::serves(global.format == super::OutputFormat::Json);
    settings::raise_file_limit();
    let named =
        arguments.run.as_deref().map(RunId::parse).transpose().map_err(|error| Failure::new(Exit::Usage, error))?;
    let planned = arguments.planned.plan.is_some();
    if let (Some(named), 2..) = (&named, arguments.instances) {
        let error = format!(
            "`--run {named}` names one run, and {} proxies would each record a part of it",
            arguments.instances
        );
        return Err(Failure::new(Exit::Usage, error).hint("let requests name their run: /r/<run>/v1 as base URL"));
    }
    let equality = arguments.matching.equality()?.setting();
    let asked = ProxyArgs { logprobs: arguments.ask_logprobs, equality, ..arguments.planned.on(&arguments.proxy) };
    let (mut proxy, config) = asked.proxy(named.clone())?;
    arguments.watch.apply(&mut proxy, &config)?;
    // Where requests name no run, lineage tells it; a plan wants to be told, so that it never hits a run by mistake.
    proxy.identity.lineage = (named.is_none() && !planned && arguments.instances < 2).then(Arc::default);
    proxy.gate.instances = arguments.instances;
    proxy.gate.answers_health = true;
    let origins: Vec<String> =
        config.route.iter().map(|route| route.url.clone()).chain([proxy.upstream.name().to_owned()]).collect();
    let listen =
        arguments.listen.clone().or_else(|| config.listen.clone()).unwrap_or_else(|| "127.0.0.1:8484".to_owned());
    let tokens = arguments.tokens_source(&config)?;
    let users = tokens.as_ref().map(TokensSource::read).transpose()?;
    match &users {
        Some(_) => proxy.gate.is_for_users = true,
        None => arguments.token.guard(&mut proxy.gate, &listen, config.token_env.as_deref())?,
    }
    if !global.quiet {
        arguments.proxy.say_destination(&config);
    }
    let monitoring = Monitoring::from_config(&config, proxy.upstream.name(), arguments.control.is_some())?;
    let reload = Reload::prepare(asked, &mut proxy, &config, tokens);
    let server = Server { line: Arc::new(proxy), users: users.is_some().then(Arc::default) };
    settings::block_on(async {
        let monitored = monitoring.start(&server.line.runs);
        if let (Some(admitted), Some(users)) = (&server.users, users) {
            admitted.admit(users, &server.line).await;
        }
        let served = serve_until_stopped(server, &listen, &origins, named, reload, arguments, global).await;
        monitored.end().await;
        served
    })?
}

async fn serve_until_stopped(
    server: Server,
    listen: &str,
    origins: &[String],
    named: Option<RunId>,
    reload: Reload,
    arguments: &ServeArgs,
    global: &Global,
) -> Result<Exit, Failure> {
    let (listener, proxy) = (bind(listen).await?, &server.line);
    let address = listener.local_addr().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let (told, stop) = watch::channel(None::<StopSignal>);
    let control = match &arguments.control {
        Some(control) => Some(bind(control).await?),
        None => None,
    };
    let listening = [Some(address), control.as_ref().and_then(|control| control.local_addr().ok())];
    if let Some(origin) = origins.iter().find(|origin| listening.iter().flatten().any(|own| is_own(origin, *own))) {
        return Err(Failure::new(Exit::Usage, format!("the upstream {origin} is this proxy itself")));
    }
    if let Some(run) = named.as_ref().filter(|_| server.users.is_none()) {
        // Who holds a run that was named is said now, not at the first call.
        proxy.runs.get(run).await.map_err(|error| Failure::new(Exit::unopened(&error), error))?;
    }
    proxy.readopt().await;
    let reserve = DescriptorReserve::take();
    // Before anybody can be told where we listen, so that a signal never finds a server that does not hear it.
    let signals = Signals::listen_with_hangup();
    announce(address, control.as_ref(), listen, proxy, global)?;
    let control = control.map(|control| {
        let token = control_token(&control, global);
        let (server, stop) = (server.clone(), stop_requested(stop.clone()));
        tokio::spawn(async move { serve_control(server, control, &token, stop).await })
    });
    let idle = Duration::from_secs(arguments.idle);
    let releasing = tokio::spawn(release_idle(server.clone(), idle, stop_requested(stop.clone())));
    let pruning = tokio::spawn(prune_hourly(server.clone(), arguments.keep.clone()));
    tokio::spawn(watch_signals(signals, told, reload, server.clone()));
    let cut = tokio::select! {
        cut = serve(server.clone(), listener, stop_requested(stop.clone())) => cut,
        () = forced(stop.clone()) => usize::MAX,
    };
    pruning.abort();
    if let Some(control) = control {
        control.abort();
    }
    let forced = cut == usize::MAX;
    drop(reserve);
    if forced {
        releasing.abort();
    } else {
        // A panic in it was reported where it happened.
        let _ = releasing.await;
        put_down_all(&server, global)?;
    }
    let signal = *stop.borrow();
    Ok(match signal {
        Some(told) if forced => Exit::Signal(number(told.signal)),
        _ => Exit::Ok,
    })
}

/// Whether an upstream is one of our own listeners: such a proxy would ask itself for ever.
fn is_own(origin: &str, own: SocketAddr) -> bool {
    let Ok(uri) = origin.parse::<hyper::Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let here = |ip: IpAddr| ip == own.ip() || ip.is_unspecified() || (own.ip().is_unspecified() && ip.is_loopback());
    let is_here = host.trim_matches(['[', ']']).parse().map_or(host.eq_ignore_ascii_case("localhost"), here);
    port == own.port() && is_here
}

/// Binds a listener.
pub(super) async fn bind(address: &str) -> Result<TcpListener, Failure> {
    let usage = || {
        let expected = "expected HOST:PORT, for example 127.0.0.1:8484";
        Failure::new(Exit::Usage, format!("`{address}` is no address to listen on: {expected}"))
    };
    let found: Vec<SocketAddr> = tokio::net::lookup_host(address).await.map_err(|_| usage())?.collect();
    // A name of both kinds: most programs try the older one first.
    let resolved = found.iter().find(|found| found.is_ipv4()).or(found.first()).copied().ok_or_else(usage)?;
    let listening = if resolved.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(resolved)?;
        socket.listen(BACKLOG)
    });
    listening.map_err(|error| {
        let failure = Failure::new(Exit::Usage, format!("cannot listen on {address}: {error}"));
        if error.kind() == std::io::ErrorKind::AddrInUse {
            return failure.hint("another program holds the port; --listen 127.0.0.1:0 takes a free one");
        }
        failure
    })
}

/// Says where the proxy listens: a JSON line on standard output when the port was left open, talk otherwise.
pub(super) fn announce(
    address: SocketAddr,
    control: Option<&TcpListener>,
    asked: &str,
    proxy: &Proxy,
    global: &Global,
) -> Result<(), Failure> {
    if asked.ends_with(":0") || global.format == super::OutputFormat::Json {
        let control = control.and_then(|control| control.local_addr().ok()).map(|control| control.to_string());
        let line = printed(&ListeningAt { listen: address.to_string(), control });
        let mut out = terminal::stdout();
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    if !global.quiet {
        let token = if proxy.gate.token.is_some() || proxy.gate.is_for_users { "/t/<token>" } else { "" };
        let log_dir = proxy.runs.template().log_dir.display();
        logging::line(format_args!(
            "listening on http://{address}  upstream {}  recordings {log_dir}/",
            proxy.upstream.name()
        ));
        if proxy.default_run.is_some() || proxy.identity.lineage.is_some() {
            logging::line(format_args!("point your agents at it: OPENAI_BASE_URL=http://{address}{token}/v1"));
        } else {
            logging::line(format_args!("point your agents at it: OPENAI_BASE_URL=http://{address}{token}/r/<run>/v1"));
            match proxy.gate.instances {
                0 | 1 => {
                    logging::line(format_args!(
                        "note: with a plan, each request must name its run like that; or start with --run NAME"
                    ));
                }
                several => logging::line(format_args!(
                    "note: one of {several} proxies, so each request must name its run like that"
                )),
            }
        }
    }
    Ok(())
}

/// The control token: given, or made and shown once.
fn control_token(control: &TcpListener, global: &Global) -> String {
    if let Some(token) = std::env::var("AEGIS_CONTROL_TOKEN").ok().filter(|token| !token.is_empty()) {
        return token;
    }
    let token = settings::fresh_token();
    if let (Ok(address), false) = (control.local_addr(), global.quiet) {
        logging::line(format_args!("control http://{address}/aegis/v1/runs  token {token}"));
    }
    token
}

/// A signal that we were told, and whether it was not the first.
#[derive(Debug, Clone, Copy)]
struct StopSignal {
    signal: Signal,
    again: bool,
}

/// The first signal stops in order, the second at once. A hang-up has files read again, unless the terminal is gone.
async fn watch_signals(
    signals: Option<Signals>,
    told: watch::Sender<Option<StopSignal>>,
    reload: Reload,
    server: Server,
) {
    let Some(mut signals) = signals else { return };
    let reload = Arc::new(reload);
    let mut again = false;
    loop {
        let signal = signals.next().await;
        if signal == Signal::SIGHUP && (signals.ignored_hangup() || !reload.has_lost_terminal()) {
            let (reload, server) = (Arc::clone(&reload), server.clone());
            // It reads files. One that panics has said so.
            let _ = tokio::task::spawn_blocking(move || reload.run_and_say(&server)).await;
            continue;
        }
        told.send_replace(Some(StopSignal { signal, again }));
        again = true;
    }
}

async fn stop_requested(mut stop: watch::Receiver<Option<StopSignal>>) {
    let _ = stop.wait_for(Option::is_some).await;
}

async fn forced(mut stop: watch::Receiver<Option<StopSignal>>) {
    let _ = stop.wait_for(|told| told.is_some_and(|told| told.again)).await;
}
