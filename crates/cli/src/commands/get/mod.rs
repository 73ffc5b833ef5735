//! `plimsoll get`: autoscalers on a cluster, and what was last decided about each.

mod table;

use std::time::{Duration, Instant};

use api::decisions::DecisionRecord;
use cluster::AutoscalerKind;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::{CommandResult, Failure};
use crate::live::decisions::{Unavailable, no_earlier_than};
use crate::live::moment::length;
use crate::live::named::{self, nearest_kind};
use crate::live::objects::{Object, ObjectFilter};
use crate::live::page::Page;
use crate::live::screen::stop_requested;
use crate::live::{AutoscalerName, ClusterArgs, ClusterClient, Scope};
use crate::output;
use table::StreamedTable;
pub(crate) use table::{Entry, limited_by};

/// List autoscalers of a cluster and what was last decided about each
///
/// Shows what `kubectl get hpa` shows, and the last decision in one sentence. Where the controller or the operator cannot
/// be reached, that column shows the object's own conditions.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll get                        # all kinds, in the namespace of the context
  plimsoll get hpa -A -o wide         # of all namespaces, with what was wanted and what limited it
  plimsoll get so -A                  # ScaledObjects of all namespaces
  plimsoll get hpa/php-apache -w      # a line for each change, until Ctrl-C
  plimsoll get all -l team=shop -o yaml

With -o json and -o yaml the objects are those of the API, and a list has the decisions beside them (`decisions`).
Exit codes: 0 all is well, 1 a named autoscaler is not there or the cluster cannot be read, 2 the input was wrong.")]
pub(crate) struct GetArgs {
    /// hpa, autoscalers, so, sj or all, and names; or hpa/NAME, so/NAME.
    #[arg(value_name = "KIND|KIND/NAME", value_parser = named::Word, hide_possible_values = true)]
    words: Vec<String>,
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only those whose labels match.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Print each change as it comes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// With --watch: how often to poll.
    #[arg(long, value_name = "DURATION", default_value = "2s", requires = "watch")]
    interval: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = GetForm::Table)]
    output: GetForm,
    #[command(flatten, next_help_heading = "Cluster")]
    place: ClusterArgs,
}

/// Forms in which autoscalers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GetForm {
    /// For people.
    Table,
    /// For people, with more columns.
    Wide,
    /// For programs.
    Json,
    /// For files.
    Yaml,
    /// Names only, as kubectl takes them.
    Name,
}

/// The kinds and names that the user requested.
#[derive(Debug, PartialEq, Eq)]
struct GetRequest {
    kinds: Vec<AutoscalerKind>,
    /// None is all.
    names: Vec<AutoscalerName>,
}

pub(crate) fn run(args: &GetArgs) -> CommandResult {
    let wanted = wanted(&args.words)?;
    if let Some(selector) = &args.selector {
        if let Err(error) = api::selector::Selector::parse(selector) {
            return Err(Failure::input(format!("--selector {selector}: {error}")));
        }
        if !wanted.names.is_empty() {
            return Err(Failure::input("a name and a selector cannot be combined; leave one out"));
        }
    }
    let interval = length("--interval", &args.interval)?;
    let interval = Duration::try_from(interval).unwrap_or(Duration::from_secs(2));
    crate::live::run(async move {
        let client = ClusterClient::open(&args.place).await?;
        if args.watch {
            return tokio::select! {
                outcome = watch(args, &client, &wanted, interval) => outcome,
                () = stop_requested() => Ok(()),
            };
        }
        let objects = objects(args, &client, &wanted, false).await?;
        let (entries, note) = entries(&client, client.scope(args.all_namespaces), objects).await;
        print(args, &client, &wanted, &entries, note.as_deref())
    })
}

fn wanted(words: &[String]) -> Result<GetRequest, Failure> {
    let Some((first, names)) = words.split_first() else {
        return Ok(GetRequest { kinds: AutoscalerKind::ALL.to_vec(), names: Vec::new() });
    };
    if first.contains('/') {
        let named = |word: &String| {
            AutoscalerName::parse(word).ok_or_else(|| {
                Failure::input(format!("{word}: write hpa/NAME, autoscaler/NAME, so/NAME or sj/NAME"))
            })
        };
        let names: Vec<AutoscalerName> = words.iter().map(named).collect::<Result<_, _>>()?;
        names.iter().try_for_each(|named| named::check("name", &named.name))?;
        return Ok(GetRequest { kinds: AutoscalerKind::ALL.to_vec(), names });
    }
    let kinds = match first.as_str() {
        "all" if names.is_empty() => AutoscalerKind::ALL.to_vec(),
        "all" => {
            return Err(Failure::input(
                "all has no names; write hpa NAME, autoscaler NAME, so NAME or sj NAME",
            ));
        }
        // Several kinds are separated by commas, as for kubectl.
        several => {
            let listed: Vec<AutoscalerKind> = several.split(',').map(kind_of).collect::<Result<_, _>>()?;
            AutoscalerKind::ALL.into_iter().filter(|kind| listed.contains(kind)).collect()
        }
    };
    names.iter().try_for_each(|name| named::check("name", name))?;
    let named =
        |kind: AutoscalerKind| names.iter().map(move |name| AutoscalerName { kind, name: name.clone() });
    let names = kinds.iter().copied().flat_map(named).collect();
    Ok(GetRequest { kinds, names })
}

/// The kind that a word means.
fn kind_of(word: &str) -> Result<AutoscalerKind, Failure> {
    named::kind(word).ok_or_else(|| {
        let near = nearest_kind(word).map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_else(|| format!("; an autoscaler of that name is written hpa/{word}"));
        Failure::input(format!("there is no kind {word} here, only hpa, autoscaler, so and sj{near}"))
    })
}

/// The requested objects; a name that does not exist is a failure.
async fn objects(
    args: &GetArgs,
    client: &ClusterClient,
    wanted: &GetRequest,
    cached: bool,
) -> Result<Vec<Object>, Failure> {
    let scope = client.scope(args.all_namespaces);
    if wanted.names.is_empty() || args.all_namespaces {
        let filter = ObjectFilter { kinds: &wanted.kinds, scope, labels: args.selector.as_deref(), cached };
        let found =
            client.objects(filter).await.map_err(|error| client.failure("list autoscalers", &error))?;
        let is_meant = |object: &Object| wanted.names.is_empty() || wanted.names.contains(&object.named());
        if let Some(lost) = wanted.names.iter().find(|named| !found.iter().any(|o| o.named() == **named)) {
            return Err(Failure::Outside(format!("there is no {lost} in any namespace")));
        }
        return Ok(found.into_iter().filter(is_meant).collect());
    }
    let mut found = Vec::new();
    for named in &wanted.names {
        match client.object(&client.namespace, named).await {
            Ok(object) => found.push(object),
            Err(error) => return Err(client.lost(&client.namespace, named, &error).await),
        }
    }
    Ok(found)
}

/// Objects with their decisions, and why decisions are missing.
async fn entries(
    client: &ClusterClient,
    scope: Scope<'_>,
    objects: Vec<Object>,
) -> (Vec<Entry>, Option<String>) {
    let (mut records, unavailable) = client.latest_about(&objects, scope).await;
    (join(objects, &mut records), unavailable.as_ref().map(Unavailable::note))
}

/// Joins each object with its decision.
pub(crate) fn join(objects: Vec<Object>, records: &mut Vec<DecisionRecord>) -> Vec<Entry> {
    let mut by_name = std::collections::HashMap::new();
    for record in records.drain(..) {
        by_name.insert((record.metadata.namespace.clone(), record.metadata.name.clone()), record);
    }
    let entry = |object: Object| {
        let record = by_name.remove(&(object.namespace().to_owned(), object.named().record()));
        Entry { object, record }
    };
    objects.into_iter().map(entry).collect()
}

/// The present by the clock of the cluster, as far as the decisions show it.
pub(crate) fn present(entries: &[Entry]) -> Timestamp {
    no_earlier_than(Timestamp::now(), entries.iter().filter_map(|entry| entry.record.as_ref()))
}

fn print(
    args: &GetArgs,
    client: &ClusterClient,
    wanted: &GetRequest,
    entries: &[Entry],
    note: Option<&str>,
) -> CommandResult {
    match args.output {
        GetForm::Json | GetForm::Yaml => {
            let format =
                if args.output == GetForm::Json { output::Format::Json } else { output::Format::Yaml };
            match (entries, wanted.names.len()) {
                ([only], 1) => output::value(format, &only.object.raw),
                (all, _) => {
                    output::value(format, &list(all))?;
                    print_note(note);
                    Ok(())
                }
            }
        }
        GetForm::Name => output::text_out(&entries.iter().map(Entry::resource_name).collect::<String>()),
        GetForm::Table | GetForm::Wide => {
            if entries.is_empty() {
                let place = match client.scope(args.all_namespaces) {
                    Scope::All => "in any namespace".to_owned(),
                    Scope::Namespace(namespace) => {
                        format!("in namespace {namespace}; -A looks in all of them")
                    }
                };
                // As kubectl does: nothing on standard output, which may be read by a program.
                let kind = match wanted.kinds.as_slice() {
                    [only] => only.name(),
                    _ => "autoscaler",
                };
                let labels = if args.selector.is_some() { " with these labels" } else { "" };
                eprintln!("no {kind}{labels} {place}");
                return Ok(());
            }
            let (page, now) = (Page::stdout(), present(entries));
            let mut table = columns(args).table(entries, now);
            if !page.has_room(&table) {
                table = table::GetColumns { compact: true, ..columns(args) }.table(entries, now);
            }
            output::text_out(&page.table(&table))?;
            print_note(note);
            Ok(())
        }
    }
}

/// Prints which decisions are missing to standard error: standard output may be read by a program.
fn print_note(note: Option<&str>) {
    if let Some(note) = note {
        eprintln!("note: {note}");
    }
}

fn columns(args: &GetArgs) -> table::GetColumns {
    table::GetColumns { namespace: args.all_namespaces, wide: args.output == GetForm::Wide, compact: false }
}

fn list(entries: &[Entry]) -> Value {
    let items: Vec<&Value> = entries.iter().map(|entry| &entry.object.raw).collect();
    let decisions: Vec<&DecisionRecord> = entries.iter().filter_map(|entry| entry.record.as_ref()).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items, "decisions": decisions})
}

/// Polls and prints changes.
async fn watch(
    args: &GetArgs,
    client: &ClusterClient,
    wanted: &GetRequest,
    interval: Duration,
) -> CommandResult {
    let columns = columns(args);
    let mut table = StreamedTable::default();
    let (mut first, mut printed_note) = (true, None);
    loop {
        let began = Instant::now();
        let found = objects(args, client, wanted, !first).await;
        let found = match found {
            Ok(found) => found,
            // Later failures are retried.
            Err(failure) if first => return Err(failure),
            Err(failure) => {
                eprintln!("note: {failure}");
                tokio::time::sleep(interval.max(Duration::from_secs(5))).await;
                continue;
            }
        };
        let (entries, note) = entries(client, client.scope(args.all_namespaces), found).await;
        if note != printed_note {
            print_note(note.as_deref());
            printed_note = note;
        }
        let changed: Vec<&Entry> = table.changed(&entries);
        match args.output {
            GetForm::Table | GetForm::Wide => {
                output::text_out(&table.lines(columns, &changed, present(&entries)))?;
            }
            GetForm::Name => {
                output::text_out(&changed.iter().map(|e| e.resource_name()).collect::<String>())?;
            }
            GetForm::Json => {
                for entry in changed {
                    output::exact_out(&format!("{}\n", entry.object.raw))?;
                }
            }
            GetForm::Yaml => {
                for entry in changed {
                    output::text_out("---\n")?;
                    output::value(output::Format::Yaml, &entry.object.raw)?;
                }
            }
        }
        first = false;
        tokio::time::sleep(pause(interval, began)).await;
    }
}

/// The pause before the next poll: a slow cluster is polled less often.
pub(crate) fn pause(interval: Duration, began: Instant) -> Duration {
    interval.max(began.elapsed() * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_as_kinds_and_names() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            wanted(&words)
                .map(|w| (w.kinds.len(), w.names.iter().map(ToString::to_string).collect::<Vec<_>>()))
        };
        assert_eq!(read(&[]).unwrap(), (4, vec![]));
        assert_eq!(read(&["all"]).unwrap(), (4, vec![]));
        assert_eq!(read(&["scaledobjects"]).unwrap(), (1, vec![]));
        assert_eq!(read(&["so", "a"]).unwrap(), (1, vec!["so/a".to_owned()]));
        assert_eq!(read(&["hpa"]).unwrap(), (1, vec![]));
        assert_eq!(read(&["so,hpa,so"]).unwrap(), (2, vec![]));
        assert_eq!(read(&["hpa", "a", "b"]).unwrap(), (1, vec!["hpa/a".to_owned(), "hpa/b".to_owned()]));
        assert_eq!(read(&["autoscaler/a"]).unwrap(), (4, vec!["autoscaler/a".to_owned()]));
        for words in [&["web"][..], &["hpa", "A/b"], &["all", "x"], &["hpa/"], &["pod/x"], &["hpa,pods"]] {
            assert!(matches!(read(words), Err(Failure::Input(_))), "{words:?}");
        }
        let near = read(&["hpaa"]).unwrap_err().to_string();
        assert!(near.ends_with("did you mean hpa?"), "{near}");
    }
}
