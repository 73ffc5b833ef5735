//! `plimsoll scalers check`: queries the real sources of a ScaledObject or ScaledJob.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::keda::KedaProfile;
use api::provider::Compat;
use api::yaml;
use cluster::connect::{ConnectTarget, connect};
use cluster::discovery::Discovery;
use controllers::operator::auth::{
    ApiServerObjects, AuthObjects, AuthResolver, AuthRules, ManifestObjects, VaultRules,
};
use controllers::operator::operator_identity::IdentityRules;
use controllers::operator::{OperatorSettings, cluster_reader};
use kube::Client;
use scalers::backends::Backends;
use scalers::dial::Dialer;
use scalers::secret_managers::SecretManagers;
use scalers::tenant_files::TenantFiles;
use serde_json::Value;

use super::combined_auth::CombinedAuthObjects;
use super::object::objects;
use super::query::{TriggerFinding, query_trigger};
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output::{self, Format};

/// Query the real sources of a ScaledObject or ScaledJob, and show what would be served
///
/// Everything that its triggers need (TriggerAuthentications, Secrets, ConfigMaps, the target) is taken from the same files or,
/// with --cluster, from the cluster. Nothing is written anywhere.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll scalers check my-scaledobject.yaml
  plimsoll scalers check my-scaledobject.yaml secrets.yaml
  plimsoll scalers check my-scaledobject.yaml --cluster -n shop -o json

Exit codes: 0 every source answered, 1 one did not, 2 the input was wrong.")]
pub(crate) struct CheckScalersArgs {
    /// Files with manifests; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Take what is not in the files from the cluster.
    #[arg(long)]
    cluster: bool,
    /// Namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Release of KEDA whose trigger parameters are read, where releases differ: 2.20 or 2.21.
    #[arg(long, value_name = "RELEASE", default_value_t)]
    keda_profile: KedaProfile,
    /// Timeout of a query.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) fn run(args: &CheckScalersArgs) -> CommandResult {
    let manifests = read(args)?;
    let mut objects = objects(&manifests)?;
    if objects.is_empty() {
        return Err(Failure::input("there is no ScaledObject and no ScaledJob in these files"));
    }
    crate::live::run(async move {
        let cluster = cluster(args).await?;
        let files = ManifestObjects::new(manifests);
        // Whoever runs this command may connect to these addresses and read these files anyway.
        let web = scalers::web::HttpSettings {
            dialer: Dialer::unrestricted(),
            ..scalers::web::HttpSettings::from_environment(|name| std::env::var(name).ok())
        };
        let mut notes = Vec::new();
        let (source, backends): (Arc<dyn AuthObjects>, Backends) = match cluster {
            Some(client) => {
                let discovery = Discovery::new(client.clone());
                for object in &mut objects {
                    let lost = object.read_target(&client, &discovery).await.err();
                    notes.extend(lost.map(|why| format!("what {} scales: {why}", object.owner.name)));
                }
                let reader = cluster_reader(client.clone(), discovery, Compat::Better);
                let both = CombinedAuthObjects { files, cluster: ApiServerObjects::new(client) };
                (Arc::new(both), Backends::new(reader, web, Compat::Better))
            }
            None => (Arc::new(files), Backends::without_cluster(web, Compat::Better)),
        };
        let backends = backends.with_files(TenantFiles::Anywhere);
        let vault = VaultRules {
            dialer: Dialer::unrestricted(),
            ..VaultRules::from_variables(|name| std::env::var(name).ok())
        };
        // The credentials are those of the person who runs this command on their own files.
        let identity = IdentityRules::of_caller();
        let rules = AuthRules { vault, identity, ..AuthRules::from(&OperatorSettings::default()) };
        let auth = AuthResolver::new(source, rules).with_secret_managers(SecretManagers::of(&backends));
        let mut findings = Vec::new();
        for object in &objects {
            for (index, trigger) in object.triggers.iter().enumerate() {
                let within = Duration::from_secs(args.timeout);
                findings.extend(
                    query_trigger(object, index, trigger, &auth, &backends, args.keda_profile, within).await,
                );
            }
        }
        print(args.output, &findings, &notes)?;
        if findings.iter().any(|finding| finding.error.is_some()) { Err(Failure::Printed(1)) } else { Ok(()) }
    })
}

/// The cluster, if --cluster is given.
async fn cluster(args: &CheckScalersArgs) -> Result<Option<Client>, Failure> {
    if !args.cluster {
        return Ok(None);
    }
    let target = ConnectTarget { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
    Ok(Some(connection.client))
}

/// All documents, each in a namespace.
fn read(args: &CheckScalersArgs) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for source in files::read_all(&args.files)? {
        for document in yaml::parse(&source).map_err(|problem| Failure::Problems(vec![problem]))? {
            for item in document.into_items() {
                let mut object: Value = item.decode_lenient().map_err(Failure::Problems)?;
                if let Some(meta) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                    meta.entry("namespace").or_insert_with(|| Value::from(args.namespace.clone()));
                }
                all.push(object);
            }
        }
    }
    Ok(all)
}

fn print(format: Format, findings: &[TriggerFinding], notes: &[String]) -> CommandResult {
    if matches!(format, Format::Json | Format::Yaml) {
        return output::value(format, &findings);
    }
    let mut text = "OBJECT\tTRIGGER\tMETRIC\tVALUE\tTARGET\tACTIVE\n".to_owned();
    for one in findings {
        let value = match (&one.error, &one.value) {
            (Some(_), _) => "✗",
            (None, Some(value)) => value,
            (None, None) => "(metrics-server)",
        };
        let active = one.active.map_or("-", |active| if active { "yes" } else { "no" });
        text.push_str(&format!(
            "{}\t{} {}\t{}\t{value}\t{}\t{active}\n",
            one.object, one.trigger, one.type_, one.metric, one.target
        ));
    }
    let mut page = api::table::align(&text, 0, 3);
    for one in findings {
        if let Some(error) = &one.error {
            page.push_str(&format!(
                "\n✗ trigger {} ({}) of {}:\n  {}\n",
                one.trigger,
                one.type_,
                one.object,
                error.replace('\n', "\n  ")
            ));
        }
    }
    for one in findings {
        for note in &one.notes {
            page.push_str(&format!(
                "\n! trigger {} ({}) of {}:\n  {note}\n",
                one.trigger, one.type_, one.object
            ));
        }
    }
    for note in notes {
        page.push_str(&format!("\n! {note}\n"));
    }
    output::text_out(&page)
}
