//! Our binary, and ports for it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names another binary than the one that is built here.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";

/// Our binary, which is built if need be.
pub(crate) fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return program.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let mut command = Command::new(cargo);
        command
            .args(["build", "--locked", "--quiet", "--package", "plimsoll", "--manifest-path"])
            .arg(manifest);
        assert!(command.status().unwrap().success(), "our binary cannot be built");
        // …/debug/deps/name-0123: the binary lies beside the folder of this program.
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("plimsoll")
    })
}

/// Ports below those that the system gives to connections: one of them might be taken by anybody's connection before our
/// binary listens.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port that nobody listens on, and that nobody else here is given.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Programs that run at the same time begin elsewhere.
    let begin = std::process::id().wrapping_mul(101);
    let next = || {
        let place = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        u16::try_from(FIRST + place % COUNT).unwrap()
    };
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    std::iter::repeat_with(next).take(COUNT as usize).find(is_free).unwrap()
}
