//! No function of our sources takes a tuple: what belongs together has a type with names.
//!
//! Tests may, and so may what a trait demands: its own definition is judged where it is ours. A
//! tuple behind the name of a type is not seen.

use syn::visit::{self, Visit};
use syn::{Attribute, File as Source, FnArg, ItemImpl, ItemMod, Pat, Signature, Type};

use super::Fault;
use crate::tree::{File, Tree};

const SENTENCE: &str = "takes a tuple, whose parts have no names where it is called; take them one by one, or a struct";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.with_extension("rs").filter(|file| is_source(&file.path)).flat_map(judge).collect()
}

fn is_source(path: &str) -> bool {
    let of_product = path.starts_with("crates/") || path.starts_with("xtask/");
    of_product && path.contains("/src/") && !path.ends_with("/tests.rs")
}

fn judge(file: &File) -> Vec<Fault> {
    // What does not parse does not compile either, and the compiler says it better.
    let Ok(source) = syn::parse_str::<Source>(&file.text) else { return Vec::new() };
    let mut functions = Functions::default();
    functions.visit_file(&source);
    functions.lines.into_iter().map(|line| Fault::new(&*file.path, line, SENTENCE)).collect()
}

/// The lines of functions that take a tuple.
#[derive(Default)]
struct Functions {
    lines: Vec<usize>,
}

impl<'s> Visit<'s> for Functions {
    fn visit_item_mod(&mut self, module: &'s ItemMod) {
        if !module.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'s ItemImpl) {
        if block.trait_.is_none() {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_signature(&mut self, signature: &'s Signature) {
        if signature.inputs.iter().any(is_tuple) {
            self.lines.push(signature.ident.span().start().line);
        }
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

fn is_tuple(argument: &FnArg) -> bool {
    let FnArg::Typed(argument) = argument else { return false };
    let mut of = &*argument.ty;
    while let Type::Reference(reference) = of {
        of = &reference.elem;
    }
    matches!(of, Type::Tuple(tuple) if !tuple.elems.is_empty()) || matches!(&*argument.pat, Pat::Tuple(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{assert_one_fault, faults};

    #[test]
    fn a_parameter_that_is_a_tuple_is_a_fault() {
        for parameter in ["(a, b): (u8, u8)", "pair: (u8, u8)", "pair: &mut (u8, u8)", "(a, b): &Pair"] {
            let text = format!("struct A;\nimpl A {{\n    fn f(&self, {parameter}) {{}}\n}}");
            assert_one_fault(check, &[("crates/a/src/lib.rs", &text)], "crates/a/src/lib.rs:3", "takes a tuple");
        }
    }

    #[test]
    fn parameters_with_names_pass() {
        let text = "fn f(a: u8, b: &[(u8, u8)], c: (), d: fn((u8, u8)), Names((e, f)): Names<(u8, u8)>) -> (u8, u8) {}";

        assert_eq!(faults(check, &[("crates/a/src/lib.rs", text)]), [""; 0]);
    }

    #[test]
    fn a_trait_is_judged_where_it_is_defined() {
        let text = "trait A { fn f(pair: (u8, u8)); }\nimpl A for B { fn f(pair: (u8, u8)) {} }";

        assert_one_fault(check, &[("crates/a/src/lib.rs", text)], "crates/a/src/lib.rs:1", "takes a tuple");
    }

    #[test]
    fn tests_may_take_tuples() {
        let text = "fn f(pair: (u8, u8)) {}";
        let inside = format!("#[cfg(test)]\nmod tests {{ {text} }}");

        let files = [("crates/a/tests/it.rs", text), ("crates/a/src/a/tests.rs", text), ("crates/a/src/a.rs", &inside)];
        assert_eq!(faults(check, &files), [""; 0]);
    }
}
