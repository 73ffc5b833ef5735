//! Finds the most similar name, for "did you mean …?" hints.

/// Maximum number of characters of a compared word; longer words are not misspelt names.
const MAX_WORD_CHARS: usize = 64;

/// The candidate that is most similar to `word`, if any is close enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_WORD_CHARS + 1).flat_map(char::to_lowercase).collect();
    if word.is_empty() || word.len() > MAX_WORD_CHARS {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if other.len() > MAX_WORD_CHARS {
            continue;
        }
        // One error per three letters, or a prefix of the candidate.
        let limit = word.len().max(other.len()).div_ceil(3).min(4);
        let distance = distance(&word, &other);
        let close = distance <= limit && distance < word.len().min(other.len()).max(1);
        let cut = word.len() >= 3 && other.starts_with(&word);
        let distance = if close { distance } else { limit + 1 };
        if (close || cut) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edit distance with insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut left_a = None;
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        let mut left_b = None;
        for (j, &y) in b.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut cost =
                (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            if j > 0 && left_a == Some(y) && left_b == Some(x) {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
            left_b = Some(y);
        }
        left_a = Some(x);
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}
