//! The state folder of one control plane: its certificates, data and logs, and a lock of the process that runs it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::cache::Cache;
use crate::error::{Attempt, Error, make_folder};

/// The lock file of the process that runs the control plane. The kernel releases the lock when that process ends, even if it is killed.
const LOCK_FILE: &str = "lock";
/// The file that requests the end of the control plane.
const STOP_FILE: &str = "stop";
/// The file with the id of the process that runs the control plane. It is written when the control plane is ready.
const READY_FILE: &str = "ready";

/// How long logs of runs that failed or were killed are kept.
const FAILED_STATE_RETENTION: Duration = Duration::from_hours(24);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A state folder that this process has locked.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    temporary: bool,
    // The lock of this file claims the folder.
    _lock: File,
}

impl State {
    /// Locks a folder and empties it.
    pub(crate) fn claim(folder: &Path) -> Result<Self, Error> {
        let foreign = !folder.join(LOCK_FILE).exists()
            && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if foreign {
            return Err(Error::NotOurs(folder.to_owned()));
        }
        make_folder(folder)?;
        let folder = folder.canonicalize().attempt(|| format!("find {}", folder.display()))?;
        // [`is_held`] takes the lock briefly, so one failure is not final.
        let mut lock = try_lock(&folder)?;
        for _ in 0..4 {
            if lock.is_some() {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
            lock = try_lock(&folder)?;
        }
        let Some(lock) = lock else { return Err(Error::Busy(folder)) };
        empty(&folder)?;
        make_folder(&folder.join("logs"))?;
        Ok(Self { folder, temporary: false, _lock: lock })
    }

    /// Creates and locks a folder that is removed at the end.
    pub(crate) fn temporary(cache: &Cache) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let runs = cache.root().join("runs");
        make_folder(&runs)?;
        sweep(&runs);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let state = Self::claim(&runs.join(name))?;
        Ok(Self { temporary: true, ..state })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records that the control plane is ready.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        let path = self.folder.join(READY_FILE);
        fs::write(&path, std::process::id().to_string()).attempt(|| format!("write {}", path.display()))
    }

    /// Whether the end was requested.
    pub(crate) fn asked_to_stop(&self) -> bool {
        self.folder.join(STOP_FILE).exists()
    }

    /// Removes the folder, unless a test is failing. The logs of a failing test are kept.
    pub(crate) fn leave(&self) {
        // Errors are ignored, because the next run removes what is left.
        let _ = fs::remove_file(self.folder.join(READY_FILE));
        if self.temporary && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The folder of etcd's data.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}

/// The id of the process that runs a ready control plane in `folder`, as its file states it.
pub fn holder(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join(READY_FILE)).ok()?.trim().parse().ok()
}

/// Whether a process runs a control plane in `folder`.
pub fn is_held(folder: &Path) -> Result<bool, Error> {
    Ok(folder.join(LOCK_FILE).exists() && try_lock(folder)?.is_none())
}

/// Requests the end of the control plane in `folder`, and waits until its process has ended.
pub fn stop(folder: &Path, deadline: Duration) -> Result<(), Error> {
    if !is_held(folder)? {
        return Err(Error::NotRunning(folder.to_owned()));
    }
    let request = folder.join(STOP_FILE);
    fs::write(&request, "").attempt(|| format!("write {}", request.display()))?;
    let until = Instant::now() + deadline;
    while is_held(folder)? {
        if Instant::now() > until {
            return Err(Error::Io {
                attempt: format!("end the control plane in {}", folder.display()),
                source: std::io::ErrorKind::TimedOut.into(),
            });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn try_lock(folder: &Path) -> Result<Option<File>, Error> {
    let path = folder.join(LOCK_FILE);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.attempt(|| format!("write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).attempt(|| format!("lock {}", path.display())),
    }
}

fn empty(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder).attempt(|| format!("read {}", folder.display()))?;
    for entry in entries.flatten().filter(|entry| entry.file_name() != LOCK_FILE) {
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.attempt(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

/// Removes the folders of killed runs: data at once (the supervisor may have been killed too), logs after a day.
fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let folder = entry.path();
        // A folder without a lock file is being created by another process.
        let Ok(since) = fs::metadata(folder.join(LOCK_FILE)).and_then(|lock| lock.modified()) else {
            continue;
        };
        let Ok(Some(_lock)) = try_lock(&folder) else { continue };
        let _ = fs::remove_dir_all(data(&folder));
        if SystemTime::now().duration_since(since).is_ok_and(|age| age > FAILED_STATE_RETENTION) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("testbed-state-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn state_folder_is_locked_and_emptied_for_the_next_owner() {
        let folder = scratch("held");
        let first = State::claim(&folder).unwrap();
        fs::write(folder.join("kubeconfig"), "old").unwrap();
        assert!(is_held(&folder).unwrap());
        assert!(matches!(State::claim(&folder), Err(Error::Busy(_))));
        assert!(folder.join("kubeconfig").exists());
        drop(first);
        assert!(!is_held(&folder).unwrap());
        let _second = State::claim(&folder).unwrap();
        assert!(!folder.join("kubeconfig").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn foreign_files_are_kept() {
        let folder = scratch("foreign");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("thesis.txt"), "").unwrap();
        assert!(matches!(State::claim(&folder), Err(Error::NotOurs(_))));
        assert!(folder.join("thesis.txt").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn stop_requests_the_end_and_waits() {
        let folder = scratch("stop");
        assert!(matches!(stop(&folder, Duration::ZERO), Err(Error::NotRunning(_))));
        let state = State::claim(&folder).unwrap();
        assert!(!state.asked_to_stop());
        assert!(matches!(stop(&folder, Duration::ZERO), Err(Error::Io { .. })), "it is not over");
        assert!(state.asked_to_stop());
        let waiting = std::thread::spawn({
            let folder = folder.clone();
            move || stop(&folder, Duration::from_secs(20))
        });
        drop(state);
        // The control plane may have ended before the request, which is no failure.
        assert!(matches!(waiting.join().unwrap(), Ok(()) | Err(Error::NotRunning(_))));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn data_of_dead_processes_is_removed() {
        let cache = Cache::at(scratch("sweep"));
        let living = State::temporary(&cache).unwrap();
        fs::create_dir_all(data(living.folder())).unwrap();
        let dead = cache.root().join("runs/1-1");
        drop(State::claim(&dead).unwrap());
        fs::create_dir_all(data(&dead)).unwrap();
        let _next = State::temporary(&cache).unwrap();
        assert!(data(living.folder()).exists());
        assert!(!data(&dead).exists());
        assert!(dead.join("logs").exists());
        fs::remove_dir_all(cache.root()).unwrap();
    }
}
