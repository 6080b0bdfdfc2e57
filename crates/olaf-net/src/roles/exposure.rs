//! Who is served without a key: this machine alone, unless the operator says otherwise.

use crate::error::StartError;
use crate::io::address::canonical;
use std::net::SocketAddr;

/// Refuses an address that other machines may reach, unless the role has secret keys or was told to serve
/// without. `key` names the setting that holds the address.
pub(super) fn check(
    role: &str,
    key: &str,
    listen: SocketAddr,
    may_be_reached: bool,
) -> Result<(), StartError> {
    if may_be_reached || canonical(listen).ip().is_loopback() {
        return Ok(());
    }
    // A switch with the job's key could sign models.
    let (how, without) = match role {
        "switch" => (
            "olaf keys new job.key; olaf keys switch job.key switch.key; --key-file switch.key",
            "--insecure (insecure = true)",
        ),
        "server" => ("olaf keys new job.key; --key-file job.key", "--insecure (insecure = true)"),
        // The parties of a sharing are set up by their file alone.
        _ => ("olaf keys new job.key; key_file = \"job.key\"", "insecure = true"),
    };
    Err(StartError::Config(format!(
        "{key} = \"{listen}\": other machines can reach this address, and the {role} has no key that \
         is secret: anybody there could join its jobs and change them. Give it a key ({how}), or \
         listen on 127.0.0.1, or serve without a key by {without}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(listen: &str, may_be_reached: bool) -> Option<String> {
        let listen = listen.parse().expect("an address");
        check("switch", "listen_at.reduce", listen, may_be_reached).err().map(|e| e.to_string())
    }

    #[test]
    fn only_loopback_needs_no_key() {
        for own in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(told(own, false), None, "{own}");
        }
        for reached in ["0.0.0.0:5555", "[::]:5555", "10.0.0.1:5555", "[::ffff:10.0.0.1]:5555"] {
            let error = told(reached, false).expect(reached);
            assert!(error.starts_with("listen_at.reduce = "), "{error}");
            for said in
                ["5555", "the switch has no key that", "--key-file switch.key", "--insecure"]
            {
                assert!(error.contains(said), "{error}");
            }
            assert_eq!(told(reached, true), None, "{reached}");
        }
    }

    #[test]
    fn the_advice_is_what_the_role_takes() {
        let listen = "0.0.0.0:1".parse().expect("an address");
        for (role, said) in [
            ("switch", "olaf keys switch job.key switch.key; --key-file switch.key"),
            ("server", "olaf keys new job.key; --key-file job.key"),
            ("host", "key_file = \"job.key\""),
        ] {
            let error = check(role, "listen", listen, false).expect_err(role).to_string();
            assert!(error.contains(said), "{error}");
            assert_eq!(error.contains("--insecure"), role != "host", "{error}");
        }
    }
}
