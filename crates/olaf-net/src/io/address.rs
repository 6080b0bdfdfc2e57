//! Addresses as people write them.

use olaf_wire::offsets::MAX_DATAGRAM;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Resolves `host:port`, `[v6]:port` or `udp://host:port`. Of several addresses the first that
/// `usable` accepts.
///
/// # Errors
/// What is wrong with the text, and how it should look.
pub(crate) fn resolve(
    text: &str,
    usable: impl Fn(&SocketAddr) -> bool,
) -> Result<SocketAddr, String> {
    let bare = bare(text)?;
    let mut addresses =
        bare.to_socket_addrs().map_err(|error| format!("address {text:?}: {error}"))?;
    let first = addresses.next().ok_or_else(|| format!("address {text:?} names no machine"))?;
    if usable(&first) {
        return Ok(first);
    }
    addresses.find(usable).ok_or_else(|| {
        format!(
            "address {text:?} is {first}, which an IPv4 socket cannot reach: listen on [::]:port"
        )
    })
}

/// The text without its scheme; its port must be there.
fn bare(text: &str) -> Result<&str, String> {
    let trimmed = text.trim();
    let bare = match trimmed.split_once("://") {
        Some(("udp", rest)) => rest.trim_end_matches('/'),
        Some((scheme, _)) => {
            return Err(format!(
                "address {text:?}: {scheme}:// is not spoken here, write udp://host:port"
            ));
        }
        None => trimmed,
    };
    let port = match bare.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, port)) => port.strip_prefix(':'),
        None => bare.split_once(':').map(|(_, port)| port),
    };
    match port {
        Some(port) if port.contains(':') => {
            Err(format!("address {text:?}: put an IPv6 address into brackets, like [::1]:5555"))
        }
        Some(port) if port.parse::<u16>().is_ok() => Ok(bare),
        Some(port) => Err(format!("address {text:?}: port {port:?} is no number from 0 to 65535")),
        None => Err(format!("address {text:?} has no port: write host:port, like 127.0.0.1:5555")),
    }
}

/// IPv4 written as IPv4, though it came through a dual-stack socket.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), address.port()),
            None => address,
        },
        IpAddr::V4(_) => address,
    }
}

/// The address as a socket of that family takes it.
pub(crate) fn mapped(address: SocketAddr, v6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        other => other,
    }
}

/// An address in 18 bytes, the same for IPv4 however it came.
pub(crate) fn bytes(address: SocketAddr) -> [u8; 18] {
    let v6 = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&v6.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// Bytes of the IP and UDP headers in front of a datagram.
pub(crate) const fn header_bytes(v6: bool) -> usize {
    8 + if v6 { 40 } else { 20 }
}

/// An IP packet that every path carries, where nothing more is known of a path.
const USUAL_MTU: u32 = 1500;

/// Bytes of the longest datagram on a path that takes IP packets of `mtu_bytes`, where that is known.
pub(crate) fn longest_datagram(v6: bool, mtu_bytes: Option<u32>) -> u32 {
    let headers = u32::try_from(header_bytes(v6)).expect("headers are short");
    let longest = u32::try_from(MAX_DATAGRAM).expect("a datagram is short");
    mtu_bytes.unwrap_or(USUAL_MTU).saturating_sub(headers).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_with_and_without_a_scheme() {
        for text in
            ["127.0.0.1:5555", "udp://127.0.0.1:5555", "udp://127.0.0.1:5555/", " 127.0.0.1:5555 "]
        {
            let resolved = resolve(text, |_| true).map(|a| a.to_string());
            assert_eq!(resolved.as_deref(), Ok("127.0.0.1:5555"), "{text}");
        }
        let resolved = resolve("udp://[::1]:7", |_| true).map(|a| a.to_string());
        assert_eq!(resolved.as_deref(), Ok("[::1]:7"));
    }

    #[test]
    fn what_is_no_address_says_what_to_write() {
        for (text, hint) in [
            ("127.0.0.1", "write host:port"),
            ("tcp://127.0.0.1:1", "write udp://host:port"),
            ("::1:5555", "brackets"),
            ("[::1]", "write host:port"),
            ("localhost:http", "0 to 65535"),
            ("localhost:99999", "0 to 65535"),
        ] {
            let error = resolve(text, |_| true).expect_err(text);
            assert!(error.contains(hint) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn an_ipv4_socket_does_not_take_an_ipv6_address() {
        let error = resolve("[::1]:5555", SocketAddr::is_ipv4).expect_err("family");
        assert!(error.contains("listen on [::]"), "{error}");
    }

    #[test]
    fn mapped_addresses_show_as_what_they_are() {
        let v4: SocketAddr = "10.0.0.1:9".parse().expect("an address");
        assert_eq!(canonical(mapped(v4, true)), v4);
        assert_eq!(mapped(v4, false), v4);
    }
}
