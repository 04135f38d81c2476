//! A line of comment in Rust or SQL ends within 100 columns.
//!
//! rustfmt leaves comments alone, so they grow unnoticed. Lines that cannot be wrapped pass: rows
//! of a table, and lines with an address.

use super::Fault;
use crate::reading::layers::Layers;
use crate::reading::{rust, sql};
use crate::tree::{File, Tree};

/// Takes a text apart into code, comments and strings.
type Read = fn(&str) -> Layers;

const WIDEST: usize = 100;
/// Written by a test from the catalog of PostgreSQL.
const GENERATED: &str = "sql/schema.sql";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let rust = tree.with_extension("rs").map(|file| (file, rust::layers as Read));
    let sql = tree.with_extension("sql").map(|file| (file, sql::layers as Read));
    let written = rust.chain(sql).filter(|(file, _)| !file.path.ends_with(GENERATED));
    written.flat_map(|(file, read)| wide_lines(file, read).into_iter().map(|line| too_wide(file, line))).collect()
}

fn too_wide(file: &File, line: usize) -> Fault {
    let sentence = format!("a comment ends beyond column {WIDEST}, where half a screen cuts it off; wrap it");
    Fault::new(&*file.path, line, sentence)
}

/// The lines of this file that hold nothing but a comment, and too much of it.
fn wide_lines(file: &File, read: Read) -> Vec<usize> {
    let long = |line: &str| line.trim_end().chars().count() > WIDEST;
    if !file.text.lines().any(long) {
        return Vec::new(); // spares most files the reading
    }
    let layers = read(&file.text);
    let numbered = layers.comments.lines().enumerate().zip(file.text.lines());
    let wide = numbered.filter(|((_, comment), line)| {
        let only_comment = comment.trim() == line.trim();
        only_comment && long(line) && can_be_wrapped(comment)
    });
    wide.map(|((n, _), _)| n + 1).collect()
}

fn can_be_wrapped(comment: &str) -> bool {
    let words = comment.trim_start_matches([' ', '/', '!', '-', '*']);
    !words.starts_with('|') && !words.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    fn comment(mark: &str, columns: usize) -> String {
        format!("{mark} {}\n", "x".repeat(columns - mark.len() - 1))
    }

    #[test]
    fn a_comment_of_a_hundred_columns_passes() {
        for (path, mark) in [("a.rs", "//"), ("a.rs", "///"), ("a.rs", "    //!"), ("a.sql", "--")] {
            assert_eq!(faults(check, &[(path, &comment(mark, 100))]), [""; 0], "{mark}");
        }
    }

    #[test]
    fn a_wider_comment_is_a_fault() {
        for (path, mark) in [("a.rs", "//"), ("a.rs", "///"), ("a.rs", "    //!"), ("a.sql", "--")] {
            let text = format!("\n{}", comment(mark, 101));
            assert_one_fault(check, &[(path, &text)], &format!("{path}:2"), "beyond column 100");
        }
    }

    #[test]
    fn columns_are_counted_in_characters() {
        assert_eq!(faults(check, &[("a.rs", &format!("// {}\n", "é".repeat(97)))]), [""; 0]);
    }

    #[test]
    fn code_and_strings_may_be_wider() {
        let text = format!("fn f() {{ g(\"// {}\") }} // x\n", "x".repeat(100));

        assert_eq!(faults(check, &[("a.rs", &text)]), [""; 0]);
    }

    #[test]
    fn rows_of_tables_and_addresses_cannot_be_wrapped() {
        let (row, address) = (format!("/// | {} |\n", "x".repeat(100)), format!("// https://{}\n", "x".repeat(100)));

        assert_eq!(faults(check, &[("a.rs", &row), ("b.rs", &address)]), [""; 0]);
    }
}
