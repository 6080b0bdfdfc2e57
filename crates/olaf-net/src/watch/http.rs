//! HTTP for few, slow or rude readers: every connection has one request, a deadline and a [place](Places)
//! among few.

use super::metrics;
use super::places::{Place, Places};
use super::sampler::{Sample, Samples};
use super::token::Token;
use crate::error::AskError;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Bytes of a request's head, and of what a slow reader may leave unread in memory.
const MOST_BUFFERED: usize = 16 * 1024;
const MOST_HEADERS: usize = 32;
/// Time for a request's head to come: some round trips over a slow path.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);
/// Time for a connection, from its first byte to its last.
const DEADLINE: Duration = Duration::from_secs(15);
/// The system had no more files or memory: a moment later it may.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A role that has not answered for this time is not healthy.
const HEALTHY: Duration = Duration::from_secs(5);

const PAGE: &str = include_str!("page.html");

/// What is served.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) samples: Samples,
    pub(super) token: Option<Token>,
}

/// Serves until told to stop.
pub(super) async fn serve(listener: TcpListener, site: Site, mut stop: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Places::default();
    loop {
        let accepted = tokio::select! {
            _ = stop.changed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some((place, ends)) = places.take(from.ip()) else { continue };
        let (site, place) = (site.clone(), Arc::new(place));
        tokio::spawn(async move {
            let answer = service_fn(|request| answered(site.clone(), place.clone(), request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_DEADLINE)
                .max_headers(MOST_HEADERS)
                .max_buf_size(MOST_BUFFERED)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // A reader that left, was too slow or gave way to others is no news.
            tokio::select! {
                _ = tokio::time::timeout(DEADLINE, connection) => {}
                _ = ends => {}
            }
        });
    }
}

async fn answered(
    site: Site,
    place: Arc<Place>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    place.has_asked();
    let mut response = site.answer(&request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

impl Site {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is here\n");
        }
        if let Some(refused) = self.refused(request) {
            return refused;
        }
        match request.uri().path() {
            "/" => page(),
            "/healthz" => self.health().await,
            "/readyz" => self.readiness(self.may_read(request)).await,
            "/metrics" => {
                self.told(|status| {
                    typed(StatusCode::OK, metrics::CONTENT_TYPE, metrics::metrics(status))
                })
                .await
            }
            "/status.json" => self.told(|status| as_json(StatusCode::OK, status)).await,
            _ => plain(StatusCode::NOT_FOUND, "try / /metrics /healthz /readyz /status.json\n"),
        }
    }

    /// Refuses a reader without the token, or a web page that pretends to be on this machine.
    fn refused(&self, request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
        if self.token.is_none() {
            // A page elsewhere may give its own name the address of this machine.
            let host = request.headers().get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
            let refused = "the header Host names neither localhost nor an address: give \
                           metrics_token_file to serve under a name\n";
            return (!is_address(host)).then(|| plain(StatusCode::FORBIDDEN, refused));
        }
        // The page has no figures in it; probes of health have no token.
        if matches!(request.uri().path(), "/" | "/healthz" | "/readyz") || self.may_read(request) {
            return None;
        }
        let advice = "send `Authorization: Bearer TOKEN` with the token of metrics_token_file\n";
        let mut refused = plain(StatusCode::UNAUTHORIZED, advice);
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Some(refused)
    }

    fn may_read(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else { return true };
        let said = request.headers().get(header::AUTHORIZATION);
        said.is_some_and(|said| token.is_in(said.as_bytes()))
    }

    /// Whether the packet loop answers.
    async fn health(&self) -> Response<Full<Bytes>> {
        match healthy(self.samples.now().await.as_ref()) {
            Ok(told) => as_json(StatusCode::OK, &told),
            Err(why) => unavailable(&json!({"healthy": false, "why": why})),
        }
    }

    /// Whether the role can do its work. The reasons name addresses: only readers see them.
    async fn readiness(&self, may_read: bool) -> Response<Full<Bytes>> {
        let sample = self.samples.now().await;
        if let Err(why) = healthy(sample.as_ref()) {
            return unavailable(&json!({"ready": false, "reasons": [why]}));
        }
        let Some((_, status)) = sample.and_then(|sample| sample.status) else {
            return unavailable(&json!({"ready": false, "reasons": []}));
        };
        let ready = &status["ready"];
        let told = if may_read { ready.clone() } else { json!({"ready": ready["ready"]}) };
        let is_ready = ready["ready"] == true;
        if is_ready { as_json(StatusCode::OK, &told) } else { unavailable(&told) }
    }

    /// The last status in the reader's form; a role that is not healthy has none.
    async fn told(&self, form: impl Fn(&Value) -> Response<Full<Bytes>>) -> Response<Full<Bytes>> {
        let sample = self.samples.now().await;
        if let Err(why) = healthy(sample.as_ref()) {
            return unavailable(&json!({"healthy": false, "why": why}));
        }
        let status = sample.and_then(|sample| sample.status);
        status.map_or_else(|| unavailable(&json!({"healthy": false})), |(_, status)| form(&status))
    }
}

/// What there is to say of a healthy role, or why it is not.
fn healthy(sample: Option<&Sample>) -> Result<Value, String> {
    let Some(sample) = sample else {
        return Err("the packet loop has not answered yet".into());
    };
    if let Some(AskError::Died(why)) = &sample.failure {
        return Err(format!("the packet loop died: {why}"));
    }
    match &sample.status {
        Some((at, _)) if at.elapsed() < HEALTHY => {
            Ok(json!({"healthy": true, "answered_s_ago": at.elapsed().as_secs_f64()}))
        }
        Some((at, _)) => {
            let silent = at.elapsed().as_secs_f64();
            Err(format!("the packet loop has not answered for {silent:.1} s"))
        }
        None => Err("the packet loop has not answered yet".into()),
    }
}

/// Returns true if a header `Host` is an address or this machine's own name.
fn is_address(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.rsplit_once(':').map_or(host, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok()
}

fn page() -> Response<Full<Bytes>> {
    let mut page = typed(StatusCode::OK, "text/html; charset=utf-8", PAGE.to_owned());
    // The page is one file: nothing may be loaded from elsewhere, and no figure may leave.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                  img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'";
    let policy = HeaderValue::from_static(policy);
    page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    page
}

fn unavailable(told: &Value) -> Response<Full<Bytes>> {
    as_json(StatusCode::SERVICE_UNAVAILABLE, told)
}

fn as_json(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    typed(status, "application/json", value.to_string() + "\n")
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text.to_owned())
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
