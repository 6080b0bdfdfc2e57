//! What may be set of a client.

use crate::error::StartError;
use crate::io::address::header_bytes;
use crate::json;
use crate::keys::KeyText;
use olaf_engine::PeerId;
use olaf_host::WorkerConfig;
use olaf_host::push_pull::worker::{PathConfig, WorkerOptions};
use olaf_host::transmission::TransmissionConfig;
use olaf_wire::Address;
use olaf_wire::offsets::{
    DEFAULT_SEGMENT_LANES, LANE, MAX_DATAGRAM, MAX_SEGMENT_LANES, SEGMENT_HEADER, update,
};
use olaf_wire::sealed::OVERHEAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The set-up: what every worker may be told, and what a process has besides.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ClientConfig {
    /// Lanes of a segment; all workers of a job agree on it. Off: as many as fit the path.
    pub segment_lanes: Option<u32>,
    /// For the worker's id, where none is given. Off: the system draws.
    pub seed: Option<u64>,
    /// The largest IP packet the path takes: a segment's datagram fits into it. Without it, and
    /// without `segment_lanes`, the worker finds out.
    pub mtu_bytes: Option<u32>,
    /// File with the key of the job. Off: none is needed.
    pub key_file: Option<String>,
    /// The text of that file, from the program that started this one.
    #[serde(skip_serializing)]
    pub key: Option<KeyText>,
    /// Address to serve metrics, health and a status page on, by HTTP. Off: they are not served.
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send; an address beyond loopback needs one.
    pub metrics_token_file: Option<String>,
    /// What the worker's decisions depend on.
    #[serde(flatten)]
    pub options: WorkerOptions,
}

impl ClientConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::parsed("client", text).and_then(Self::from_value)
    }

    /// Reads JSON that was parsed already.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_value(value: Value) -> Result<Self, StartError> {
        json::read_flat("client", value, &["key"])
    }

    /// The worker that this sets up, behind a path of IPv6 or IPv4 whose system lets out IP packets
    /// of `system_mtu_bytes`, where it says so.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn worker(
        &self,
        address: Address,
        switch: PeerId,
        v6: bool,
        system_mtu_bytes: Option<u32>,
    ) -> Result<WorkerConfig, StartError> {
        let options = self.options.clone().check();
        let options = options.map_err(|error| StartError::Config(error.to_string()))?;
        Ok(WorkerConfig {
            segment_lanes: self.segment_lanes(v6)?,
            path: self.path(v6, system_mtu_bytes),
            keepalive: options.keepalive,
            silent_after: options.silent_after,
            ecn: options.ecn,
            transmission: self.transmission()?,
            ..WorkerConfig::new(address, switch)
        })
    }

    /// Bytes of UDP payload in one worker's update of `parameters` parameters, as pacers count
    /// them.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn update_bytes(&self, parameters: u32) -> Result<u64, StartError> {
        let segments = parameters.div_ceil(self.segment_lanes(false)?);
        Ok(u64::from(segments) * update::PAYLOAD as u64 + u64::from(parameters) * LANE as u64)
    }

    /// Lanes of a segment that fit the path.
    fn segment_lanes(&self, v6: bool) -> Result<u32, StartError> {
        let headers = SEGMENT_HEADER + self.headers(v6);
        let room = match self.mtu_bytes {
            None => MAX_SEGMENT_LANES,
            Some(mtu) => {
                let lanes = (mtu as usize).saturating_sub(headers) / LANE;
                if lanes == 0 {
                    return Err(StartError::Config(format!(
                        "mtu_bytes = {mtu}: must be at least {}: the headers and one value",
                        headers + LANE
                    )));
                }
                lanes.min(MAX_SEGMENT_LANES)
            }
        };
        let lanes = match self.segment_lanes.map(|lanes| lanes as usize) {
            None => room.min(DEFAULT_SEGMENT_LANES),
            Some(lanes) if (1..=room).contains(&lanes) => lanes,
            Some(lanes) => {
                let limit = match self.mtu_bytes {
                    Some(mtu) => format!("the most that fit mtu_bytes = {mtu}"),
                    None => format!("the most that fit a datagram of {MAX_DATAGRAM} bytes"),
                };
                return Err(StartError::Config(format!(
                    "segment_lanes = {lanes}: must be from 1 to {room}, {limit}"
                )));
            }
        };
        Ok(u32::try_from(lanes).expect("a datagram's lanes are few"))
    }

    /// Bytes of a packet around a message: those of IP and UDP, and the seal.
    const fn headers(&self, v6: bool) -> usize {
        header_bytes(v6) + if self.key_file.is_some() { OVERHEAD } else { 0 }
    }

    /// What the worker begins with, where the system lets out IP packets of `system_mtu_bytes`.
    fn path(&self, v6: bool, system_mtu_bytes: Option<u32>) -> PathConfig {
        let headers = u32::try_from(self.headers(v6)).expect("headers are short");
        let longest = u32::try_from(MAX_DATAGRAM).expect("a datagram is short");
        let largest = system_mtu_bytes.map_or(longest, |mtu| mtu.saturating_sub(headers));
        PathConfig {
            search: self.mtu_bytes.is_none() && self.segment_lanes.is_none(),
            largest: largest.clamp(1, longest),
            headers,
        }
    }

    fn transmission(&self) -> Result<TransmissionConfig, StartError> {
        self.options.transmission.read().map_err(|error| {
            let key = match error.field {
                "control" => "transmission",
                "threshold" => "threshold_ms",
                "retry" => "retry_ms",
                other => other,
            };
            StartError::Config(format!("{key} = {:?}: must be {}", error.found, error.allowed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(text: &str) -> Result<u32, String> {
        let config = ClientConfig::from_json(text).map_err(|e| e.to_string())?;
        config.segment_lanes(false).map_err(|e| e.to_string())
    }

    #[test]
    fn a_segment_fits_the_path() {
        assert_eq!(lanes("{}"), Ok(2208));
        assert_eq!(lanes(r#"{"mtu_bytes": 1500}"#), Ok((1500 - 140) / 4));
        assert_eq!(lanes(r#"{"mtu_bytes": 9000}"#), Ok(2208));
        assert_eq!(lanes(r#"{"segment_lanes": 16348}"#), Ok(16348));
    }

    #[test]
    fn an_update_is_its_lanes_and_a_header_a_segment() {
        let bytes = |text, parameters| {
            let config = ClientConfig::from_json(text).expect("a configuration");
            config.update_bytes(parameters).expect("a size")
        };
        let header = update::PAYLOAD as u64;
        assert_eq!(bytes("{}", 2205), header + 4 * 2205);
        assert_eq!(bytes("{}", 2209), 2 * header + 4 * 2209);
        assert_eq!(bytes(r#"{"segment_lanes": 100}"#, 2205), 23 * header + 4 * 2205);
    }

    #[test]
    fn words_of_transmission_control_are_read_or_named() {
        let read = |text| {
            let config = ClientConfig::from_json(text).map_err(|e| e.to_string())?;
            config.transmission().map_err(|e| e.to_string())
        };
        assert_eq!(read("{}"), Ok(TransmissionConfig::default()));
        let paper = r#"{"transmission": "paper", "threshold_ms": 300, "slope": "2.5"}"#;
        assert!(format!("{:?}", read(paper)).contains("PerSecond(2.5)"));
        for (text, key) in [
            (r#"{"transmission": "tcp"}"#, "transmission = \"tcp\""),
            (r#"{"transmission": "paper", "threshold_ms": 0}"#, "threshold_ms"),
            (r#"{"transmission": "paper", "slope": "-1"}"#, "slope"),
            (r#"{"unsent": "retry", "retry_ms": 0}"#, "retry_ms"),
            (r#"{"unsent": "forget"}"#, "unsent"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_names_its_key() {
        for (text, key) in [
            (r#"{"segment_lanes": 0}"#, "segment_lanes"),
            (r#"{"segment_lanes": 16349}"#, "segment_lanes"),
            (r#"{"segment_lanes": 400, "mtu_bytes": 1500}"#, "mtu_bytes = 1500"),
            (r#"{"mtu_bytes": 100}"#, "mtu_bytes"),
            (r#"{"sgement_lanes": 100}"#, "sgement_lanes"),
        ] {
            let error = lanes(text).expect_err(text);
            assert!(error.contains(key), "{error}");
        }
    }
}
