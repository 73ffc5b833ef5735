//! TriggerAuthentication and ClusterTriggerAuthentication (docs/spec/keda.md 1.3).

use super::{Column, Definition};
use crate::generate::schema::{Schema, labels, list, object, text, word};

pub(super) fn definitions() -> [Definition; 2] {
    let columns = |of_cluster: bool| {
        let wide = |name, path| Column { wide: true, ..Column::text(name, path) };
        let mut columns = vec![
            Column::text("PodIdentity", ".spec.podIdentity.provider"),
            Column::text("Secret", ".spec.secretTargetRef[*].name"),
            Column::text("Env", ".spec.env[*].name"),
        ];
        if of_cluster {
            columns.push(Column::text("FilePath", ".spec.filePath"));
        }
        columns.push(Column::text("VaultAddress", ".spec.hashiCorpVault.address"));
        columns.push(wide("ScaledObjects", ".status.scaledobjects"));
        columns.push(wide("ScaledJobs", ".status.scaledjobs"));
        columns
    };
    [
        Definition {
            group: api::keda::GROUP,
            kind: "TriggerAuthentication",
            plural: "triggerauthentications",
            short_names: &["ta", "triggerauth"],
            namespaced: true,
            columns: columns(false),
            about: "Where triggers of its namespace find credentials.",
            schema: (spec().required(), status()),
        },
        Definition {
            group: api::keda::GROUP,
            kind: "ClusterTriggerAuthentication",
            plural: "clustertriggerauthentications",
            short_names: &["cta", "clustertriggerauth"],
            namespaced: false,
            columns: columns(true),
            about: "Where triggers of all namespaces find credentials.",
            schema: (spec().required(), status()),
        },
    ]
}

fn status() -> Schema {
    object(
        "Who uses it.",
        [
            ("scaledobjects", text("Names of ScaledObjects, with commas.")),
            ("scaledjobs", text("Names of ScaledJobs, with commas.")),
        ],
    )
}

fn parameter() -> (&'static str, Schema) {
    ("parameter", text("The scaler's parameter.").required())
}

fn spec() -> Schema {
    let key = |about: &str, of: &str| {
        let item = object(
            about,
            [
                parameter(),
                ("name", text(&format!("The {of}.")).required()),
                ("key", text("The key in it.").required()),
            ],
        );
        list(&format!("Keys of {of}s."), item)
    };
    let variable = object(
        "A parameter from a variable.",
        [
            parameter(),
            ("name", text("The variable.").required()),
            ("containerName", text("The container; without it, that of the ScaledObject.")),
        ],
    );
    let token = object(
        "A parameter from a token.",
        [parameter(), ("serviceAccountName", text("The service account.").required())],
    );
    object(
        "Where credentials are. Later sources overwrite the parameters of earlier ones.",
        [
            ("podIdentity", pod_identity()),
            ("env", list("Variables of the target's containers.", variable)),
            (
                "filePath",
                text(
                    "A file of the operator that holds an object of texts; in a ClusterTriggerAuthentication only.",
                ),
            ),
            ("configMapTargetRef", key("A parameter from a ConfigMap.", "ConfigMap")),
            ("secretTargetRef", key("A parameter from a Secret.", "Secret")),
            ("hashiCorpVault", vault()),
            ("azureKeyVault", azure()),
            ("gcpSecretManager", gcp()),
            ("awsSecretManager", aws()),
            ("boundServiceAccountToken", list("Tokens of service accounts.", token)),
            ("oauth2", oauth2()),
        ],
    )
}

fn pod_identity() -> Schema {
    object(
        "The identity of a cloud.",
        [
            (
                "provider",
                word("Which cloud.", &["azure-workload", "gcp", "aws", "aws-eks", "none"]).required(),
            ),
            ("identityId", text("Azure: the client.")),
            ("identityTenantId", text("Azure: the tenant.")),
            ("identityAuthorityHost", text("Azure: the authority; needs a tenant.")),
            ("roleArn", text("AWS: the role.")),
            ("externalID", text("AWS: the external id; needs a role.")),
            ("identityOwner", word("AWS: whose identity it is.", &["keda", "workload"])),
        ],
    )
}

/// A value that stands in a Secret.
fn from_secret(about: &str) -> Schema {
    let key = object(
        "The key of a Secret.",
        [("name", text("The Secret.").required()), ("key", text("The key in it.").required())],
    );
    let place = object("Where it stands.", [("secretKeyRef", key.required())]);
    object(about, [("valueFrom", place.required())])
}

fn vault() -> Schema {
    let names = |about: &str| text(about);
    let pki = object(
        "What a certificate is asked for with.",
        [
            ("commonName", names("Common name.")),
            ("altNames", names("Other names.")),
            ("ipSans", names("Addresses.")),
            ("uriSans", names("URIs.")),
            ("otherSans", names("Others.")),
            ("ttl", names("Life time.")),
            ("format", names("Format.")),
        ],
    );
    let secret = object(
        "A parameter from a secret.",
        [
            parameter(),
            ("path", text("Its path.").required()),
            ("key", text("The key in it.").required()),
            ("type", word("What kind of secret it is.", &["", "secretV2", "secret", "pki"])),
            ("pkiData", pki),
        ],
    );
    let credential = object(
        "What to log in with.",
        [
            ("token", text("A token.")),
            ("serviceAccount", text("A file with the token of a service account.")),
            ("serviceAccountName", text("A service account for which a token is asked.")),
        ],
    );
    object(
        "Secrets of HashiCorp Vault.",
        [
            ("address", text("Where it is.").required()),
            ("authentication", word("How to log in.", &["token", "kubernetes"]).required()),
            ("namespace", text("Its namespace.")),
            ("mount", text("Where the login is mounted.")),
            ("role", text("The role to log in as.")),
            ("credential", credential),
            ("secrets", list("The secrets.", secret).filled().required()),
        ],
    )
}

fn azure() -> Schema {
    let secret = object(
        "A parameter from a secret.",
        [
            parameter(),
            ("name", text("Its name.").required()),
            ("version", text("Its version; without it, the latest.")),
        ],
    );
    let credentials = object(
        "What to log in with.",
        [
            ("clientId", text("The client.").required()),
            ("tenantId", text("The tenant.").required()),
            ("clientSecret", from_secret("The client's secret.").required()),
        ],
    );
    let cloud = object(
        "Which cloud.",
        [
            ("type", text("Its name, or Private.").required()),
            ("keyVaultResourceURL", text("For Private: the resource of vaults.")),
            ("activeDirectoryEndpoint", text("For Private: where to log in.")),
        ],
    );
    object(
        "Secrets of Azure Key Vault.",
        [
            ("vaultUri", text("Where it is.").required()),
            ("secrets", list("The secrets.", secret).filled().required()),
            ("credentials", credentials),
            ("podIdentity", pod_identity()),
            ("cloud", cloud),
        ],
    )
}

fn gcp() -> Schema {
    let secret = object(
        "A parameter from a secret.",
        [
            parameter(),
            ("id", text("Its id.").required()),
            ("version", text("Its version; without it, latest.")),
        ],
    );
    let credentials =
        object("What to log in with.", [("clientSecret", from_secret("The key of an account.").required())]);
    object(
        "Secrets of GCP Secret Manager.",
        [
            ("secrets", list("The secrets.", secret).filled().required()),
            ("credentials", credentials),
            ("podIdentity", pod_identity()),
        ],
    )
}

fn aws() -> Schema {
    let secret = object(
        "A parameter from a secret.",
        [
            parameter(),
            ("name", text("Its name.").required()),
            ("versionId", text("Its version.")),
            ("versionStage", text("Its stage.")),
            ("secretKey", text("The key in it, if it is an object.")),
        ],
    );
    let credentials = object(
        "What to log in with.",
        [
            ("accessKey", from_secret("The key.").required()),
            ("accessSecretKey", from_secret("The key's secret.").required()),
            ("accessToken", from_secret("A token of a session.")),
        ],
    );
    object(
        "Secrets of AWS Secrets Manager.",
        [
            ("secrets", list("The secrets.", secret).filled().required()),
            ("credentials", credentials),
            ("podIdentity", pod_identity()),
            ("region", text("The region.")),
        ],
    )
}

fn oauth2() -> Schema {
    object(
        "OAuth 2.",
        [
            ("type", word("The flow.", &["clientCredentials"]).or("clientCredentials")),
            ("clientId", text("The client.").required()),
            ("clientSecret", from_secret("The client's secret.")),
            ("tokenUrl", text("Where tokens are.").required()),
            ("scopes", list("What is asked for.", text("A scope."))),
            ("tokenUrlParams", labels("Further parameters of the request.")),
        ],
    )
}
