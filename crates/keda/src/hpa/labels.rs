//! Labels of generated objects.

use api::keda::KedaProfile;
use api::map::StringMap;

/// Maximum length of a label value.
const MAX_LABEL_BYTES: usize = 63;

/// The standard labels of a generated object.
pub(crate) fn own(name: &str, part_of: &str, profile: KedaProfile) -> StringMap {
    let labels = [
        ("app.kubernetes.io/name", cut(name)),
        ("app.kubernetes.io/version", profile.behavior().release),
        ("app.kubernetes.io/part-of", part_of),
        ("app.kubernetes.io/managed-by", "keda-operator"),
    ];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Labels of the owner without the excluded ones, a list separated by commas without trimming.
pub(crate) fn others(
    labels: &StringMap,
    excluded: Option<&String>,
) -> impl Iterator<Item = (String, String)> {
    let excluded: Vec<&str> = excluded.map(|list| list.split(',').collect()).unwrap_or_default();
    labels
        .iter()
        .filter(move |(key, _)| !excluded.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
}

/// A name cut to the length of a label value, which must end in a letter or digit. A shorter name is left as it is.
fn cut(name: &str) -> &str {
    if name.len() <= MAX_LABEL_BYTES {
        return name;
    }
    let end = name.floor_char_boundary(MAX_LABEL_BYTES);
    let head = name.get(..end).unwrap_or(name);
    head.trim_end_matches(|last: char| !last.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_names_are_cut() {
        let of = |length: usize, end: &str| format!("{}{end}", "a".repeat(length));
        for (name, expected) in [
            ("queue-".to_owned(), "queue-".to_owned()),
            (of(62, "-"), of(62, "-")),
            (of(60, "..--b"), of(60, "")),
            (of(63, "b"), of(63, "")),
        ] {
            assert_eq!(cut(&name), expected, "{name}");
        }
    }
}
