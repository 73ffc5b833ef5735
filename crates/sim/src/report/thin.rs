//! Reduces series to the rows that can be drawn and the digits that can be seen.

use super::page::{Load, Series};

/// Reduces series with more rows than a limit to their extreme values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thin {
    pub(super) rows: usize,
}

impl Thin {
    pub(super) fn series(self, series: &Series) -> Series {
        let rows: Vec<(f64, Option<f64>)> =
            series.rows().map(|(at, value)| (at, value.filter(|v| v.is_finite()).map(rounded))).collect();
        // A value holds until the next row, so equal consecutive rows are dropped.
        let mut kept: Vec<(f64, Option<f64>)> = Vec::new();
        for row in rows {
            if kept.last().is_none_or(|last| last.1 != row.1) {
                kept.push(row);
            }
        }
        let values: Vec<Option<f64>> = kept.iter().map(|row| row.1).collect();
        let keep = self.extremes(kept.len(), &[&values]);
        kept.into_iter().zip(keep).filter_map(|(row, keep)| keep.then_some(row)).collect()
    }

    pub(super) fn load(self, load: &Load) -> Load {
        let columns = [&load.offered, &load.served, &load.unserved, &load.backlog];
        let optional: Vec<Vec<Option<f64>>> =
            columns.iter().map(|c| c.iter().copied().map(Some).collect()).collect();
        let keep = self.extremes(load.at.len(), &optional.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let pick = |column: &[f64]| {
            column.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(v, _)| rounded(*v)).collect()
        };
        Load {
            at: load.at.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(at, _)| *at).collect(),
            offered: pick(&load.offered),
            served: pick(&load.served),
            unserved: pick(&load.unserved),
            backlog: pick(&load.backlog),
        }
    }

    /// Indexes of the rows to draw: all, or for each section its first and last row, the extremes of every column, and the
    /// edges of gaps.
    fn extremes(self, rows: usize, columns: &[&[Option<f64>]]) -> Vec<bool> {
        if rows <= self.rows {
            return vec![true; rows];
        }
        let mut keep = vec![false; rows];
        let per_stretch = 2 + 2 * columns.len();
        let stretch = (rows * per_stretch).div_ceil(self.rows);
        let mut mark = |row: usize| {
            if let Some(keep) = keep.get_mut(row) {
                *keep = true;
            }
        };
        for first in (0..rows).step_by(stretch) {
            let last = (first + stretch).min(rows) - 1;
            mark(first);
            mark(last);
            for column in columns {
                let known = (first..=last).filter_map(|row| Some((row, column.get(row).copied().flatten()?)));
                let low = known.clone().reduce(|low, next| if next.1 < low.1 { next } else { low });
                let high = known.reduce(|high, next| if next.1 > high.1 { next } else { high });
                low.iter().chain(&high).for_each(|(row, _)| mark(*row));
            }
        }
        for column in columns {
            for (row, pair) in column.windows(2).enumerate() {
                if let [a, b] = pair
                    && a.is_none() != b.is_none()
                {
                    mark(row);
                    mark(row + 1);
                }
            }
        }
        keep
    }
}

/// Six significant digits. Decimal text rounds the same everywhere; logarithms do not.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().ok().filter(|rounded: &f64| rounded.is_finite()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_keep_extremes_and_gaps() {
        let value = |row: usize| match row {
            50_000 => Some(99.0),
            70_000..70_010 => None,
            _ => Some((row % 7) as f64),
        };
        let series: Series = (0..100_000).map(|row| (row as f64, value(row))).collect();
        let thinned = Thin { rows: 4000 }.series(&series);
        assert!(thinned.at.len() <= 4100, "{}", thinned.at.len());
        assert!(thinned.rows().any(|row| row == (50_000.0, Some(99.0))));
        assert!(thinned.rows().any(|row| row == (70_000.0, None)));
        assert!(thinned.rows().any(|row| row.0 == 70_010.0 && row.1.is_some()));
    }

    #[test]
    fn numbers_keep_six_significant_digits() {
        for (value, shown) in
            [(0.1 + 0.2, 0.3), (123_456.78, 123_457.0), (-1e-9, -1e-9), (f64::NAN, 0.0), (1e300, 1e300)]
        {
            assert_eq!(rounded(value), shown);
        }
    }
}
