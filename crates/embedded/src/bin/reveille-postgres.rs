//! Reveille.
fn main() {}
