//! The table of parts: what is built, and from which source.

/// Programs that are built or fetched once per machine.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The name of the part, also in the cache.
    pub name: &'static str,
    /// The version, as the authors of the part write it.
    pub version: &'static str,
    /// The source of the part.
    pub source: Source,
}

/// The source of a part.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// Programs of a Go module in this repository, which pins all dependencies.
    Go(GoModule),
    /// Programs of a published Go module, which pins all its dependencies.
    GoRelease(GoRelease),
    /// Programs of one Debian package.
    Debian {
        /// The package.
        package: &'static str,
        /// The programs of the package, all in `usr/bin`.
        programs: &'static [&'static str],
    },
    /// Programs of several Debian packages, with all dependencies that are not installed on this system.
    DebianTree {
        /// The packages. The dependencies of a metapackage (`postgresql` for `postgresql-17`) are followed.
        packages: &'static [&'static str],
        /// Their programs.
        programs: &'static [TreeProgram],
    },
    /// Programs of a package of another package manager, with all its dependencies.
    Packages(Packages),
}

/// A package of PyPI, npm or Maven Central.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    /// The package manager that fetches it.
    pub manager: PackageManager,
    /// Name and version as the manager writes them, for Maven `group:artifact:version`, also several.
    pub package: &'static str,
    /// The name of each program here, and the shell command that it runs; `$root` is the folder of the packages.
    pub programs: &'static [(&'static str, &'static str)],
}

/// A package manager, which must be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    /// pip, the package manager of Python.
    Pip,
    /// npm, the package manager of Node.js.
    Npm,
    /// Maven, the package manager of Java.
    Maven,
    /// Maven, for an archive with a whole distribution.
    MavenArchive,
}

/// A program somewhere in a tree of packages.
#[derive(Debug, Clone, Copy)]
pub struct TreeProgram {
    /// The name of the program here.
    pub name: &'static str,
    /// The path of the program in the tree; the first match if the path contains asterisks.
    pub path: &'static str,
    /// Shell lines that run before the program; `$root` is the tree, `$program` the program.
    pub before: &'static str,
}

/// A Go module in this repository that requires the module of the programs.
#[derive(Debug, Clone, Copy)]
pub struct GoModule {
    /// The text of its `go.mod`.
    pub manifest: &'static str,
    /// The text of its `go.sum`. If it is empty, `go mod tidy` completes the module before it is built, and Go's checksum
    /// database vouches for what is fetched.
    pub sums: &'static str,
    /// Linker flags, most of which set versions.
    pub link_flags: &'static [&'static str],
    /// Each package to build, and the name of its program.
    pub programs: &'static [(&'static str, &'static str)],
    /// Source files, for modules that have code of their own.
    pub files: &'static [(&'static str, &'static str)],
}

/// A published Go module. It is built as its authors build it, with what its own `go.mod` and `go.sum` pin; Go's checksum
/// database vouches for the module itself.
#[derive(Debug, Clone, Copy)]
pub struct GoRelease {
    /// The path of the module.
    pub module: &'static str,
    /// Linker flags, most of which set versions.
    pub link_flags: &'static [&'static str],
    /// Each package to build, and the name of its program.
    pub programs: &'static [(&'static str, &'static str)],
}

/// A part from Debian packages, in the version that this release of Debian has.
pub(crate) const fn debian_tree(
    name: &'static str,
    packages: &'static [&'static str],
    programs: &'static [TreeProgram],
) -> Part {
    Part { name, version: "debian", source: Source::DebianTree { packages, programs } }
}

/// A part of a package of another package manager.
pub(crate) const fn packaged(
    name: &'static str,
    version: &'static str,
    manager: PackageManager,
    package: &'static str,
    programs: &'static [(&'static str, &'static str)],
) -> Part {
    Part { name, version, source: Source::Packages(Packages { manager, package, programs }) }
}

macro_rules! module {
    ($folder:literal, $link_flags:expr, $programs:expr) => {
        module!($folder, $link_flags, $programs, &[])
    };
    ($folder:literal, $link_flags:expr, $programs:expr, $files:expr) => {
        Source::Go(GoModule {
            files: $files,
            manifest: include_str!(concat!("../go/", $folder, "/go.mod")),
            sums: include_str!(concat!("../go/", $folder, "/go.sum")),
            link_flags: $link_flags,
            programs: $programs,
        })
    };
}

/// The programs of Kubernetes that the testbed builds.
const KUBERNETES_PROGRAMS: &[(&str, &str)] = &[
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
    ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
    ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
];

/// kube-apiserver, kube-controller-manager and kubectl.
pub const KUBERNETES: Part = Part {
    name: "kubernetes",
    version: "1.36.4",
    source: module!(
        "kubernetes",
        &[
            "-X k8s.io/component-base/version.gitVersion=v1.36.4",
            "-X k8s.io/component-base/version.gitMajor=1",
            "-X k8s.io/component-base/version.gitMinor=36",
        ],
        KUBERNETES_PROGRAMS
    ),
};

/// kube-apiserver, kube-controller-manager and kubectl of the next release.
pub const KUBERNETES_1_37: Part = Part {
    name: "kubernetes",
    version: "1.37.1",
    source: Source::Go(GoModule {
        manifest: include_str!("../go/kubernetes-1.37/go.mod"),
        sums: "",
        link_flags: &[
            "-X k8s.io/component-base/version.gitVersion=v1.37.1",
            "-X k8s.io/component-base/version.gitMajor=1",
            "-X k8s.io/component-base/version.gitMinor=37",
        ],
        programs: KUBERNETES_PROGRAMS,
        files: &[],
    }),
};

/// etcd, the store of kube-apiserver.
pub const ETCD: Part = Part {
    name: "etcd",
    version: "3.6.5",
    source: module!("etcd", &[], &[("go.etcd.io/etcd/server/v3", "etcd")]),
};

/// Prometheus and promtool, of whichever version Debian has.
pub const PROMETHEUS: Part = Part {
    name: "prometheus",
    version: "debian",
    source: Source::Debian { package: "prometheus", programs: &["prometheus", "promtool"] },
};

/// Redis, its sentinel and its client, of whichever version Debian has.
pub const REDIS: Part = debian_tree(
    "redis",
    &["redis-server", "redis-sentinel", "redis-tools"],
    &[
        TreeProgram { name: "redis-server", path: "usr/bin/redis-server", before: "" },
        TreeProgram { name: "redis-sentinel", path: "usr/bin/redis-sentinel", before: "" },
        TreeProgram { name: "redis-cli", path: "usr/bin/redis-cli", before: "" },
    ],
);

/// RabbitMQ and the Erlang below it, of whichever version Debian has.
pub const RABBITMQ: Part = debian_tree(
    "rabbitmq",
    &["rabbitmq-server", "erlang-base"],
    &[
        TreeProgram {
            name: "rabbitmq-server",
            path: "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server",
            before: "",
        },
        // Debian's start script contains an absolute path, which does not exist in the tree.
        TreeProgram {
            name: "erl",
            path: "usr/lib/erlang/erts-*/bin/erlexec",
            before: "ROOTDIR=$root/usr/lib/erlang BINDIR=${program%/*} EMU=beam PROGNAME=erl\n\
                         export ROOTDIR BINDIR EMU PROGNAME",
        },
        TreeProgram { name: "epmd", path: "usr/lib/erlang/erts-*/bin/epmd", before: "" },
    ],
);

/// PostgreSQL, of whichever version Debian has.
pub const POSTGRESQL: Part = debian_tree(
    "postgresql",
    &["postgresql", "postgresql-client"],
    &[
        TreeProgram { name: "initdb", path: "usr/lib/postgresql/*/bin/initdb", before: "" },
        TreeProgram { name: "postgres", path: "usr/lib/postgresql/*/bin/postgres", before: "" },
        TreeProgram { name: "psql", path: "usr/lib/postgresql/*/bin/psql", before: "" },
    ],
);

/// An external scaler with the published protocol, written in Go.
pub const EXTERNAL_SCALER: Part = Part {
    name: "external-scaler",
    version: "2.20.2",
    source: module!(
        "external-scaler",
        &[],
        &[("plimsoll.dev/testbed/external-scaler", "external-scaler")],
        &[("main.go", include_str!("../go/external-scaler/main.go"))]
    ),
};

macro_rules! own {
    ($file:literal) => {
        ($file, include_str!(concat!("../go/vault/", $file)))
    };
}

/// Vault's core, its stores of keys and values and its kubernetes login, without the libraries of the clouds: those take
/// most of the time that it takes to build.
pub const VAULT: Part = Part {
    name: "vault",
    version: "1.21.1",
    source: module!(
        "vault",
        &[],
        &[("plimsoll.dev/testbed/vault", "vault")],
        &[
            own!("main.go"),
            own!("without/alicloudkms/go.mod"),
            own!("without/alicloudkms/stub.go"),
            own!("without/awskms/go.mod"),
            own!("without/awskms/stub.go"),
            own!("without/azurekeyvault/go.mod"),
            own!("without/azurekeyvault/stub.go"),
            own!("without/cloudsqlconn/go.mod"),
            own!("without/cloudsqlconn/stub.go"),
            own!("without/cloudsqlconn/mysql/mysql/stub.go"),
            own!("without/cloudsqlconn/postgres/pgxv4/stub.go"),
            own!("without/discover/go.mod"),
            own!("without/discover/stub.go"),
            own!("without/discover/provider/k8s/stub.go"),
            own!("without/gcpckms/go.mod"),
            own!("without/gcpckms/stub.go"),
            own!("without/ocikms/go.mod"),
            own!("without/ocikms/stub.go"),
        ]
    ),
};

/// The programs with which Plimsoll is compared.
pub const PEERS: [Part; 4] = [METRICS_SERVER, PROMETHEUS_ADAPTER, KEDA, HELM];

pub(crate) const METRICS_SERVER: Part = Part {
    name: "metrics-server",
    version: "0.9.0",
    source: module!(
        "metrics-server",
        &["-X k8s.io/client-go/pkg/version.gitVersion=v0.9.0"],
        &[("sigs.k8s.io/metrics-server/cmd/metrics-server", "metrics-server")]
    ),
};

pub(crate) const PROMETHEUS_ADAPTER: Part = Part {
    name: "prometheus-adapter",
    version: "0.12.0",
    source: module!(
        "prometheus-adapter",
        &[],
        &[("sigs.k8s.io/prometheus-adapter/cmd/adapter", "prometheus-adapter")]
    ),
};

/// The programs of KEDA.
const KEDA_PROGRAMS: &[(&str, &str)] = &[
    ("github.com/kedacore/keda/v2/cmd/operator", "keda-operator"),
    ("github.com/kedacore/keda/v2/cmd/adapter", "keda-adapter"),
    ("github.com/kedacore/keda/v2/cmd/webhooks", "keda-webhooks"),
];

pub(crate) const KEDA: Part = Part {
    name: "keda",
    version: "2.20.2",
    source: module!("keda", &["-X github.com/kedacore/keda/v2/version.Version=2.20.2"], KEDA_PROGRAMS),
};

/// The releases of KEDA that can be built: the default first.
pub const KEDA_RELEASES: [Part; 2] = [KEDA, KEDA_2_21];

const KEDA_2_21: Part = Part {
    name: "keda",
    version: "2.21.0",
    source: Source::GoRelease(GoRelease {
        module: "github.com/kedacore/keda/v2",
        link_flags: &["-X github.com/kedacore/keda/v2/version.Version=2.21.0"],
        programs: KEDA_PROGRAMS,
    }),
};

pub(crate) const HELM: Part = Part {
    name: "helm",
    version: "3.22.0",
    source: module!(
        "helm",
        &[
            "-X helm.sh/helm/v3/internal/version.version=v3.22.0",
            "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
            "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36",
            "-X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
            "-X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=36",
        ],
        &[("helm.sh/helm/v3/cmd/helm", "helm")]
    ),
};

impl Part {
    /// The name and version, as messages show them.
    pub fn title(&self) -> String {
        match self.source {
            Source::Go(_) | Source::GoRelease(_) | Source::Packages(_) => {
                format!("{} {}", self.name, self.version)
            }
            Source::Debian { .. } | Source::DebianTree { .. } => format!("{} (Debian's)", self.name),
        }
    }

    /// The names of the part's programs.
    pub fn programs(&self) -> Vec<&'static str> {
        match self.source {
            Source::Go(GoModule { programs, .. }) | Source::GoRelease(GoRelease { programs, .. }) => {
                programs.iter().map(|(_, name)| *name).collect()
            }
            Source::Debian { programs, .. } => programs.to_vec(),
            Source::DebianTree { programs, .. } => programs.iter().map(|program| program.name).collect(),
            Source::Packages(Packages { programs, .. }) => programs.iter().map(|(name, _)| *name).collect(),
        }
    }
}

impl GoModule {
    /// The minimum version of Go, which `go.mod` states.
    pub fn needs(&self) -> &'static str {
        needs(self.manifest)
    }
}

/// The minimum version of Go that the text of a `go.mod` states.
pub(crate) fn needs(manifest: &str) -> &str {
    manifest.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.26").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_keda_name_their_version_and_have_the_same_programs() {
        for part in KEDA_RELEASES {
            let (Source::Go(GoModule { link_flags, .. }) | Source::GoRelease(GoRelease { link_flags, .. })) =
                part.source
            else {
                panic!("{} is no Go module", part.title())
            };
            assert!(
                link_flags.iter().any(|flag| flag.ends_with(&format!("={}", part.version))),
                "{}",
                part.title()
            );
            assert_eq!(part.programs(), KEDA.programs());
        }
    }

    #[test]
    fn go_modules_require_the_version_of_their_part() {
        for part in [KUBERNETES, KUBERNETES_1_37, ETCD, EXTERNAL_SCALER, VAULT].into_iter().chain(PEERS) {
            let Source::Go(module) = part.source else { panic!("{} is no Go module", part.name) };
            for (package, _) in module.programs {
                assert!(module.manifest.contains(package), "{package} is no tool of {}", part.name);
            }
            let required = format!("v{}", part.version);
            assert!(
                module.manifest.lines().any(|line| line.split_whitespace().any(|word| word == required)),
                "{}",
                part.name
            );
            assert!(module.needs().starts_with("1.26"), "{}: {}", part.name, module.needs());
            for flag in module.link_flags {
                assert!(flag.starts_with("-X ") && flag.contains('='), "{flag}");
            }
        }
    }
}
