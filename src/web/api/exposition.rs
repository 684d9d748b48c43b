//! Prometheus' text format: families of samples, each declared before its first.

use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Gauge,
    Counter,
    Histogram,
}

/// A number as the format writes it.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Number {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}

impl From<usize> for Number {
    fn from(n: usize) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Number {
    fn from(n: f64) -> Self {
        Self::Float(n)
    }
}

#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    name: &'static str,
    namespace: Option<String>,
}

impl Exposition {
    /// Labels every sample with the one namespace that is configured.
    pub fn of_namespace(namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Begins a family; the samples that follow are its.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Into<Number>) {
        self.part("", labels, value);
    }

    /// A sample whose name has an ending, as those of a histogram have.
    pub fn part(&mut self, ending: &str, labels: &[(&str, &str)], value: impl Into<Number>) {
        let _ = write!(self.text, "{}{ending}", self.name);
        let namespace = self.namespace.take();
        let own = namespace.as_deref().map(|name| ("namespace", name));
        let mut open = '{';
        for (label, text) in own.iter().chain(labels) {
            self.text.push(open);
            open = ',';
            let _ = write!(self.text, "{label}=\"");
            for c in text.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        if open == ',' {
            self.text.push('}');
        }
        self.namespace = namespace;
        let _ = match value.into() {
            Number::Int(n) => writeln!(self.text, " {n}"),
            Number::Float(n) => writeln!(self.text, " {n}"),
        };
    }

    /// A family of one sample without labels.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Number>) {
        self.family(name, Kind::Gauge, help);
        self.sample(&[], value);
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_any_text() {
        let mut out = Exposition::default();
        out.family("a", Kind::Gauge, "Help.");
        out.sample(&[("queue", "say \"hi\"\\\n")], 1_i64);
        assert_eq!(
            out.into_text(),
            "# HELP a Help.\n# TYPE a gauge\na{queue=\"say \\\"hi\\\"\\\\\\n\"} 1\n"
        );
    }

    #[test]
    fn a_namespace_labels_every_sample() {
        let mut out = Exposition::of_namespace(Some("billing"));
        out.gauge("a", "Help.", 1_i64);
        out.sample(&[("state", "x")], 2_i64);
        assert_eq!(
            out.into_text(),
            "# HELP a Help.\n# TYPE a gauge\na{namespace=\"billing\"} 1\n\
             a{namespace=\"billing\",state=\"x\"} 2\n"
        );
    }
}
