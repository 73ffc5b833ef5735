//! `plimsoll scalers describe`: the parameters of a trigger type.

use scalers::parameters::{Parameter, ParameterSource};
use scalers::table::{self, ScalerType};
use serde_json::{Value, json};

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Format};

/// Describe the parameters of a trigger type
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll scalers describe prometheus
  plimsoll scalers describe redis-streams -o json")]
pub(crate) struct DescribeScalerArgs {
    /// The type, as in the field `type`.
    #[arg(value_name = "TYPE")]
    name: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) fn run(args: &DescribeScalerArgs) -> CommandResult {
    let Some(found) = table::find(&args.name) else {
        let meant = table::nearest(&args.name).map(|one| format!("did you mean {}?", one.name));
        let remedy = meant.unwrap_or_else(|| "plimsoll scalers list shows all".to_owned());
        return Err(Failure::input(format!("there is no trigger type {:?}; {remedy}", args.name)));
    };
    match args.output {
        Format::Json | Format::Yaml => output::value(args.output, &value(found)),
        Format::Table | Format::Wide => output::text_out(&page(found)),
    }
}

/// Where a parameter may be given.
fn places(parameter: &Parameter) -> Vec<&'static str> {
    let name = |source: &ParameterSource| match source {
        ParameterSource::Metadata => "metadata",
        ParameterSource::Environment => "environment",
        ParameterSource::Authentication => "authentication",
    };
    parameter.sources.iter().map(name).collect()
}

fn value(found: &ScalerType) -> Value {
    let parameter = |one: &Parameter| {
        json!({
            "keys": one.keys, "about": one.about, "kind": one.kind, "places": places(one), "default": one.default,
            "required": one.required, "oneOf": one.one_of, "removed": one.removed, "deprecated": one.deprecated,
        })
    };
    let parameters: Vec<Value> = found.parameters.iter().map(parameter).collect();
    json!({"type": found.name, "about": found.about, "push": found.push, "parameters": parameters})
}

/// Text: one paragraph per parameter, required ones first.
fn page(found: &ScalerType) -> String {
    let mut page = format!("{}: {}\n", found.name, found.about);
    let living = found.parameters.iter().filter(|one| one.removed.is_none());
    let (required, optional): (Vec<_>, Vec<_>) = living.partition(|one| one.required);
    for (title, some) in [("must be given", required), ("may be given", optional)] {
        if some.is_empty() {
            continue;
        }
        page.push_str(&format!("\nParameters that {title}:\n"));
        for one in some {
            page.push_str(&paragraph(one));
        }
    }
    page.push_str(
        "\nmetadata: in the trigger; environment: KEYFromEnv in the trigger names a variable of the target's container;\n\
         authentication: in a TriggerAuthentication. Of several places the first that has it wins.\n",
    );
    page
}

fn paragraph(one: &Parameter) -> String {
    let mut facts = vec![one.kind.to_owned(), format!("in {}", places(one).join(", "))];
    if let Some(default) = one.default.filter(|default| !default.is_empty()) {
        facts.push(format!("default {default}"));
    }
    if !one.one_of.is_empty() {
        facts.push(format!("one of {}", one.one_of.join(", ")));
    }
    if let Some(why) = one.deprecated {
        facts.push(format!("deprecated: {why}"));
    }
    let about = one.about.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("  {}  ({})\n      {about}\n", one.keys.join(", "), facts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scaler_type_describes_all_its_parameters() {
        for found in table::SCALER_TYPES.iter() {
            let page = page(found);
            for one in found.parameters.iter().filter(|one| one.removed.is_none()) {
                assert!(page.contains(&format!("  {}  (", one.keys.join(", "))), "{}: {page}", found.name);
                assert!(!one.about.trim().is_empty(), "{} of {} says nothing", one.name(), found.name);
            }
        }
    }
}
