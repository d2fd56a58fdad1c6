//! Places of a body, as JSON pointers.

use serde_json::Value;

/// The keys of a JSON pointer; `*` stands for any key or index.
pub(super) type Pointer = Vec<String>;

/// Reads a JSON pointer (RFC 6901).
pub(super) fn pointer(text: &str) -> Option<Pointer> {
    let keys = text.strip_prefix('/')?.split('/');
    Some(keys.map(|key| key.replace("~1", "/").replace("~0", "~")).collect())
}

/// Does something to each value that a pointer names.
pub(super) fn at_each(value: &mut Value, pointer: &[String], act: &mut dyn FnMut(&mut Value)) {
    let Some((key, rest)) = pointer.split_first() else { return act(value) };
    let any = key == "*";
    match value {
        Value::Object(map) => {
            map.iter_mut().filter(|(name, _)| any || *name == key).for_each(|(_, value)| at_each(value, rest, act));
        }
        Value::Array(list) => {
            let named = list.iter_mut().enumerate().filter(|(index, _)| any || key.parse() == Ok(*index));
            named.for_each(|(_, value)| at_each(value, rest, act));
        }
        _ => {}
    }
}

/// Removes what a pointer names; `*` stands for any key or index.
pub(super) fn remove(value: &mut Value, pointer: &[String]) {
    let Some((key, rest)) = pointer.split_first() else { return };
    let any = key == "*";
    match value {
        Value::Object(map) if rest.is_empty() => map.retain(|name, _| !(any || name == key)),
        Value::Object(map) => {
            map.iter_mut().filter(|(name, _)| any || *name == key).for_each(|(_, value)| remove(value, rest));
        }
        Value::Array(list) => {
            let named = |index: usize| any || key.parse() == Ok(index);
            for (_, value) in list.iter_mut().enumerate().filter(|(index, _)| named(*index)) {
                if rest.is_empty() {
                    *value = Value::Null;
                } else {
                    remove(value, rest);
                }
            }
        }
        _ => {}
    }
}
