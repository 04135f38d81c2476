//! Reveille.
