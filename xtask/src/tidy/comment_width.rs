//! A line of comment in Rust or SQL ends within 100 columns.
//!
//! rustfmt leaves comments alone, so they grow without anybody noticing. Files that were wide
//! before this check are in `xtask/comment-width.txt`, each with the number of its wide lines,
//! which only comes down. Lines that cannot be wrapped pass: rows of a table, and lines with an
//! address.

use super::Fault;
use super::ratchet::{self, Entry};
use crate::reading::{rust, sql};
use crate::tree::{File, Tree};

const LIST: &str = "xtask/comment-width.txt";
const WIDEST: usize = 100;
const REMARK: &str = "\
# Files with comment lines over 100 columns, each with the number of such lines: `path lines`.
# Numbers only come down. `cargo xtask tidy --wide-comments > xtask/comment-width.txt` writes this list.
";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let (entries, mut faults) = ratchet::read(tree, LIST);
    let entry = |path: &str| entries.iter().find(|entry| entry.path == path);
    let files = sources(tree).map(|file| (file, wide_lines(file)));
    faults.extend(files.flat_map(|(file, wide)| judge(file, &wide, entry(&file.path))));
    let gone = entries.iter().filter(|entry| tree.file(entry.path).is_none());
    faults.extend(gone.map(|Entry { line, path, .. }| {
        Fault::new(LIST, *line, format!("lists {path}, which does not exist; remove the entry"))
    }));
    faults
}

/// The list as it should be for this tree.
pub(super) fn list(tree: &Tree) -> String {
    let counted = sources(tree).map(|file| (&file.path, wide_lines(file).len())).filter(|(_, lines)| *lines > 0);
    let entries: Vec<String> = counted.map(|(path, lines)| format!("{path} {lines}\n")).collect();
    REMARK.to_owned() + &entries.concat()
}

fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    ["rs", "sql"].into_iter().flat_map(|extension| tree.with_extension(extension))
}

fn judge(file: &File, wide: &[usize], entry: Option<&Entry<'_>>) -> Vec<Fault> {
    let Some(&Entry { line, path, ceiling }) = entry else {
        return wide.iter().map(|&line| Fault::new(&*file.path, line, too_wide())).collect();
    };
    let lines = wide.len();
    if lines > ceiling {
        let sentence = format!("has {lines} such lines, {ceiling} before; {}", too_wide());
        return vec![Fault::new(path, wide[0], sentence)];
    }
    let lowered = match lines {
        0 => format!("lists {path}, which has no wide comment any more; remove the entry"),
        _ => format!("allows {path} {ceiling} wide lines of comment, but it has {lines}; write {lines}, to keep that"),
    };
    if lines == ceiling { Vec::new() } else { vec![Fault::new(LIST, line, lowered)] }
}

fn too_wide() -> String {
    format!("a comment ends beyond column {WIDEST}, where half a screen cuts it off; wrap it")
}

/// The lines of this file that hold nothing but a comment, and too much of it.
fn wide_lines(file: &File) -> Vec<usize> {
    let layers = if file.extension() == "rs" { rust::layers(&file.text) } else { sql::layers(&file.text) };
    let numbered = layers.comments.lines().enumerate().zip(file.text.lines());
    let wide = numbered.filter(|((_, comment), line)| {
        let only_comment = comment.trim() == line.trim();
        only_comment && line.trim_end().chars().count() > WIDEST && can_be_wrapped(comment)
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

    #[test]
    fn a_listed_file_may_keep_its_wide_comments_and_get_no_more() {
        let (one, two) = (comment("//", 120), comment("//", 120).repeat(2));

        assert_eq!(faults(check, &[(LIST, "a.rs 1\n"), ("a.rs", &one)]), [""; 0]);
        assert_one_fault(check, &[(LIST, "a.rs 1\n"), ("a.rs", &two)], "a.rs:1", "has 2 such lines, 1 before");
    }

    #[test]
    fn what_was_won_is_written_down() {
        let one = comment("//", 120);

        assert_one_fault(check, &[(LIST, "a.rs 2\n"), ("a.rs", &one)], "xtask/comment-width.txt:1", "write 1");
        assert_one_fault(check, &[(LIST, "a.rs 2\n"), ("a.rs", "")], "xtask/comment-width.txt:1", "remove the entry");
        assert_one_fault(check, &[(LIST, "a.rs 2\n")], "xtask/comment-width.txt:1", "does not exist");
    }

    #[test]
    fn the_list_that_is_printed_passes() {
        let wide = comment("//", 120);
        let files = [("a.rs", &*wide), ("b.sql", "-- narrow\n"), ("c.sql", &*comment("--", 101))];

        let printed = list(&Tree::of(&files));

        assert!(printed.ends_with("\na.rs 1\nc.sql 1\n"), "{printed}");
        assert_eq!(faults(check, &[files.as_slice(), &[(LIST, &printed)]].concat()), [""; 0]);
    }
}
