//! One page of the exported metrics of several roles in a process.

use std::collections::HashMap;

/// Families about the process as a whole, which every role exports.
const PROCESS_FAMILIES: [&str; 2] = ["process_", "plimsoll_build_info"];

/// A family of the joined page.
#[derive(Default)]
struct JoinedFamily<'a> {
    /// The role that exports it first; its comments are used.
    role: &'a str,
    comments: String,
    series: String,
}

/// Joins pages in the text format of Prometheus. Each series gets the label `role`, because roles export families of the same
/// name; those about the process are written once, without it.
pub fn join_roles(pages: &[(&str, String)]) -> String {
    let mut families: Vec<JoinedFamily<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for &(role, ref page) in pages {
        let mut name = "";
        for line in page.lines().filter(|line| !line.is_empty()) {
            let comment = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            if let Some(comment) = comment {
                name = comment.split(' ').next().unwrap_or_default();
            }
            let at = *by_name.entry(name).or_insert_with(|| {
                families.push(JoinedFamily { role, ..JoinedFamily::default() });
                families.len() - 1
            });
            let Some(family) = families.get_mut(at) else { continue };
            let is_first = family.role == role;
            if line.starts_with('#') {
                if is_first {
                    family.comments.push_str(line);
                    family.comments.push('\n');
                }
            } else if !PROCESS_FAMILIES.iter().any(|prefix| name.starts_with(prefix)) {
                push_with_role(&mut family.series, line, role);
            } else if is_first {
                family.series.push_str(line);
                family.series.push('\n');
            }
        }
    }
    let mut text = String::new();
    for family in families {
        text.push_str(&family.comments);
        text.push_str(&family.series);
    }
    text
}

/// Appends a series with the label `role`.
fn push_with_role(text: &mut String, line: &str, role: &str) {
    let end = line.find(['{', ' ']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    text.push_str(name);
    text.push_str("{role=\"");
    text.push_str(role);
    text.push('"');
    match rest.strip_prefix('{') {
        Some(labels) => {
            text.push(',');
            text.push_str(labels);
        }
        None => {
            text.push('}');
            text.push_str(rest);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_several_roles_are_announced_once() {
        let one = "# HELP a A.\n# TYPE a gauge\na 1\n# HELP plimsoll_build_info V.\n# TYPE plimsoll_build_info gauge\n\
                   plimsoll_build_info{version=\"1\"} 1\n# HELP process_x X.\n# TYPE process_x gauge\nprocess_x 5\n";
        let other = "# HELP plimsoll_build_info V.\n# TYPE plimsoll_build_info gauge\n\
                     plimsoll_build_info{version=\"1\"} 1\n# HELP process_x X.\n# TYPE process_x gauge\nprocess_x 6\n# HELP a A.\n# TYPE a gauge\n\
                     a{x=\"{ }\"} 2\n# HELP b B.\n# TYPE b counter\nb 3\n";
        let joined = join_roles(&[("one", one.to_owned()), ("other", other.to_owned())]);
        assert_eq!(
            joined,
            "# HELP a A.\n# TYPE a gauge\na{role=\"one\"} 1\na{role=\"other\",x=\"{ }\"} 2\n\
             # HELP plimsoll_build_info V.\n# TYPE plimsoll_build_info gauge\nplimsoll_build_info{version=\"1\"} 1\n\
             # HELP process_x X.\n# TYPE process_x gauge\nprocess_x 5\n\
             # HELP b B.\n# TYPE b counter\nb{role=\"other\"} 3\n"
        );
    }
}
