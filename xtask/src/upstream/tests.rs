use std::path::{Path, PathBuf};

use super::changes::FileChange;
use super::fields::fields;
use super::go_text::{Token, tokens};
use super::releases::Upstream;
use super::texts::{TextKind, texts};
use super::*;

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("upstream-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn words(source: &str) -> Vec<String> {
    let shown = |token: Token| match token {
        Token::Word(word) => word,
        Token::Text(text) => format!("<{text}>"),
        Token::Sign(sign) => sign.to_string(),
    };
    tokens(source).into_iter().map(shown).collect()
}

#[test]
fn go_literals_are_read_and_comments_are_not() {
    assert_eq!(words(r#"x := "a\"b\n" // "no""#), ["x", ":", "=", "<a\"b\n>"]);
    assert_eq!(words("`raw \"text\\n` /* \"no\" */ 'x' '\\'' y1"), ["<raw \"text\\n>", "y1"]);
    assert_eq!(words(r#""\u00e4\x41\\""#), ["<äA\\>"]);
    // Malformed literals end with their line or with the file, and nothing panics.
    assert_eq!(words("\"open\nnext"), ["<open>", "next"]);
    for odd in ["\"", "`", "'", "\"\\", "\"\\x", "\"\\u12", "/*", "/", "ä\"ö"] {
        tokens(odd);
    }
}

#[test]
fn texts_are_classified_by_their_call() {
    let source = r#"
        package p
        import "fmt"
        func f() error {
            r.Eventf(object, corev1.EventTypeWarning, eventreason.Failed, "Failed to scale %s: " +
                "%v", name, err)
            conditions.SetReadyCondition(metav1.ConditionFalse, "ErrorScalingTarget", fmt.Sprintf("error %s", err))
            flag.StringVar(&mode, "token-mode", "x", "which mode")
            os.Getenv("KEDA_TIMEOUT")
            logger.Info("only for the log")
            return fmt.Errorf("no replicas for %s", name)
        }
        type T struct {
            Field string `json:"azureServicePrincipal,omitempty"`
            Mode  string `keda:"name=authModes;authMode, order=triggerMetadata"`
            none  int    `json:"-"`
        }
    "#;
    let found = texts("pkg/p/p.go", source);
    let of = |kind: TextKind| {
        found.iter().filter(|(own, _)| *own == kind).map(|(_, text)| text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(TextKind::Event), ["Failed to scale %s: %v"]);
    assert_eq!(of(TextKind::Condition), ["ErrorScalingTarget", "error %s"]);
    assert_eq!(of(TextKind::Flag), ["token-mode", "which mode", "x"]);
    assert_eq!(of(TextKind::Variable), ["KEDA_TIMEOUT"]);
    assert_eq!(of(TextKind::Error), ["no replicas for %s"]);
    assert_eq!(of(TextKind::Field), ["azureServicePrincipal"]);
    assert_eq!(of(TextKind::Parameter), ["name=authModes;authMode, order=triggerMetadata"]);
    assert_eq!(of(TextKind::Other), ["fmt"]);
    let reasons = texts("pkg/eventreason/eventreason.go", r#"const A = "KEDAJobCreateFailed""#);
    assert_eq!(
        reasons.into_iter().collect::<Vec<_>>(),
        [(TextKind::Event, "KEDAJobCreateFailed".to_owned())]
    );
}

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  names: {kind: Thing}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              list:
                type: array
                items: {type: object, properties: {name: {type: string}}}
";

#[test]
fn fields_of_definitions_have_paths() {
    let found: Vec<String> = fields("crd.yaml", DEFINITION).into_iter().collect();
    assert_eq!(found, ["Thing.spec", "Thing.spec.list", "Thing.spec.list.name"]);
    assert!(fields("crd.yaml", "a: [").is_empty() && fields("crd.yaml", "kind: Namespace").is_empty());
}

#[test]
fn two_folders_are_compared() {
    let old = Folder::with(
        "old",
        &[
            ("pkg/scaling/executor/a.go", "x.Eventf(\"Scaled\")\nshared()\n"),
            ("pkg/scaling/executor/gone.go", "r(\"was here\")"),
            ("pkg/fallback/f.go", "e.Errorf(\"moved\")"),
            ("pkg/scaling/executor/a_test.go", "x.Eventf(\"test\")"),
            ("docs/readme.go", "x.Eventf(\"elsewhere\")"),
            ("config/crd/bases/t.yaml", DEFINITION),
        ],
    );
    let new = Folder::with(
        "new",
        &[
            ("pkg/scaling/executor/a.go", "x.Eventf(\"Scaled: %v\")\nshared()\nmore()\n"),
            ("pkg/scaling/executor/b.go", "e.Errorf(\"moved\")"),
            ("pkg/scaling/executor/a_test.go", "x.Eventf(\"other test\")"),
            ("pkg/fallback/f.go", ""),
            ("docs/readme.go", "x.Eventf(\"changed\")"),
            ("config/crd/bases/t.yaml", &DEFINITION.replace("name: {type", "label: {type")),
        ],
    );
    let [module] = Upstream::Keda.modules() else { panic!("KEDA is one module") };
    let changes = ModuleChanges::between(old.path(), new.path(), module.packages).unwrap();
    let files: Vec<(&str, FileChange)> =
        changes.files.iter().map(|(path, change)| (path.as_str(), *change)).collect();
    assert_eq!(
        files,
        [
            ("config/crd/bases/t.yaml", FileChange::Changed { added: 1, removed: 1 }),
            ("pkg/fallback/f.go", FileChange::Changed { added: 0, removed: 1 }),
            ("pkg/scaling/executor/a.go", FileChange::Changed { added: 2, removed: 1 }),
            ("pkg/scaling/executor/b.go", FileChange::Added),
            ("pkg/scaling/executor/gone.go", FileChange::Removed),
        ]
    );
    assert!(!changes.texts.contains_key(&TextKind::Error), "a text that moved is no change");
    let said = report::text(&[(module, changes)], false);
    for expected in [
        "pkg/scaling/executor\n  ~ a.go (+2 -1)\n  + b.go\n  - gone.go",
        "## events: 2\n  + Scaled: %v\n  - Scaled\n",
        "  + Thing.spec.list.label\n  - Thing.spec.list.name",
        "  keda/fallback: pkg/fallback\n",
        "  keda/executor: pkg/scaling/executor\n",
    ] {
        assert!(said.contains(expected), "{expected}\n\n{said}");
    }
    assert!(!said.contains("was here"), "texts of no kind are listed only on request");
}

#[test]
fn releases_become_versions_of_modules() {
    let versions = |upstream: Upstream, release: &str| {
        let modules = upstream.modules().iter();
        modules.map(|module| format!("{}@{}", module.path, module.version(release))).collect::<Vec<_>>()
    };
    assert_eq!(versions(Upstream::Keda, "2.21.0"), ["github.com/kedacore/keda/v2@v2.21.0"]);
    let kubernetes = versions(Upstream::Kubernetes, "v1.37.1");
    assert!(kubernetes.contains(&"k8s.io/kubernetes@v1.37.1".to_owned()), "{kubernetes:?}");
    assert!(kubernetes.contains(&"k8s.io/api@v0.37.1".to_owned()), "{kubernetes:?}");
}
