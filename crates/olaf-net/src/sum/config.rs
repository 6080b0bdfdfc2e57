//! What may be set of a worker that reduces.

use crate::error::StartError;
use crate::io::ReceiveLoss;
use crate::io::address::longest_datagram;
use crate::json;
use crate::roles::ONLY_WHERE_SET;
use olaf_engine::keys::ms;
use olaf_host::collective::{Options, atp, iswitch, trio};
use olaf_wire::sealed::OVERHEAD;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Every path of IPv4 takes IP packets of this size.
const LEAST_MTU: u32 = 576;

/// What a worker and its switch speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Our own protocol.
    Reduce,
    /// iSwitch: docs/paper-protocols.md says what is its paper's and what is ours.
    Iswitch,
    /// Trio-ML: docs/paper-protocols.md says what is its paper's and what is ours.
    Trio,
    /// ATP: docs/paper-protocols.md says what is its paper's and what is ours.
    Atp,
}

impl Protocol {
    /// The engines that a switch needs, as `olaf switch --engines` takes them.
    #[must_use]
    pub const fn engines(self) -> &'static str {
        match self {
            Self::Atp => "atp,atp_server",
            _ => self.name(),
        }
    }

    /// The name, which is also that of the switch's engine.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Iswitch => "iswitch",
            Self::Trio => "trio",
            Self::Atp => "atp",
        }
    }
}

/// The set-up: what every worker may be told, and what a process has besides.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct SumConfig {
    /// What the worker and its switch speak. `reduce`.
    pub protocol: Protocol,
    /// The largest IP packet that the path takes. Off: as the system says.
    pub mtu_bytes: Option<u32>,
    /// Address of a second switch of `reduce`: all workers of the job go on through it when the first one fails. It needs
    /// their number. Off: there is none.
    pub fall_back: Option<String>,
    /// File with the key of the job. Off: none is needed.
    pub key_file: Option<String>,
    /// Address to serve metrics, health and a status page on, by HTTP. Off: they are not served.
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send; an address beyond loopback needs one.
    pub metrics_token_file: Option<String>,
    /// Most cores of the switch to use, the same at all workers of the job. Off: all that it has.
    pub cores: Option<u32>,
    /// An operation ends with an error after this time, in milliseconds, unless its call says
    /// otherwise. 60 s.
    #[serde(rename = "operation_timeout_ms", with = "ms")]
    pub operation_timeout: Duration,
    /// What only a worker of `iswitch` is told.
    pub iswitch: iswitch::Options,
    /// What only a worker of `trio` is told.
    pub trio: trio::Options,
    /// What only a worker of `atp` is told.
    pub atp: atp::Options,
    /// For tests and experiments: lose some of the arriving datagrams; none: lose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
    /// What the worker's decisions depend on.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for SumConfig {
    fn default() -> Self {
        Self {
            protocol: Protocol::Reduce,
            mtu_bytes: None,
            fall_back: None,
            key_file: None,
            metrics: None,
            metrics_token_file: None,
            cores: None,
            operation_timeout: Duration::from_secs(60),
            iswitch: iswitch::Options::default(),
            trio: trio::Options::default(),
            atp: atp::Options::default(),
            receive_loss: None,
            options: Options::default(),
        }
    }
}

impl SumConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        let value = json::parsed("connection", text)?;
        let config: Self = json::read_flat("connection", value, ONLY_WHERE_SET)?;
        if config.cores == Some(0) {
            return Err(StartError::Config("cores = 0: must be above 0".into()));
        }
        if config.operation_timeout.is_zero() {
            return Err(StartError::Config("operation_timeout_ms = 0: must be above 0".into()));
        }
        Ok(config)
    }

    /// The worker's options.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub(super) fn options(&self) -> Result<Options, StartError> {
        self.options.clone().check().map_err(|error| StartError::Config(error.to_string()))
    }

    /// The longest datagram for a path of IPv6 or IPv4 whose system lets out IP packets of
    /// `system_mtu_bytes`, where it says so.
    ///
    /// # Errors
    /// [`StartError::Config`] where no block fits.
    pub(super) fn datagram_bytes(
        &self,
        v6: bool,
        system_mtu_bytes: Option<u32>,
    ) -> Result<u32, StartError> {
        if let Some(mtu) = self.mtu_bytes.filter(|mtu| *mtu < LEAST_MTU) {
            return Err(StartError::Config(format!(
                "mtu_bytes = {mtu}: must be at least {LEAST_MTU}"
            )));
        }
        let longest = longest_datagram(v6, self.mtu_bytes.or(system_mtu_bytes));
        let seal = if self.key_file.is_some() { OVERHEAD as u32 } else { 0 };
        Ok(longest.saturating_sub(seal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_fits_the_path() {
        let bytes = |json, v6, system| {
            let config = SumConfig::from_json(json).expect("a configuration");
            config.datagram_bytes(v6, system).map_err(|error| error.to_string())
        };
        assert_eq!(bytes("{}", false, Some(1500)), Ok(1472));
        assert_eq!(bytes("{}", true, None), Ok(1452));
        assert_eq!(bytes("{}", false, Some(65_536)), Ok(65_507));
        assert_eq!(bytes(r#"{"mtu": "9kB"}"#, false, Some(1500)), Ok(8972));
        assert!(bytes(r#"{"mtu_bytes": 100}"#, false, None).is_err_and(|e| e.contains("= 100")));
    }

    #[test]
    fn a_worker_of_atp_has_options_of_its_own() {
        let json = r#"{"protocol": "atp", "atp": {"overflow": "proactive", "factor": "dynamic"}}"#;
        let own = SumConfig::from_json(json).expect("a configuration").atp;
        assert_eq!((own.overflow, own.factor), (atp::Overflow::Proactive, atp::Factor::Dynamic));
        let wrong = SumConfig::from_json(r#"{"atp": {"overflow": "never"}}"#);
        assert!(wrong.is_err_and(|error| error.to_string().contains("proactive")));
    }

    #[test]
    fn what_cannot_be_names_its_key() {
        for (json, told) in [
            (r#"{"window_blocks": 0}"#, "window_blocks"),
            (r#"{"deadline_ms": 0}"#, "deadline_ms"),
            (r#"{"cores": 0}"#, "cores = 0"),
            (r#"{"operation_timeout_ms": 0}"#, "operation_timeout_ms = 0"),
            (r#"{"windo": 1}"#, "unknown field `windo`"),
            (r#"{"silence": 5}"#, "silence = 5: a time needs its unit"),
        ] {
            let read = SumConfig::from_json(json).and_then(|config| config.options());
            let error = read.expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
