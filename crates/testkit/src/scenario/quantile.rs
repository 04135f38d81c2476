//! One value that stands for many.

/// The value below which a share `q` of all lies.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a list that fits in memory"
    )]
    let at = (q * (sorted.len().saturating_sub(1)) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_members_of_the_list() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];

        assert!((quantile(&values, 0.5) - 3.0).abs() < f64::EPSILON);
        assert!((quantile(&values, 1.0) - 5.0).abs() < f64::EPSILON);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
