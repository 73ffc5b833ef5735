use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use super::*;

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn alive(id: &str) -> bool {
    // A zombie has a folder in /proc, but no command line.
    std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn program_is_killed_when_its_supervisor_input_closes() {
    let script = "trap '' TERM INT HUP; echo $$; while :; do sleep 1; done";
    let mut child = supervised("sh", ["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut id = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut id).unwrap();
    assert!(alive(id.trim()));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
    eventually("the program is gone", || !alive(id.trim()));
}

#[test]
fn supervisor_passes_exit_code_and_arguments() {
    let script = r#"[ "$1" = "two words" ] && [ "$2" = '$HOME' ] && exit 7"#;
    let mut child = supervised("sh", ["-c", script, "x", "two words", "$HOME"]).spawn().unwrap();
    let leash = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    drop(leash);
}

#[test]
fn program_does_not_inherit_the_supervisor_input() {
    let mut child = supervised("sh", ["-c", "cat; [ ! -e /proc/self/fd/3 ]"]).spawn().unwrap();
    // `cat` would wait forever if it inherited the standard input of the supervisor.
    let leash = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(leash);
}

#[test]
fn tail_returns_the_last_lines_and_never_fails() {
    assert_eq!(last_lines("a\n\nb\nc\n", 2), "  b\n  c");
    assert_eq!(last_lines("\n", 2), "  (nothing was written)");
    assert!(tail(Path::new("/nowhere/at all")).contains("cannot be read"));
}

#[test]
fn failed_component_shows_its_log_and_removes_its_data() {
    let folder = std::env::temp_dir().join(format!("testbed-process-{}", std::process::id()));
    let data = folder.join("data");
    std::fs::create_dir_all(folder.join("logs")).unwrap();
    std::fs::create_dir_all(&data).unwrap();
    let program = Path::new("/nowhere/program");
    let mut component = Component::start("etcd", program, &[], &folder, Some(&data)).unwrap();
    eventually("the component ends", || component.ended().is_some());
    let text = component.failure("ended").to_string();
    assert!(text.starts_with("etcd ended; the end of "), "{text}");
    assert!(text.contains("/nowhere/program"), "{text}");
    assert!(!data.exists() && folder.exists(), "its data goes with it");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn process_usage_is_parsed_from_proc() {
    let stat = "7 (kube) manager) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
    let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
    let expected = ProcessUsage { cpu: Duration::from_secs(3), resident: 1 << 20, peak: 2 << 20 };
    assert_eq!(ProcessUsage::parse(stat, status), Some(expected));
    assert_eq!(ProcessUsage::parse("7 (x", status), None);
}
