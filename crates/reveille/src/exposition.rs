//! Figures as a page that Prometheus reads (its text format 0.0.4).
//!
//! Owns the page and its order. The counting is done where things happen, in plain atomics; a
//! request for the page reads them, and costs nothing in between. The spelling is `prometheus`'s.

use std::time::Duration;

use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// The media type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page that is being filled.
///
/// A family whose name ends with `_total` has counters, as Prometheus wants; any other has gauges.
/// A family without series is left out.
#[derive(Debug, Default)]
pub struct Exposition(Vec<MetricFamily>);

impl Exposition {
    /// One number without labels.
    pub fn one(&mut self, name: &str, help: &str, value: u64) {
        self.many(name, help, [], [([], value)]);
    }

    /// One length of time, in seconds.
    pub fn seconds(&mut self, name: &str, help: &str, value: Duration) {
        self.family(name, help, vec![metric(name, Vec::new(), value.as_secs_f64())]);
    }

    /// A number for each value of one label.
    pub fn by<'v>(&mut self, name: &str, help: &str, label: &str, series: impl IntoIterator<Item = (&'v str, u64)>) {
        self.many(name, help, [label], series.into_iter().map(|(value, number)| ([value], number)));
    }

    /// A number for each combination of the labels' values.
    #[expect(clippy::cast_precision_loss, reason = "Prometheus keeps every number as an f64")]
    pub fn many<'v, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        series: impl IntoIterator<Item = ([&'v str; N], u64)>,
    ) {
        let pairs = |values: [&str; N]| labels.iter().zip(values).map(|(label, value)| pair(label, value)).collect();
        let metrics = series.into_iter().map(|(values, value)| metric(name, pairs(values), value as f64));
        self.family(name, help, metrics.collect());
    }

    /// Families that were read elsewhere, as a histogram is.
    pub fn families(&mut self, families: impl IntoIterator<Item = MetricFamily>) {
        self.0.extend(families.into_iter().filter(|family| !family.get_metric().is_empty()));
    }

    /// The page.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(8192);
        // Only families without a name or without series are refused, and there are none.
        let _ = TextEncoder::new().encode_utf8(&self.0, &mut text);
        text
    }

    fn family(&mut self, name: &str, help: &str, metrics: Vec<Metric>) {
        if metrics.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(if is_counter(name) { MetricType::COUNTER } else { MetricType::GAUGE });
        family.set_metric(metrics);
        self.0.push(family);
    }
}

fn is_counter(name: &str) -> bool {
    name.ends_with("_total")
}

fn metric(name: &str, labels: Vec<LabelPair>, value: f64) -> Metric {
    let mut metric = Metric::from_label(labels);
    if is_counter(name) {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

fn pair(label: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(label.to_owned());
    pair.set_value(value.to_owned());
    pair
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector as _;
    use prometheus::{Histogram, HistogramOpts};

    use super::*;

    #[test]
    fn a_page_has_names_types_help_and_labels_as_they_were_given() {
        let mut page = Exposition::default();
        page.one("a_total", "All of them.", 3);
        page.many("b", "", ["kind", "of"], [(["x\"y\n\\", "z"], 1), (["", "z"], 2)]);
        page.by("none", "Nothing.", "kind", []);
        page.seconds("c_seconds", "Long.", Duration::from_millis(1500));
        let bounds = HistogramOpts::new("d_seconds", "How long.").buckets(vec![0.00025, 1.0]);
        let took = Histogram::with_opts(bounds).unwrap();
        took.observe(0.5);
        took.observe(2.0);
        page.families(took.collect());

        let expected = [
            "# HELP a_total All of them.",
            "# TYPE a_total counter",
            "a_total 3",
            "# TYPE b gauge",
            "b{kind=\"x\\\"y\\n\\\\\",of=\"z\"} 1",
            "b{kind=\"\",of=\"z\"} 2",
            "# HELP c_seconds Long.",
            "# TYPE c_seconds gauge",
            "c_seconds 1.5",
            "# HELP d_seconds How long.",
            "# TYPE d_seconds histogram",
            "d_seconds_bucket{le=\"0.00025\"} 0",
            "d_seconds_bucket{le=\"1\"} 1",
            "d_seconds_bucket{le=\"+Inf\"} 2",
            "d_seconds_sum 2.5",
            "d_seconds_count 2",
        ];
        assert_eq!(page.text().lines().collect::<Vec<_>>(), expected);
    }
}
