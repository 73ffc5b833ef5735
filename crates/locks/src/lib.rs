//! Locks of the standard library without poisoning.
//!
//! A panic of one reconcile, watch or request is caught, and everything else goes on (docs/architecture.md). A lock that it held must
//! not fail all others from then on. That is safe because code that holds a lock does not leave a value half-changed where it can panic.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// [`Mutex::lock`] without poisoning.
pub trait MutexExt<T: ?Sized> {
    /// Waits for the lock.
    fn locked(&self) -> MutexGuard<'_, T>;
}

/// [`RwLock::read`] and [`RwLock::write`] without poisoning.
pub trait RwLockExt<T: ?Sized> {
    /// Waits for a writer that holds the lock.
    fn read_locked(&self) -> RwLockReadGuard<'_, T>;

    /// Waits for all that hold the lock.
    fn write_locked(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T: ?Sized> MutexExt<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLockExt<T> for RwLock<T> {
    fn read_locked(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_locked(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn panic_of_a_holder_does_not_fail_others() {
        let locks = Arc::new((Mutex::new(1), RwLock::new(2)));
        let holder = Arc::clone(&locks);
        let panicked = std::thread::spawn(move || {
            let _held = (holder.0.locked(), holder.1.write_locked());
            panic!("while it holds both locks");
        });
        assert!(panicked.join().is_err());
        assert!(locks.0.is_poisoned() && locks.1.is_poisoned());
        *locks.1.write_locked() += 1;
        assert_eq!((*locks.0.locked(), *locks.1.read_locked()), (1, 3));
    }
}
