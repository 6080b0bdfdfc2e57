//! Topologies and capacities as a word on the command line.

use super::{Capacity, CapacityError, FatTree, LeafSpine, Topology, TopologyError};

impl Topology {
    /// From a word: `fat-tree:16` (degree), `fat-tree:8,8,16:4,4` (links down: hosts a ToR switch,
    /// ToR switches a pod, pods; links up of a ToR and of an aggregation switch) or
    /// `leaf-spine:LEAVES,HOSTS,SPINES` (hosts a leaf).
    ///
    /// # Errors
    /// For any other text, and shapes out of range.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let form = || TopologyError::Form(text.into());
        let numbers = |part: &str| -> Result<Vec<u32>, TopologyError> {
            part.split(',')
                .map(|part| {
                    whole(part).ok_or_else(|| TopologyError::Number {
                        text: text.into(),
                        part: part.into(),
                    })
                })
                .collect()
        };
        let (kind, rest) = text.split_once(':').ok_or_else(form)?;
        match (kind, rest.split_once(':')) {
            ("fat-tree", None) => match numbers(rest)?[..] {
                [degree] => Ok(Self::fat_tree(FatTree::of_degree(degree)?)?),
                _ => Err(form()),
            },
            ("fat-tree", Some((down, up))) => {
                match (<[u32; 3]>::try_from(numbers(down)?), <[u32; 2]>::try_from(numbers(up)?)) {
                    (Ok(down), Ok(up)) => Ok(Self::fat_tree(FatTree { down, up })?),
                    _ => Err(form()),
                }
            }
            ("leaf-spine", None) => match numbers(rest)?[..] {
                [leaves, hosts, spines] => Self::leaf_spine(LeafSpine { leaves, hosts, spines })
                    .map_err(|_| TopologyError::LeafSpine(text.into())),
                _ => Err(form()),
            },
            _ => Err(form()),
        }
    }
}

impl Capacity {
    /// From a word: `port:1`, `switch:1` (jobs) or `slots:8`.
    ///
    /// # Errors
    /// For any other text, and zero.
    pub fn parse(text: &str) -> Result<Self, CapacityError> {
        let error = || CapacityError(text.into());
        let (kind, units) = text.split_once(':').ok_or_else(error)?;
        let units = whole(units).ok_or_else(error)?;
        match kind {
            "port" => Ok(Self::PerPort(units)),
            "switch" => Ok(Self::PerSwitch(units)),
            "slots" => Ok(Self::Slots(units)),
            _ => Err(error()),
        }
    }
}

/// Digits only: `+1` and ` 1` are slips more often than meant.
fn whole(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_shapes() {
        let full = Topology::parse("fat-tree:16").expect("a form");
        assert_eq!(full, Topology::parse("fat-tree:8,8,16:8,8").expect("a form"));
        let over = Topology::parse("fat-tree:8,8,16:4,4").expect("a form");
        assert_eq!((over.hosts().len(), over.switches().len()), (1024, 128 + 64 + 16));
        let leaf = Topology::parse("leaf-spine:4,8,2").expect("a form");
        assert_eq!((leaf.hosts().len(), leaf.switches().len()), (32, 6));
        assert_eq!(leaf.links().len(), 32 + 8);
    }

    #[test]
    fn what_is_no_topology_is_said() {
        let said = |text: &str| Topology::parse(text).expect_err("none").to_string();
        assert!(said("torus:4").contains("must be fat-tree:DEGREE"));
        assert!(said("fat-tree").contains("must be"));
        assert!(said("fat-tree:1,2").contains("must be"));
        assert!(said("fat-tree:8,8,16:4").contains("must be"));
        assert!(said("fat-tree:15").contains("even"));
        assert!(said("fat-tree:x").contains("\"x\" must be a whole number from 1"));
        assert!(said("fat-tree:8,0,16:4,4").contains("\"0\" must be"));
        assert!(said("fat-tree:+8").contains("\"+8\""));
        assert!(said("leaf-spine:4000000000,4000000000,1").contains("at most 1048576"));
        assert!(said("leaf-spine:1,2,3:4").contains("must be"));
    }

    #[test]
    fn capacities_read_and_print() {
        assert_eq!(Capacity::parse("port:1"), Ok(Capacity::PerPort(1)));
        assert_eq!(Capacity::parse("switch:2"), Ok(Capacity::PerSwitch(2)));
        assert_eq!(Capacity::parse("slots:8"), Ok(Capacity::Slots(8)));
        for text in
            ["", "port", "port:", "port:0", "port:-1", "ports:1", "slots:8.5", "slots:9999999999"]
        {
            let error = Capacity::parse(text).expect_err("none").to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
