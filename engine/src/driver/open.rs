//! Chooses a driver by trying: io_uring where the kernel and its guards allow it, else readiness with the reason why.

use super::{Driver, readiness::Readiness};
use std::io;

/// Which driver to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// io_uring where it works, else readiness.
    #[default]
    Probe,
    /// io_uring, or an error.
    Uring,
    /// Readiness, whatever works.
    Readiness,
}

#[derive(Clone, Copy, Debug)]
pub struct DriverOptions {
    pub preference: Preference,
    /// Connections held at once; further ones are accepted and closed. io_uring holds at most RLIMIT_NOFILE a driver (not
    /// counted against the process), readiness at most that in the whole process.
    pub sockets_max: u32,
    /// Receive buffers of 16 kB that may be lent at once. They are used as they are needed, beginning with an eighth.
    pub buffers_max: u16,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self { preference: Preference::Probe, sockets_max: 1_000_000, buffers_max: 256 }
    }
}

/// A driver, and how it was chosen.
pub struct Opened {
    pub driver: Box<dyn Driver>,
    /// `io_uring` or `readiness`.
    pub name: &'static str,
    /// Why it is not io_uring; empty when it is, or when readiness was asked for.
    pub reason: String,
}

/// Opens a driver for the calling thread, which must be the one that uses it.
///
/// # Errors
/// When the driver asked for cannot work here, or neither can.
pub fn open(options: &DriverOptions) -> io::Result<Opened> {
    if options.preference == Preference::Readiness {
        return open_readiness(options, String::new());
    }
    match open_uring(options) {
        Ok(driver) => Ok(Opened { driver, name: "io_uring", reason: String::new() }),
        Err(error) if options.preference == Preference::Uring => Err(error),
        Err(error) => open_readiness(options, format!("io_uring does not work here: {error}")),
    }
}

fn open_readiness(options: &DriverOptions, reason: String) -> io::Result<Opened> {
    Ok(Opened { driver: Box::new(Readiness::open(options)?), name: "readiness", reason })
}

#[cfg(target_os = "linux")]
fn open_uring(options: &DriverOptions) -> io::Result<Box<dyn Driver>> {
    Ok(Box::new(super::uring::Uring::open(options)?))
}

#[cfg(not(target_os = "linux"))]
fn open_uring(_options: &DriverOptions) -> io::Result<Box<dyn Driver>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "it is Linux's"))
}
