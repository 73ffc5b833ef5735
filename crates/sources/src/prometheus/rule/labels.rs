//! Mapping between labels and resources.

use api::gotext::quote;

use crate::prometheus::config::ResourceMapping;
use crate::prometheus::mapper::{GroupResource, KnownResource, RestMapper};
use crate::prometheus::names::GoRegex;
use crate::prometheus::template::Template;

/// Mapping between labels and resources in both directions: by overrides, else by a template.
#[derive(Clone, Debug, Default)]
pub struct ResourceLabels {
    overrides: Vec<(String, GroupResource)>,
    template: Option<LabelTemplate>,
}

/// A template of label names, and the regular expression that inverts it.
#[derive(Clone, Debug)]
struct LabelTemplate {
    template: Template,
    pattern: GoRegex,
}

impl ResourceLabels {
    /// Compiles a mapping; errors have the text of prometheus-adapter.
    pub fn new(mapping: &ResourceMapping, mapper: &RestMapper) -> Result<Self, String> {
        let template = match mapping.template.as_str() {
            "" => None,
            text => Some(LabelTemplate::new(text)?),
        };
        let mut overrides = Vec::with_capacity(mapping.overrides.len());
        for (label, written) in &mapping.overrides {
            let found = mapper.resolve(&written.group, &written.resource).map_err(|why| {
                format!(
                    "unable to normalize group-resource {{{} {}}}: {why}",
                    written.group, written.resource
                )
            })?;
            overrides.push((label.clone(), found.group_resource()));
        }
        Ok(Self { overrides, template })
    }

    /// Whether the mapping is empty.
    pub fn is_empty(&self) -> bool {
        self.overrides.is_empty() && self.template.is_none()
    }

    /// Labels of overrides in file order.
    pub fn overridden(&self) -> impl Iterator<Item = &str> {
        self.overrides.iter().map(|(label, _)| label.as_str())
    }

    /// Resource that a label names.
    pub fn resource_of<'m>(&self, label: &str, mapper: &'m RestMapper) -> Option<&'m KnownResource> {
        if let Some((_, resource)) = self.overrides.iter().find(|(own, _)| own == label) {
            return mapper.find(&resource.group, &resource.resource);
        }
        let pattern = &self.template.as_ref()?.pattern;
        let resource = pattern.capture(label, "resource")?;
        mapper.find(pattern.capture(label, "group").unwrap_or_default(), resource)
    }

    /// Label that names objects of a resource; the first of several overrides.
    pub fn label_of(&self, resource: &GroupResource, mapper: &RestMapper) -> Result<String, String> {
        if let Some((label, _)) = self.overrides.iter().find(|(_, own)| own == resource) {
            return Ok(label.clone());
        }
        let unable = |why: &str| format!("unable to convert resource {resource} into label: {why}");
        let Some(template) = &self.template else {
            return Err(unable("no generic resource label form specified for this metric"));
        };
        let known = mapper
            .resolve(&resource.group, &resource.resource)
            .map_err(|why| unable(&format!("unable to singularize resource {resource}: {why}")))?;
        let words =
            GroupResource { group: known.group.replace(['.', '-'], "_"), resource: known.singular.clone() };
        match template.template.label(&words) {
            Ok(label) if label.is_empty() => {
                Err(unable(&format!("empty label produced by label template for {resource}")))
            }
            Ok(label) => Ok(label),
            Err(why) => Err(unable(&why.to_string())),
        }
    }
}

impl LabelTemplate {
    fn new(text: &str) -> Result<Self, String> {
        let template = Template::parse("resource-label", text)
            .map_err(|why| format!("unable to parse label template {}: {why}", quote(text)))?;
        let unable =
            |why: String| format!("unable to generate label format from template {}: {why}", quote(text));
        let unmatched = |why: String| unable(format!("unable to convert label template to matcher: {why}"));
        let any =
            GroupResource { group: "(?P<group>.+?)".to_owned(), resource: "(?P<resource>.+?)".to_owned() };
        let expression = template.label(&any).map_err(|why| unmatched(why.to_string()))?;
        if expression.is_empty() {
            return Err(unmatched("empty template".to_owned()));
        }
        let pattern = GoRegex::new(&format!("^{expression}$")).map_err(unmatched)?;
        if !pattern.has_group("resource") {
            return Err(unable("must include at least `{{.Resource}}` in the label template".to_owned()));
        }
        Ok(Self { template, pattern })
    }
}
