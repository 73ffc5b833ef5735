//! The real control plane: it starts, works, and leaves no processes or files behind.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testbed::aggregate::Aggregated;
use testbed::{Access, ControlPlane, Options, Parts, processes_mentioning, state};

/// The environment variable of the process that [`killed_process_ends_its_components`] starts and kills.
const HOLD_VARIABLE: &str = "TESTBED_TEST_HOLD";

/// The timeout of a wait, which is far longer than any wait here takes, because machines may be busy.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// A process that is killed when this is dropped.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + WAIT_TIMEOUT;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < until, "{what}: not within {WAIT_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn apply(access: &Access, manifest: &str) {
    let mut kubectl = access.kubectl();
    let mut child =
        kubectl.args(["apply", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "kubectl apply refused\n{manifest}");
}

fn words(access: &Access, arguments: &[&str]) -> Vec<String> {
    access.run_kubectl(arguments).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn control_plane_works_and_leaves_nothing_behind() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let access = plane.access().clone();
    assert_eq!(
        processes_mentioning(&access.folder).len(),
        3 * 3,
        "three components, each with its two guards"
    );

    deployments_become_pods(&access);
    namespaces_hold_what_users_may_do(&access);
    aggregated_apis_are_looked_for_on_this_machine(&access);
    assert!(access.run_kubectl(&["version"]).unwrap().contains("Server Version: v1.36.4"));
    assert_eq!(Access::open(&access.folder).unwrap().server, access.server);

    let since = Instant::now();
    drop(plane);
    assert!(since.elapsed() < Duration::from_secs(10), "it took {:?} to end", since.elapsed());
    assert_eq!(processes_mentioning(&access.folder), [0; 0]);
    assert!(!access.folder.exists(), "{} is left", access.folder.display());
}

fn deployments_become_pods(access: &Access) {
    let namespace = access.namespace("pods").unwrap();
    let inside = ["-n", &namespace];
    let create = ["create", "deployment", "web", "--image=nowhere.invalid/web", "--replicas=3"];
    access.run_kubectl(&[&create[..], &inside].concat()).unwrap();
    let get = |what: &'static str, show: &'static str| [&["get", what, "-o", show][..], &inside].concat();
    let sets = eventually("a replica set", || {
        let sets = words(access, &get("replicasets", "jsonpath={.items[*].spec.replicas}"));
        (!sets.is_empty()).then_some(sets)
    });
    assert_eq!(sets, ["3"]);
    let phases = eventually("three pods", || {
        let phases = words(access, &get("pods", "jsonpath={.items[*].status.phase}"));
        (phases.len() == 3).then_some(phases)
    });
    // There is no scheduler and no kubelet.
    assert_eq!(phases, ["Pending"; 3]);
}

/// RBAC is enabled, and the cluster's authority signs certificates of users.
fn namespaces_hold_what_users_may_do(access: &Access) {
    let ada = access.authority().client("ada", Some("team")).unwrap();
    let kubeconfig = access.folder.join("ada.kubeconfig");
    std::fs::write(&kubeconfig, access.kubeconfig_for(&ada)).unwrap();
    let output = access
        .kubectl()
        .env("KUBECONFIG", &kubeconfig)
        .args(["get", "pods", "-n", "default"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(r#"User "ada" cannot list resource "pods""#), "{text}");
    let who = access.kubectl().env("KUBECONFIG", &kubeconfig).args(["auth", "whoami"]).output().unwrap();
    let who = String::from_utf8_lossy(&who.stdout).into_owned();
    assert!(who.contains("ada") && who.contains("team"), "{who}");
}

/// The API server follows a Service of type ExternalName to our port, and sends the right server name (SNI).
fn aggregated_apis_are_looked_for_on_this_machine(access: &Access) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = Aggregated {
        group: "testbed.plimsoll.dev".into(),
        version: "v1".into(),
        namespace: access.namespace("aggregated").unwrap(),
        service: "server".into(),
        port: listener.local_addr().unwrap().port(),
        authority: Some(access.authority().certificate().to_owned()),
    };
    apply(access, &api.manifest());
    listener.set_nonblocking(true).unwrap();
    let (mut caller, _) = eventually("a call of the API server", || listener.accept().ok());
    caller.set_nonblocking(false).unwrap();
    caller.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let mut greeting = [0; 4096];
    let length = caller.read(&mut greeting).unwrap();
    let name = api.server_name();
    assert_eq!(greeting[0], 0x16, "no TLS handshake");
    assert!(
        greeting[..length].windows(name.len()).any(|window| window == name.as_bytes()),
        "{name} was not asked for"
    );
    access.run_kubectl(&["delete", "apiservice", &api.name()]).unwrap();
}

#[test]
fn killed_process_ends_its_components() {
    // The programs are built first, so that the minutes this may take do not count below.
    Parts::ensure().unwrap();
    let folder = scratch("killed");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process_that_is_killed", "--nocapture"]).env(HOLD_VARIABLE, &folder);
    let mut holder = Holder(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    eventually("a control plane in another process", || {
        assert!(holder.0.try_wait().unwrap().is_none(), "it could not be started");
        state::holder(&folder).filter(|id| *id == holder.0.id())
    });
    let folder = folder.canonicalize().unwrap();
    assert_eq!(processes_mentioning(&folder).len(), 3 * 3);
    // After SIGKILL this process cannot run any cleanup.
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    eventually("the end of all components", || processes_mentioning(&folder).is_empty().then_some(()));
    assert!(!folder.join("etcd").exists(), "data is left");
    assert!(!state::is_held(&folder).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

/// The body of the process that the test above kills. Without the environment variable it does nothing.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(HOLD_VARIABLE) else { return };
    // This process must also end if the test itself is killed.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(1);
    });
    let mut plane =
        ControlPlane::start(&Options { state: Some(folder.into()), ..Options::default() }).unwrap();
    plane.watch().unwrap();
}

#[test]
fn tests_of_a_process_share_a_control_plane() {
    let ask = || testbed::shared().unwrap().server.clone();
    let servers: Vec<String> = std::thread::scope(|scope| {
        let threads = [scope.spawn(ask), scope.spawn(ask)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(servers[0], servers[1]);
    let access = testbed::shared().unwrap();
    let mine = access.namespace("mine").unwrap();
    assert_ne!(mine, access.namespace("mine").unwrap());
}

#[test]
fn component_with_invalid_flags_is_reported_with_its_log() {
    let folder = scratch("refused");
    let options = Options {
        state: Some(folder.clone()),
        api_server_args: vec!["--no-such-flag".into()],
        ..Options::default()
    };
    let error = ControlPlane::start(&options).unwrap_err().to_string();
    assert!(error.starts_with("kube-apiserver ended by itself"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    assert_eq!(processes_mentioning(&folder), [0; 0]);
    assert!(folder.join("logs/kube-apiserver.log").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}
