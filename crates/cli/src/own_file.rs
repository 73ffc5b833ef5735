//! Files that this process creates for its own time, and removes at its end.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that this process has created, readable by its user alone. Dropping this removes the file, unless another process has put
/// another one in its place.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    /// Device and inode of the file that was created.
    id: (u64, u64),
    /// The folder, if it was created with the file.
    folder: Option<PathBuf>,
}

impl OwnFile {
    /// Creates a file that must not exist, with its folder where that is missing. `remedy` says what to do about one that exists.
    pub(crate) fn create(path: &Path, text: &str, remedy: &str) -> Result<Self, Failure> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        if let Some(folder) = folder {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| Failure::file("create", folder, &error))?;
        }
        let folder = folder.map(Path::to_owned);
        // An existing file is not opened, not even behind a symbolic link.
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = created.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::input(format!(
                "{} exists and is not overwritten\n  remedy: {remedy}",
                path.display()
            )),
            _ => Failure::file("create", path, &error),
        })?;
        let fail = |error: &std::io::Error| Failure::file("write", path, error);
        let id = file.metadata().map(|metadata| id(&metadata)).map_err(|error| fail(&error))?;
        let own = Self { path: path.to_owned(), id, folder };
        fill(&mut file, text).map_err(|error| fail(&error))?;
        Ok(own)
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn fill(file: &mut File, text: &str) -> std::io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let is_ours = self.path.symlink_metadata().is_ok_and(|found| id(&found) == self.id);
        if is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
        // Fails, as it should, if there is anything else in it.
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("plimsoll-own-file-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn files_are_private_and_removed_with_their_folder() {
        let root = scratch("private");
        let (folder, path) = (root.join("a"), root.join("a/kubeconfig"));
        let own = OwnFile::create(&path, "text", "").unwrap();
        assert_eq!((own.path(), std::fs::read_to_string(&path).unwrap().as_str()), (&*path, "text"));
        assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
        drop(own);
        assert!(!folder.exists() && root.exists());

        let own = OwnFile::create(&path, "text", "").unwrap();
        std::fs::write(folder.join("other"), "").unwrap();
        drop(own);
        assert!(!path.exists() && folder.join("other").exists());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn files_of_others_are_neither_overwritten_nor_removed() {
        let root = scratch("others");
        let path = root.join("kubeconfig");
        let own = OwnFile::create(&path, "first", "stop it").unwrap();
        let second = OwnFile::create(&path, "second", "stop it").unwrap_err().to_string();
        assert!(second.contains("exists and is not overwritten\n  remedy: stop it"), "{second}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        // Somebody replaces it.
        let other = root.join("other");
        std::fs::write(&other, "other").unwrap();
        std::fs::rename(&other, &path).unwrap();
        drop(own);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "other");
        let link = root.join("link");
        std::os::unix::fs::symlink(root.join("nowhere"), &link).unwrap();
        OwnFile::create(&link, "text", "").unwrap_err();
        assert!(!root.join("nowhere").exists());
        std::fs::remove_dir_all(root).unwrap();
    }
}
