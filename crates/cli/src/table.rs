//! Rows for people.

/// Columns under their names, each as wide as its widest cell, the last as long as it is.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const COLUMNS: usize>(names: [&str; COLUMNS]) -> Self {
        Self { rows: vec![names.map(ToOwned::to_owned).to_vec()] }
    }

    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| printable(&cell)).to_vec());
    }

    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |cell: &String| cell.chars().count();
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(wide).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        self.rows.iter().map(line).collect()
    }
}

/// A name that others chose, without newlines and control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|letter| if letter.is_control() { letter.escape_default().collect() } else { vec![letter] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_names_and_control_characters_are_escaped() {
        let mut table = Table::new(["QUEUE", "WAIT"]);
        table.row(["ü".to_owned(), "10".to_owned()]);
        table.row(["a\u{1b}[2J\n".to_owned(), String::new()]);

        assert_eq!(table.text(), "QUEUE         WAIT\nü             10\na\\u{1b}[2J\\n\n");
    }
}
