//! A reader of JSON Schema (2020-12), of as much as `tavern status --schema` prints. An unknown keyword is a fault.

use std::collections::BTreeSet;

use serde_json::Value;

/// Says nothing about a value: notes for people, and narrower numbers and texts, which the types of the records hold.
const NOTES: [&str; 8] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "minimum",
    "maximum",
];

/// Returns the keys of `value` that `schema` describes, or what is wrong with it. `root` has the `$defs`.
pub fn validate(root: &Value, schema: &Value, value: &Value) -> Result<BTreeSet<String>, String> {
    let mut known = BTreeSet::new();
    let Some(keywords) = schema.as_object() else {
        return match schema {
            Value::Bool(true) => Ok(known),
            _ => Err(format!("{value} is not allowed")),
        };
    };
    let below = |schema, value| validate(root, schema, value);
    let items = || value.as_array().into_iter().flatten();
    let first = keywords
        .get("prefixItems")
        .map_or(0, |kept| list(kept).len());
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let at = wanted.as_str().expect("a pointer").trim_start_matches('#');
                known.extend(below(root.pointer(at).expect("it is defined"), value)?);
            }
            "type" => {
                let is_one = |kind: &Value| is_a(value, kind.as_str().expect("a name"));
                let is_right = match wanted {
                    Value::Array(kinds) => kinds.iter().any(is_one),
                    kind => is_one(kind),
                };
                is_right
                    .then_some(())
                    .ok_or(format!("{value} is not of type {wanted}"))?;
            }
            "const" if value != wanted => return Err(format!("{value} is not {wanted}")),
            "enum" if !list(wanted).contains(value) => {
                return Err(format!("{value} is none of {wanted}"));
            }
            "const" | "enum" => {}
            "oneOf" | "anyOf" => {
                let tried = list(wanted).iter().map(|schema| below(schema, value));
                let (right, wrong): (Vec<_>, Vec<_>) = tried.partition(Result::is_ok);
                if right.is_empty() || (keyword == "oneOf" && right.len() > 1) {
                    return Err(format!(
                        "{} of {keyword} allow {value}: {wrong:?}",
                        right.len()
                    ));
                }
                known.extend(right.into_iter().flatten().flatten());
            }
            "required" => {
                let lacking = list(wanted)
                    .iter()
                    .find(|key| value.get(key.as_str().expect("a key")).is_none());
                lacking.map_or(Ok(()), |key| Err(format!("{value} lacks {key}")))?;
            }
            "properties" => {
                for (key, schema) in wanted.as_object().expect("a mapping") {
                    if let Some(value) = value.get(key) {
                        below(schema, value).map_err(|error| format!("{key}: {error}"))?;
                        known.insert(key.clone());
                    }
                }
            }
            "items" => items()
                .skip(first)
                .try_for_each(|item| below(wanted, item).map(drop))?,
            "prefixItems" => items()
                .zip(list(wanted))
                .try_for_each(|(item, schema)| below(schema, item).map(drop))?,
            "minItems" if (items().count() as u64) < wanted.as_u64().expect("a number") => {
                return Err(format!("{value} has fewer than {wanted}"));
            }
            "maxItems" if (items().count() as u64) > wanted.as_u64().expect("a number") => {
                return Err(format!("{value} has more than {wanted}"));
            }
            "minItems" | "maxItems" | "additionalProperties" | "unevaluatedProperties" => {}
            note => assert!(NOTES.contains(&note), "unknown keyword `{note}`"),
        }
    }
    // These look at what the others have left.
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        let Some(wanted) = keywords.get(keyword) else {
            continue;
        };
        for (key, value) in value.as_object().into_iter().flatten() {
            if known.insert(key.clone()) {
                below(wanted, value).map_err(|error| format!("`{key}`: {error}"))?;
            }
        }
    }
    Ok(known)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => panic!("unknown type `{kind}`"),
    }
}
