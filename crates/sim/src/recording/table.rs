//! A table of values over time with a bounded number of rows: a full table merges pairs of rows.

use serde::Serialize;

use crate::time::Millis;

/// Values over time, one column per series. Gaps are NaN (`null` in JSON).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    /// Seconds from the start of the scenario, one per row: the end of the time that the row covers.
    pub seconds: Vec<f64>,
    /// The series.
    pub columns: Vec<Column>,
    /// Number of recorded rows per row.
    pub stride: u32,
    #[serde(skip)]
    max_rows: usize,
    #[serde(skip)]
    waiting: u32,
    #[serde(skip)]
    last: f64,
}

/// One series.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// Name.
    pub name: String,
    /// One value per row.
    pub values: Vec<f64>,
    #[serde(skip)]
    merge: Merge,
    #[serde(skip)]
    open: Open,
}

/// How two rows are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Their mean.
    Mean,
    /// The larger.
    Max,
    /// The later.
    Last,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    value: f64,
    count: u32,
}

impl Table {
    /// An empty table with these columns and fewer than `max_rows` rows (an even number, at least two).
    pub fn new(columns: impl IntoIterator<Item = (String, Merge)>, max_rows: usize) -> Self {
        let column = |(name, merge)| Column { name, values: Vec::new(), merge, open: Open::default() };
        Self {
            seconds: Vec::new(),
            columns: columns.into_iter().map(column).collect(),
            stride: 1,
            max_rows: (max_rows / 2).max(1) * 2,
            waiting: 0,
            last: 0.0,
        }
    }

    /// Adds a row with a number per column.
    pub fn push(&mut self, at: Millis, row: impl IntoIterator<Item = f64>) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.open.add(column.merge, value);
        }
        self.last = at.as_secs_f64();
        self.waiting += 1;
        if self.waiting >= self.stride {
            self.flush();
        }
    }

    /// Completes the last row.
    pub fn flush(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.waiting = 0;
        self.seconds.push(self.last);
        for column in &mut self.columns {
            let value = std::mem::take(&mut column.open).value(column.merge);
            column.values.push(value);
        }
        if self.seconds.len() >= self.max_rows {
            self.halve();
        }
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }

    fn halve(&mut self) {
        self.stride = self.stride.saturating_mul(2);
        let later = |pair: &[f64]| pair.last().copied().unwrap_or_default();
        self.seconds = self.seconds.chunks(2).map(later).collect();
        for column in &mut self.columns {
            let merge = column.merge;
            let merged = column.values.chunks(2).map(|pair| {
                let mut open = Open::default();
                for value in pair {
                    open.add(merge, *value);
                }
                open.value(merge)
            });
            column.values = merged.collect();
        }
    }
}

impl Open {
    fn add(&mut self, merge: Merge, value: f64) {
        if value.is_nan() {
            return;
        }
        self.value = match merge {
            _ if self.count == 0 => value,
            Merge::Mean => self.value + value,
            Merge::Max => self.value.max(value),
            Merge::Last => value,
        };
        self.count += 1;
    }

    fn value(self, merge: Merge) -> f64 {
        match merge {
            _ if self.count == 0 => f64::NAN,
            Merge::Mean => self.value / f64::from(self.count),
            Merge::Max | Merge::Last => self.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_merges_pairs_of_rows() {
        let columns = [("mean", Merge::Mean), ("max", Merge::Max), ("last", Merge::Last)];
        let mut table = Table::new(columns.map(|(name, merge)| (name.to_owned(), merge)), 4);
        for second in 1..=4 {
            let value = second as f64;
            table.push(Millis::from_secs(second), [value, -value, value]);
        }
        assert_eq!(table.seconds, [2.0, 4.0]);
        for second in 5..=9 {
            let value = if second == 6 { f64::NAN } else { second as f64 };
            table.push(Millis::from_secs(second), [value, -value, value]);
        }
        table.flush();
        assert_eq!(table.stride, 4);
        assert_eq!(table.seconds, [4.0, 8.0, 9.0]);
        assert_eq!(table.column("mean").unwrap()[0], 2.5);
        assert_eq!(table.column("max").unwrap(), [-1.0, -5.0, -9.0]);
        assert_eq!(table.column("last").unwrap(), [4.0, 8.0, 9.0]);
    }

    #[test]
    fn table_stays_within_its_row_limit() {
        let mut table = Table::new([("x".to_owned(), Merge::Mean)], 100);
        (0..10_007).for_each(|second| table.push(Millis::from_secs(second), [3.0]));
        table.flush();
        assert!((50..=100).contains(&table.seconds.len()), "{}", table.seconds.len());
        assert!(table.column("x").unwrap().iter().all(|v| *v == 3.0));
        assert_eq!(table.seconds.last(), Some(&10_006.0));
    }
}
