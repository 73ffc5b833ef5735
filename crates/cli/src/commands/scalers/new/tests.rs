use std::process::Command;

use super::*;

/// A folder with the table of this checkout, which is removed at the end.
struct TestCheckout(PathBuf);

impl TestCheckout {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("plimsoll-scalers-new-{}-{name}", std::process::id()));
        std::fs::create_dir_all(root.join(SCALERS)).unwrap();
        let table = repository().join(SCALERS).join("lib.rs");
        std::fs::copy(table, root.join(SCALERS).join("lib.rs")).unwrap();
        Self(root)
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(SCALERS).join(file)).unwrap()
    }

    fn write(&self, name: &str) -> Result<PathBuf, Failure> {
        write(&self.0, &TypeName::parse(name)?)
    }

    fn refusal(&self, name: &str) -> String {
        self.write(name).unwrap_err().to_string()
    }
}

impl Drop for TestCheckout {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn folder_and_line_are_written_once() {
    let checkout = TestCheckout::new("once");
    let before = checkout.text("lib.rs");
    checkout.write("acme-queue").unwrap();
    let after = checkout.text("lib.rs");
    assert_eq!(after.replacen("    acme_queue: [TYPE];\n", "", 1), before);
    assert!(after.contains("scaler_folders! {\n    acme_queue: [TYPE];\n"), "{after}");
    let all =
        ["mod.rs", "query.rs", "tests.rs"].map(|file| checkout.text(&format!("acme_queue/{file}"))).concat();
    assert!(all.contains("name: \"acme-queue\",") && all.contains("display: \"acmeQueueScaler\","), "{all}");
    for left in ["example", "Example", "TODO", "todo!", "unimplemented!"] {
        assert!(!all.contains(left), "{left}");
    }
    let error = checkout.refusal("acme-queue");
    assert!(error.contains("acme_queue exists already: choose another name"), "{error}");
    assert_eq!(checkout.text("lib.rs"), after);
}

#[test]
fn lines_keep_their_order_and_attributes() {
    let table =
        "scaler_folders! {\n    b: [TYPE];\n    #[cfg_attr(x, y)]\n    d: [A, B];\n    f: [TYPE];\n}\n";
    let with = |folder| with_folder(table, folder).unwrap();
    assert!(with("a").starts_with("scaler_folders! {\n    a: [TYPE];\n    b: [TYPE];\n"));
    assert!(with("c").contains("    b: [TYPE];\n    c: [TYPE];\n    #[cfg_attr(x, y)]\n    d: [A, B];\n"));
    assert!(with("e").contains("    d: [A, B];\n    e: [TYPE];\n    f: [TYPE];\n"));
    assert!(with("g").ends_with("    f: [TYPE];\n    g: [TYPE];\n}\n"));
    assert_eq!(with_folder("fn main() {}\n", "a"), None);
}

#[test]
fn written_code_is_formatted_whatever_the_length_of_the_name() {
    let checkout = TestCheckout::new("format");
    for name in ["q", "a-trigger-type-with-forty-characters-xyz"] {
        let folder = checkout.write(name).unwrap();
        let config = repository().join("rustfmt.toml");
        let mut rustfmt = Command::new("rustfmt");
        rustfmt
            .args(["--edition", "2024", "--check", "--config-path"])
            .arg(config)
            .arg(folder.join("mod.rs"));
        let output = rustfmt.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn other_names_and_places_are_refused_with_a_remedy() {
    let checkout = TestCheckout::new("refused");
    for name in
        ["", "Acme", "acme_queue", "acme--queue", "-acme", "acme-", "9p", "loop", "../x", &*"a".repeat(41)]
    {
        let error = checkout.refusal(name);
        assert!(error.contains("cannot be the name of a trigger type: use at most 40"), "{error}");
    }
    let error = checkout.refusal("kafka");
    assert!(error.contains("there is a trigger type kafka already: choose another name"), "{error}");
    std::fs::write(checkout.0.join(SCALERS).join("web.rs"), "").unwrap();
    assert!(checkout.refusal("web").contains("web.rs exists already"));

    let inside = checkout.0.join(SCALERS);
    assert_eq!(super::checkout(&inside).ok(), Some(&*checkout.0));
    let outside = std::env::temp_dir();
    let error = super::checkout(&outside).err().map(|failure| failure.to_string()).unwrap_or_default();
    assert!(
        error.contains("is not in a checkout of Plimsoll") && error.contains("change to a checkout"),
        "{error}"
    );
}
