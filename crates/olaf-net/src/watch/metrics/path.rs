//! Paths into a status document, which bind labels on their way.
//!
//! | step | matches |
//! |---|---|
//! | `name` | the field of that name |
//! | `name:label=value` | the same, and adds this label |
//! | `{label}` | every field; its name becomes the label |
//! | `{label=a\|b}` | the fields a and b |
//! | `{label!a\|b}` | every field but a and b |
//! | `name[x,y]` | every element of the list; its fields x and y become labels |

use super::table;
use serde_json::Value;

/// A parsed path.
#[derive(Debug)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug)]
enum Step {
    Field { name: &'static str, label: Option<(&'static str, &'static str)> },
    Each { label: &'static str, names: Names },
    Elements { name: &'static str, labels: Vec<&'static str> },
}

#[derive(Debug)]
enum Names {
    All,
    Only(Vec<&'static str>),
    AllBut(Vec<&'static str>),
}

/// What a path leads to.
pub(super) struct Found<'a> {
    pub(super) value: &'a Value,
    pub(super) labels: Vec<(String, String)>,
}

impl Path {
    pub(super) fn parse(text: &'static str) -> Self {
        Self(text.split('.').filter(|step| !step.is_empty()).map(Step::parse).collect())
    }

    /// The name of the field that it leads to, if the path says it.
    pub(super) fn last(&self) -> &'static str {
        match self.0.last() {
            Some(Step::Field { name, .. } | Step::Elements { name, .. }) => name,
            _ => "",
        }
    }

    /// Hands everything over that it leads to; of each list at most the first `most` elements.
    pub(super) fn find<'a>(
        &self,
        document: &'a Value,
        most: usize,
        take: &mut impl FnMut(Found<'a>),
    ) {
        follow(&self.0, document, &mut Vec::new(), most, take);
    }

    /// Returns true if it leads to exactly that field.
    pub(super) fn is(&self, leaf: &[String]) -> bool {
        self.0.len() == leaf.len() && self.begins(leaf)
    }

    /// Returns true if it leads to that field or to a table that holds it.
    pub(super) fn begins(&self, leaf: &[String]) -> bool {
        self.0.len() <= leaf.len() && self.0.iter().zip(leaf).all(|(step, name)| step.takes(name))
    }
}

impl Step {
    fn parse(text: &'static str) -> Self {
        if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let list = |names: &'static str| names.split('|').collect();
            let (label, names) = if let Some((label, names)) = inner.split_once('=') {
                (label, Names::Only(list(names)))
            } else if let Some((label, names)) = inner.split_once('!') {
                (label, Names::AllBut(list(names)))
            } else {
                (inner, Names::All)
            };
            return Self::Each { label, names };
        }
        if let Some((name, labels)) = text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            let labels = labels.split(',').filter(|label| !label.is_empty()).collect();
            return Self::Elements { name, labels };
        }
        match text.split_once(':') {
            Some((name, label)) => Self::Field { name, label: label.split_once('=') },
            None => Self::Field { name: text, label: None },
        }
    }

    fn takes(&self, field: &str) -> bool {
        match self {
            Self::Field { name, .. } => *name == field,
            Self::Elements { name, .. } => field.strip_suffix("[]") == Some(name),
            Self::Each { names, .. } => names.has(field),
        }
    }
}

impl Names {
    fn has(&self, field: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(&field),
            Self::AllBut(names) => !names.contains(&field),
        }
    }
}

fn follow<'a>(
    steps: &[Step],
    at: &'a Value,
    labels: &mut Vec<(String, String)>,
    most: usize,
    take: &mut impl FnMut(Found<'a>),
) {
    let Some((step, rest)) = steps.split_first() else {
        take(Found { value: at, labels: labels.clone() });
        return;
    };
    let known = labels.len();
    match step {
        Step::Field { name, label } => {
            let Some(inner) = at.get(name) else { return };
            if let Some((label, value)) = label {
                labels.push(((*label).to_owned(), (*value).to_owned()));
            }
            follow(rest, inner, labels, most, take);
        }
        Step::Each { label, names } => {
            for (name, inner) in at.as_object().into_iter().flatten() {
                if names.has(name) {
                    let value = table::value(label, name).to_owned();
                    labels.push(((*label).to_owned(), value));
                    follow(rest, inner, labels, most, take);
                    labels.truncate(known);
                }
            }
        }
        Step::Elements { name, labels: fields } => {
            let list = at.get(name).and_then(Value::as_array);
            for inner in list.into_iter().flatten().take(most) {
                // Only jobs on several cores name theirs.
                for field in fields.iter().filter(|field| !inner[**field].is_null()) {
                    labels.push((table::label(field).to_owned(), super::plain(&inner[field])));
                }
                follow(rest, inner, labels, most, take);
                labels.truncate(known);
            }
        }
    }
    labels.truncate(known);
}

/// Hands over where each plain value of a document is. A list is a step `name[]`; an empty table or
/// list has nothing in it.
pub(super) fn leaves(document: &Value, take: &mut impl FnMut(&[String])) {
    descend(document, &mut Vec::new(), take);
}

fn descend(at: &Value, path: &mut Vec<String>, take: &mut impl FnMut(&[String])) {
    match at {
        Value::Object(fields) => {
            for (name, inner) in fields {
                path.push(name.clone());
                descend(inner, path, take);
                path.pop();
            }
        }
        Value::Array(elements) => {
            let Some(name) = path.pop() else { return };
            path.push(format!("{name}[]"));
            for inner in elements {
                descend(inner, path, take);
            }
            path.pop();
            path.push(name);
        }
        _ => take(path),
    }
}
