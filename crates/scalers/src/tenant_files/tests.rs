use std::os::unix::fs::symlink;

use super::*;

/// A folder that is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-tenant-files-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("allowed/sub")).unwrap();
        std::fs::write(path.join("outside.pem"), "secret of another").unwrap();
        std::fs::write(path.join("allowed/ca.pem"), "a certificate").unwrap();
        Self(path)
    }

    fn files(&self) -> TenantFiles {
        TenantFiles::of(Some(self.0.join("allowed")))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_a_folder_nothing_is_read() {
    let folder = Folder::new("none");
    for path in [folder.path("allowed/ca.pem"), "/dev/zero".to_owned(), "/no/such/file".to_owned()] {
        let error = TenantFiles::default().read(&path).unwrap_err();
        assert!(matches!(error, TenantFileError::NoFolder), "{error}");
        assert!(error.to_string().contains("--tenant-files-dir"), "{error}");
    }
}

#[test]
fn files_are_read_inside_of_the_folder_only() {
    let folder = Folder::new("inside");
    let files = folder.files();
    assert_eq!(files.read("ca.pem").unwrap(), "a certificate");
    assert_eq!(files.read(&folder.path("allowed/ca.pem")).unwrap(), "a certificate");
    // As Kubernetes mounts a Secret.
    symlink("../ca.pem", folder.0.join("allowed/sub/link.pem")).unwrap();
    assert_eq!(files.read("sub/link.pem").unwrap(), "a certificate");
    // The error is the same whether the file exists or not.
    let missing = folder.path("missing.pem");
    for path in [&*folder.path("outside.pem"), &missing, "../outside.pem", "../missing.pem", "sub/../ca.pem"]
    {
        assert!(matches!(files.read(path).unwrap_err(), TenantFileError::Outside(_)), "{path}");
    }
    let beside = format!("{}2/x", folder.path("allowed"));
    assert!(matches!(files.read(&beside).unwrap_err(), TenantFileError::Outside(_)));
    symlink(folder.0.join("outside.pem"), folder.0.join("allowed/out.pem")).unwrap();
    assert!(matches!(files.read("out.pem").unwrap_err(), TenantFileError::Outside(_)));
    assert!(matches!(files.read("missing.pem").unwrap_err(), TenantFileError::Read { .. }));
}

#[test]
fn only_small_regular_files_are_read() {
    let folder = Folder::new("regular");
    let files = folder.files();
    assert!(matches!(files.read("sub").unwrap_err(), TenantFileError::NotRegular(_)));
    assert!(matches!(files.read("").unwrap_err(), TenantFileError::NotRegular(_)));
    let _listener = std::os::unix::net::UnixListener::bind(folder.0.join("allowed/socket")).unwrap();
    assert!(matches!(files.read("socket").unwrap_err(), TenantFileError::NotRegular(_)));
    assert!(matches!(TenantFiles::Anywhere.read("/dev/zero").unwrap_err(), TenantFileError::NotRegular(_)));
    // Sparse, so it takes no room on the disk.
    let large = File::create(folder.0.join("allowed/large")).unwrap();
    large.set_len(700 << 20).unwrap();
    assert!(matches!(files.read("large").unwrap_err(), TenantFileError::TooLarge(_)));
    large.set_len(MAX_FILE_BYTES).unwrap();
    assert_eq!(files.read("large").unwrap().len() as u64, MAX_FILE_BYTES);
    std::fs::write(folder.0.join("allowed/binary"), b"\xff").unwrap();
    assert!(matches!(files.read("binary").unwrap_err(), TenantFileError::NotText(_)));
}

#[tokio::test]
async fn errors_name_the_parameter() {
    assert_eq!(TenantFiles::default().text("sslkey", "").await, Ok(String::new()));
    let error = TenantFiles::default().text("sslkey", "/etc/passwd").await.unwrap_err();
    assert!(error.to_string().starts_with("sslkey: no file is read because --tenant-files-dir"), "{error}");
}
