//! Mapping between labels and resources.

use api::gotext::quote;

use super::error::{InverseError, LabelError, MappingError, NoLabel};
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
    pub fn new(mapping: &ResourceMapping, mapper: &RestMapper) -> Result<Self, MappingError> {
        let template = match mapping.template.as_str() {
            "" => None,
            text => Some(LabelTemplate::new(text)?),
        };
        let mut overrides = Vec::with_capacity(mapping.overrides.len());
        for (label, written) in &mapping.overrides {
            let GroupResource { group, resource } = written;
            let found = mapper.resolve(group, resource).map_err(|source| MappingError::Override {
                group: group.clone(),
                resource: resource.clone(),
                source,
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
    pub fn label_of(&self, resource: &GroupResource, mapper: &RestMapper) -> Result<String, Box<LabelError>> {
        if let Some((label, _)) = self.overrides.iter().find(|(_, own)| own == resource) {
            return Ok(label.clone());
        }
        let label = match &self.template {
            Some(template) => template.label_of(resource, mapper),
            None => Err(NoLabel::NoTemplate),
        };
        label.map_err(|reason| Box::new(LabelError { resource: resource.clone(), reason }))
    }
}

impl LabelTemplate {
    fn new(text: &str) -> Result<Self, MappingError> {
        let template = Template::parse("resource-label", text)
            .map_err(|source| MappingError::Template { text: quote(text), source })?;
        let pattern =
            Self::inverse(&template).map_err(|reason| MappingError::Inverse { text: quote(text), reason })?;
        Ok(Self { template, pattern })
    }

    /// The regular expression that matches the labels of a template.
    fn inverse(template: &Template) -> Result<GoRegex, InverseError> {
        let any =
            GroupResource { group: "(?P<group>.+?)".to_owned(), resource: "(?P<resource>.+?)".to_owned() };
        let expression = template.label(&any).map_err(InverseError::Template)?;
        if expression.is_empty() {
            return Err(InverseError::Empty);
        }
        let pattern = GoRegex::new(&format!("^{expression}$")).map_err(InverseError::Regex)?;
        if pattern.has_group("resource") { Ok(pattern) } else { Err(InverseError::NoResource) }
    }

    fn label_of(&self, resource: &GroupResource, mapper: &RestMapper) -> Result<String, NoLabel> {
        let known = mapper
            .resolve(&resource.group, &resource.resource)
            .map_err(|source| NoLabel::Unknown { resource: resource.clone(), source })?;
        let words =
            GroupResource { group: known.group.replace(['.', '-'], "_"), resource: known.singular.clone() };
        match self.template.label(&words) {
            Ok(label) if label.is_empty() => Err(NoLabel::Empty(resource.clone())),
            label => label.map_err(NoLabel::Template),
        }
    }
}
