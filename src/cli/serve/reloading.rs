//! A server that is told to read its files again: the plan of new runs, the certificates that it trusts, the tokens of its users.

use std::{io::IsTerminal, sync::Arc};

use crate::{
    cli::{Exit, Failure, config::Config, counted, logging, serve::tokens::TokensSource, settings::ProxyArgs},
    proxy::{Proxy, Server, upstream::ReplaceableUpstream},
};

/// What a server reads again, and how it was told to read it.
#[derive(Debug)]
pub(super) struct Reload {
    asked: ProxyArgs,
    /// Where calls go, as the first reading said.
    destinations: Vec<String>,
    upstream: Arc<ReplaceableUpstream>,
    tokens: Option<TokensSource>,
    had_terminal: bool,
}

impl Reload {
    /// Of a server that was just made from these options: makes its upstream one that can be replaced.
    pub(super) fn prepare(asked: ProxyArgs, proxy: &mut Proxy, config: &Config, tokens: Option<TokensSource>) -> Self {
        let upstream = Arc::new(ReplaceableUpstream::new(Arc::clone(&proxy.upstream)));
        proxy.upstream = Arc::<ReplaceableUpstream>::clone(&upstream);
        let destinations = destinations(&asked, config);
        Self { asked, destinations, upstream, tokens, had_terminal: std::io::stdin().is_terminal() }
    }

    /// Whether a hang-up says that the terminal is gone, and not that files are to be read again.
    pub(super) fn has_lost_terminal(&self) -> bool {
        self.had_terminal && !std::io::stdin().is_terminal()
    }

    /// Reads configuration, plan, certificates and tokens again. Where anything in them cannot be used, everything stays as it was.
    ///
    /// Gives how many tokens there are.
    ///
    /// # Errors
    /// What cannot be used.
    pub(super) fn run(&self, server: &Server) -> Result<Option<usize>, Failure> {
        let (fresh, config) = self.asked.proxy(None)?;
        let users = self.tokens.as_ref().map(TokensSource::read).transpose()?;
        if destinations(&self.asked, &config) != self.destinations {
            let error = "where calls go has changed ([upstream], [[route]], OPENAI_BASE_URL), which takes a restart";
            return Err(Failure::new(Exit::Usage, error));
        }
        if let Some(plan) = &fresh.runs.template().plan {
            if plan.asks_model() && server.line.runs.model().is_none() {
                let error = "the plan asks a model, and this server was started with none, which takes a restart";
                return Err(Failure::new(Exit::Usage, error));
            }
            for line in server.lines() {
                line.runs.replan(Arc::clone(plan));
            }
        }
        if fresh.upstream.name() != "simulator" {
            self.upstream.replace(fresh.upstream);
        }
        let count = users.as_ref().map(Vec::len);
        if let (Some(admitted), Some(users)) = (&server.users, users) {
            tokio::runtime::Handle::current().block_on(admitted.admit(users, &server.line));
        }
        Ok(count)
    }

    /// Reads again, and says how that went.
    pub(super) fn run_and_say(&self, server: &Server) {
        match self.run(server) {
            Ok(Some(tokens)) => logging::line(format_args!(
                "reloaded  plan, certificates and {}; runs that have begun keep their plan",
                counted(tokens, "token")
            )),
            Ok(None) => {
                logging::line(format_args!("reloaded  plan and certificates; runs that have begun keep their plan"));
            }
            Err(failure) => logging::line(format_args!("not reloaded, all stays as it was: {failure}")),
        }
    }
}

/// Where calls go.
fn destinations(asked: &ProxyArgs, config: &Config) -> Vec<String> {
    let own = [asked.upstream_url(config), format!("{:?}", config.upstream.key_env)];
    own.into_iter().chain(config.route.iter().map(|route| format!("{route:?}"))).collect()
}
