//! Decides whether the value of one object in a query result depends on the series of that object only.
//!
//! Then one query for all objects of a namespace gives the same values as a query with their names. It is shorter,
//! and shared by all requests. In doubt, a template is not separable.

/// Aggregations that must keep the label of the object.
const AGGREGATIONS: [&str; 9] =
    ["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile"];

/// Functions and keywords that treat each series by itself.
const PER_SERIES_FUNCTIONS: &str = "\
    abs avg_over_time bool ceil changes clamp clamp_max clamp_min count_over_time delta deriv exp \
    floor histogram_quantile idelta increase irate last_over_time ln log10 log2 max_over_time \
    min_over_time offset predict_linear present_over_time quantile_over_time rate resets round sgn \
    sqrt stddev_over_time stdvar_over_time sum_over_time timestamp";

/// Placeholders for `<<.LabelMatchers>>` and `<<.GroupBy>>`, which occur in no query.
const MATCHERS_MARK: char = '\u{1}';
const GROUP_BY_MARK: char = '\u{2}';

/// Whether the query of this template may select all objects at once.
pub(super) fn is_separable(template: &str) -> bool {
    plain(template).is_some_and(|text| keeps_objects_apart(&text))
}

/// The template with placeholders, if it has simple actions only.
fn plain(template: &str) -> Option<String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("<<") {
        let (action, after) = after.split_once(">>")?;
        text.push_str(before);
        match action.trim() {
            ".Series" => text.push_str("series"),
            ".LabelMatchers" => text.push(MATCHERS_MARK),
            ".GroupBy" => text.push(GROUP_BY_MARK),
            _ => return None,
        }
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

fn keeps_objects_apart(text: &str) -> bool {
    let mut rest = text;
    let (mut aggregations, mut groupings) = (0, 0);
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        rest = match first {
            // Every selector must have the matchers, also one without a name.
            '{' => match selector(rest) {
                Some(rest) => rest,
                None => return false,
            },
            '[' => match after.split_once(']') {
                Some((_, rest)) => rest,
                None => return false,
            },
            '"' | '\'' | '`' | '@' | MATCHERS_MARK | GROUP_BY_MARK | '#' => return false,
            _ if first.is_ascii_alphabetic() || first == '_' || first == ':' => {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let next = after.trim_start();
                if next.starts_with('{') {
                    match selector(next) {
                        Some(rest) => rest,
                        None => return false,
                    }
                } else if word == "by" {
                    let clause = next.strip_prefix('(').and_then(|clause| clause.split_once(')'));
                    match clause {
                        Some((labels, rest)) if labels.contains(GROUP_BY_MARK) => {
                            groupings += 1;
                            rest
                        }
                        _ => return false,
                    }
                } else if AGGREGATIONS.contains(&word) {
                    aggregations += 1;
                    after
                } else if PER_SERIES_FUNCTIONS.split(' ').any(|known| known == word) {
                    after
                } else {
                    return false;
                }
            }
            // A number with its unit, such as in `offset 5m`.
            _ if first.is_ascii_digit() => {
                rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.')
            }
            _ => after,
        };
    }
    aggregations == groupings
}

/// The text after a selector in braces, if it has the matchers.
fn selector(text: &str) -> Option<&str> {
    let mut quote = None;
    let mut restricted = false;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some('"' | '\''), '\\') => {
                characters.next();
            }
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(character),
            (None, MATCHERS_MARK) => restricted = true,
            (None, '}') => return restricted.then(|| text.get(at + 1..)).flatten(),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_separable;

    #[test]
    fn separable_queries() {
        for query in [
            "<<.Series>>{<<.LabelMatchers>>}",
            "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
            "sum by (<< .GroupBy >>) (irate(container_cpu_usage_seconds_total{<<.LabelMatchers>>,container!=\"\"}[4m]))",
            "sum(a{<<.LabelMatchers>>}) by (<<.GroupBy>>) / sum(b{<<.LabelMatchers>>}) by (<<.GroupBy>>) * 100",
            "histogram_quantile(0.9, sum(rate(<<.Series>>{<<.LabelMatchers>>}[5m])) by (le, <<.GroupBy>>))",
            "max_over_time(<<.Series>>{<<.LabelMatchers>>, x=~\"}\"}[5m] offset 5m) > bool 1e3",
        ] {
            assert!(is_separable(query), "{query}");
        }
    }

    #[test]
    fn inseparable_queries() {
        for query in [
            "sum(<<.Series>>{<<.LabelMatchers>>})",
            "sum(<<.Series>>{<<.LabelMatchers>>}) without (x)",
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (job)",
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>) / scalar(sum(total))",
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>) / total",
            "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>) + other{x=\"y\"}",
            "topk(3, <<.Series>>{<<.LabelMatchers>>})",
            "avg(sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>))",
            "label_replace(<<.Series>>{<<.LabelMatchers>>}, \"a\", \"b\", \"c\", \"d\")",
            "a{<<.LabelMatchers>>} / on(x) group_left b{<<.LabelMatchers>>}",
            "<<.Series>>{pod=~\"<<index .LabelValuesByName \"pod\">>\"}",
            "<<if .Series>><<.Series>>{<<.LabelMatchers>>}<<end>>",
            "<<.Series>>",
            "{<<.LabelMatchers>>",
            "<<.LabelMatchers",
        ] {
            assert!(!is_separable(query), "{query}");
        }
    }
}
