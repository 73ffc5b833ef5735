//! The servers that KEDA's scalers and ours both ask (`make test-scalers`), and the program that asks with KEDA's.

use crate::parts::{
    ETCD, GoModule, POSTGRESQL, PROMETHEUS, PackageManager, Packages, Part, RABBITMQ, REDIS, Source,
    TreeProgram,
};

/// Asks sources with KEDA's own scalers, and fills sources for that.
pub const KEDA_SCALER: Part = Part {
    name: "keda-scaler",
    version: "2.21.0",
    source: Source::Go(GoModule {
        manifest: include_str!("../go/keda-scaler/go.mod"),
        sums: include_str!("../go/keda-scaler/go.sum"),
        link_flags: &[],
        programs: &[("plimsoll.dev/testbed/keda-scaler", "keda-scaler")],
        files: &[
            ("main.go", include_str!("../go/keda-scaler/main.go")),
            ("fill.go", include_str!("../go/keda-scaler/fill.go")),
        ],
    }),
};

/// The servers, by the names that scripts use.
pub const SERVERS: [Part; 14] = [
    ACTIVEMQ, AZURITE, BEANSTALKD, ETCD, KAFKA, MARIADB, MONGO, MOTO, NATS, POSTGRESQL, PROMETHEUS, RABBITMQ,
    REDIS, SELENIUM,
];

const NATS: Part = Part {
    name: "nats",
    version: "debian",
    source: Source::DebianTree {
        packages: &["nats-server"],
        programs: &[TreeProgram { name: "nats-server", path: "usr/sbin/nats-server", before: "" }],
    },
};

const BEANSTALKD: Part = Part {
    name: "beanstalkd",
    version: "debian",
    source: Source::DebianTree {
        packages: &["beanstalkd"],
        programs: &[TreeProgram { name: "beanstalkd", path: "usr/bin/beanstalkd", before: "" }],
    },
};

const MARIADB: Part = Part {
    name: "mariadb",
    version: "debian",
    source: Source::DebianTree {
        packages: &["mariadb-server-core", "mariadb-client-core"],
        programs: &[
            TreeProgram {
                name: "mariadbd",
                path: "usr/sbin/mariadbd",
                before: "set -- --no-defaults --basedir=\"$root\"/usr \"$@\"",
            },
            TreeProgram {
                name: "mariadb-install-db",
                path: "usr/bin/mariadb-install-db",
                before: "set -- --no-defaults --basedir=\"$root\"/usr \"$@\"",
            },
        ],
    },
};

/// SQS, Kinesis, DynamoDB and CloudWatch as far as tests need them.
const MOTO: Part = Part {
    name: "moto",
    version: "5.2.5",
    source: Source::Packages(Packages {
        manager: PackageManager::Pip,
        package: "moto[server]==5.2.5",
        programs: &[("moto_server", "env PYTHONPATH=\"$root\" python3 -m moto.server")],
    }),
};

/// Queues and blobs of Azure Storage.
const AZURITE: Part = Part {
    name: "azurite",
    version: "3.35.0",
    source: Source::Packages(Packages {
        manager: PackageManager::Npm,
        package: "azurite@3.35.0",
        programs: &[("azurite", "node \"$root\"/node_modules/azurite/dist/src/azurite.js")],
    }),
};

const KAFKA: Part = Part {
    name: "kafka",
    version: "4.1.0",
    source: Source::Packages(Packages {
        manager: PackageManager::Maven,
        package: "org.apache.kafka:kafka_2.13:4.1.0",
        programs: &[
            ("kafka", "java -Xmx256m -cp \"$root/*\" kafka.Kafka"),
            ("kafka-storage", "java -Xmx256m -cp \"$root/*\" kafka.tools.StorageTool"),
        ],
    }),
};

/// Speaks MongoDB's protocol.
const MONGO: Part = Part {
    name: "mongo",
    version: "1.47.0",
    source: Source::Packages(Packages {
        manager: PackageManager::Maven,
        package: "de.bwaldvogel:mongo-java-server:1.47.0",
        programs: &[("java-of-mongo", "java -Xmx256m -cp \"$root/*\"")],
    }),
};

const ACTIVEMQ: Part = Part {
    name: "activemq",
    version: "5.18.3",
    source: Source::Packages(Packages {
        manager: PackageManager::MavenArchive,
        package: "org.apache.activemq:apache-activemq:5.18.3",
        programs: &[("activemq", "java -Xmx256m -Dactivemq.home=\"$root\" -jar \"$root\"/bin/activemq.jar")],
    }),
};

const SELENIUM: Part = Part {
    name: "selenium",
    version: "4.35.0",
    source: Source::Packages(Packages {
        manager: PackageManager::Maven,
        package: "org.seleniumhq.selenium:selenium-grid:4.35.0",
        programs: &[("selenium", "java -Xmx256m -cp \"$root/*\" org.openqa.selenium.grid.Bootstrap")],
    }),
};

/// A server by its name.
pub fn server(name: &str) -> Option<&'static Part> {
    SERVERS.iter().find(|part| part.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_by_unique_names() {
        for part in &SERVERS {
            assert_eq!(server(part.name).map(|found| found.version), Some(part.version), "{}", part.name);
        }
        assert!(server("none").is_none());
    }

    #[test]
    fn program_that_asks_requires_its_release_of_keda() {
        let Source::Go(module) = KEDA_SCALER.source else { panic!("no Go module") };
        let required = format!("github.com/kedacore/keda/v2 v{}", KEDA_SCALER.version);
        assert!(module.manifest.contains(&required) && module.needs().starts_with("1.26"));
    }
}
