//! The servers that KEDA's scalers and ours both query (`make test-scalers`), and the program that runs KEDA's scalers.

use crate::parts::{
    ETCD, EXTERNAL_SCALER, GoModule, GoRelease, POSTGRESQL, PROMETHEUS, PackageManager, Part, RABBITMQ,
    REDIS, Source, TreeProgram, debian_tree, packaged,
};

/// The program that queries sources with KEDA's own scalers, and fills sources with data.
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
            ("temporal.go", include_str!("../go/keda-scaler/temporal.go")),
        ],
    }),
};

/// The servers, by the names that scripts use.
pub const SERVERS: [Part; 28] = [
    ACTIVEMQ,
    ARTEMIS,
    AZURITE,
    BEANSTALKD,
    CASSANDRA,
    CLICKHOUSE,
    ELASTICSEARCH,
    ETCD,
    EXTERNAL_SCALER,
    FAKE_GCS_SERVER,
    GRAPHITE,
    INFLUXDB,
    KAFKA,
    LOKI,
    MARIADB,
    MONGO,
    MOTO,
    NATS,
    NSQ,
    OPENSEARCH,
    POSTGRESQL,
    PROMETHEUS,
    PULSAR,
    RABBITMQ,
    REDIS,
    SELENIUM,
    SOLR,
    TEMPORAL,
];

const NATS: Part = debian_tree(
    "nats",
    &["nats-server"],
    &[TreeProgram { name: "nats-server", path: "usr/sbin/nats-server", before: "" }],
);

const BEANSTALKD: Part = debian_tree(
    "beanstalkd",
    &["beanstalkd"],
    &[TreeProgram { name: "beanstalkd", path: "usr/bin/beanstalkd", before: "" }],
);

const CLICKHOUSE: Part = debian_tree(
    "clickhouse",
    &["clickhouse-server"],
    &[TreeProgram { name: "clickhouse-server", path: "usr/sbin/clickhouse-server", before: "" }],
);

/// Graphite's web application, which reads the files of its storage library. The program is Python with both packages.
const GRAPHITE: Part = debian_tree(
    "graphite",
    &["graphite-web", "python3-whisper"],
    &[TreeProgram {
        name: "python-of-graphite",
        path: "usr/lib/python3/dist-packages/whisper.py",
        before: "export PYTHONPATH=\"$root\"/usr/lib/python3/dist-packages${PYTHONPATH:+:$PYTHONPATH}\n\
                     program=/usr/bin/python3",
    }],
);

const MARIADB: Part = debian_tree(
    "mariadb",
    &["mariadb-server-core", "mariadb-client-core"],
    &[
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
);

/// An emulator of SQS, Kinesis, DynamoDB and CloudWatch.
const MOTO: Part = packaged(
    "moto",
    "5.2.5",
    PackageManager::Pip,
    "moto[server]==5.2.5",
    &[("moto_server", "env PYTHONPATH=\"$root\" python3 -m moto.server")],
);

/// An emulator of queues and blobs of Azure Storage.
const AZURITE: Part = packaged(
    "azurite",
    "3.35.0",
    PackageManager::Npm,
    "azurite@3.35.0",
    &[("azurite", "node \"$root\"/node_modules/azurite/dist/src/azurite.js")],
);

const KAFKA: Part = packaged(
    "kafka",
    "4.1.0",
    PackageManager::Maven,
    "org.apache.kafka:kafka_2.13:4.1.0",
    &[
        ("kafka", "java -Xmx256m -cp \"$root/*\" kafka.Kafka"),
        ("kafka-storage", "java -Xmx256m -cp \"$root/*\" kafka.tools.StorageTool"),
    ],
);

/// A server with MongoDB's protocol.
const MONGO: Part = packaged(
    "mongo",
    "1.47.0",
    PackageManager::Maven,
    "de.bwaldvogel:mongo-java-server:1.47.0",
    &[("java-of-mongo", "java -Xmx256m -cp \"$root/*\"")],
);

const ACTIVEMQ: Part = packaged(
    "activemq",
    "5.18.3",
    PackageManager::MavenArchive,
    "org.apache.activemq:apache-activemq:5.18.3",
    &[("activemq", "java -Xmx256m -Dactivemq.home=\"$root\" -jar \"$root\"/bin/activemq.jar")],
);

const ARTEMIS: Part = packaged(
    "artemis",
    "2.56.0",
    PackageManager::MavenArchive,
    "org.apache.activemq:apache-artemis:2.56.0",
    &[("artemis", "\"$root\"/bin/artemis")],
);

const CASSANDRA: Part = packaged(
    "cassandra",
    "5.0.5",
    PackageManager::Maven,
    "org.apache.cassandra:cassandra-all:5.0.5",
    &[("java-of-cassandra", JAVA_OF_CASSANDRA)],
);

/// The Java flags that open the internal packages that Cassandra uses.
const JAVA_OF_CASSANDRA: &str = "java -Xmx512m -javaagent:\"$root\"/jamm-0.4.0.jar -cp \"$root/*\" \
    $(printf -- ' --add-exports %s=ALL-UNNAMED' java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch \
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.sql/java.sql) \
    $(printf -- ' --add-opens %s=ALL-UNNAMED' java.base/java.io java.base/java.lang java.base/java.lang.module \
    java.base/java.lang.reflect java.base/java.net java.base/java.nio java.base/java.util java.base/java.util.concurrent \
    java.base/java.util.concurrent.atomic java.base/jdk.internal.loader java.base/jdk.internal.math \
    java.base/jdk.internal.module java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar \
    java.base/sun.nio.ch jdk.management/com.sun.management.internal)";

/// Elasticsearch, and the module with its HTTP server.
const ELASTICSEARCH: Part = packaged(
    "elasticsearch",
    "7.17.29",
    PackageManager::Maven,
    "org.elasticsearch:elasticsearch:7.17.29 org.elasticsearch.plugin:transport-netty4-client:7.17.29 \
                  org.apache.logging.log4j:log4j-core:2.17.1",
    &[("java-of-elasticsearch", "java -Xmx512m -cp \"$root/*\"")],
);

/// OpenSearch, and the module with its HTTP server.
const OPENSEARCH: Part = packaged(
    "opensearch",
    "2.19.6",
    PackageManager::Maven,
    "org.opensearch:opensearch:2.19.6 org.opensearch.plugin:transport-netty4-client:2.19.6 \
                  org.apache.logging.log4j:log4j-core:2.25.4",
    &[("java-of-opensearch", "java -Xmx512m -cp \"$root/*\"")],
);

const SELENIUM: Part = packaged(
    "selenium",
    "4.35.0",
    PackageManager::Maven,
    "org.seleniumhq.selenium:selenium-grid:4.35.0",
    &[("selenium", "java -Xmx256m -cp \"$root/*\" org.openqa.selenium.grid.Bootstrap")],
);

/// Solr with Jetty, from their modules, because the distribution is not on Maven Central.
const SOLR: Part = packaged(
    "solr",
    "8.11.4",
    PackageManager::Maven,
    "org.apache.solr:solr-core:8.11.4",
    &[("java-of-solr", "java -Xmx256m -cp \"$root/*\"")],
);

const NSQ: Part = Part {
    name: "nsq",
    version: "1.3.0",
    source: Source::GoRelease(GoRelease {
        module: "github.com/nsqio/nsq",
        link_flags: &[],
        programs: &[
            ("github.com/nsqio/nsq/apps/nsqd", "nsqd"),
            ("github.com/nsqio/nsq/apps/nsqlookupd", "nsqlookupd"),
        ],
    }),
};

/// A Pulsar broker with its bookies in the same process, from its modules, because the distribution is not on Maven Central.
const PULSAR: Part = packaged(
    "pulsar",
    "4.0.7",
    PackageManager::Maven,
    "org.apache.pulsar:pulsar-broker:4.0.7",
    &[("java-of-pulsar", "java -Xmx512m -cp \"$root/*\"")],
);

/// An emulator of buckets and objects of Google Cloud Storage.
const FAKE_GCS_SERVER: Part = Part {
    name: "fake-gcs-server",
    version: "1.56.1",
    source: Source::GoRelease(GoRelease {
        module: "github.com/fsouza/fake-gcs-server",
        link_flags: &[],
        programs: &[("github.com/fsouza/fake-gcs-server", "fake-gcs-server")],
    }),
};

/// Temporal's command line tool, which has a server for development.
const TEMPORAL: Part = Part {
    name: "temporal",
    version: "1.5.1",
    source: Source::GoRelease(GoRelease {
        module: "github.com/temporalio/cli",
        link_flags: &[],
        programs: &[("github.com/temporalio/cli/cmd/temporal", "temporal")],
    }),
};

/// InfluxDB in the last release whose Flux needs only Go; later ones need Rust.
const INFLUXDB: Part = Part {
    name: "influxdb",
    version: "1.8.10",
    source: Source::GoRelease(GoRelease {
        module: "github.com/influxdata/influxdb",
        link_flags: &[],
        programs: &[("github.com/influxdata/influxdb/cmd/influxd", "influxd")],
    }),
};

/// Loki in the last release that can be built from its module alone.
const LOKI: Part = Part {
    name: "loki",
    version: "1.6.1",
    source: Source::GoRelease(GoRelease {
        module: "github.com/grafana/loki",
        link_flags: &[],
        programs: &[("github.com/grafana/loki/cmd/loki", "loki")],
    }),
};

/// Returns the server of this name.
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
