//! Names of operations and arguments inside of operations that programs hold. Files store them as
//! text, and accept only declared names.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::all;
use crate::declare::Operation;

/// The operation that the user called, in an operation type that serves several.
#[derive(Clone, Copy)]
pub(crate) struct Caller(pub(crate) &'static Operation);

/// The name of an argument in the operation that the user called.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ArgumentName(pub(crate) &'static str);

fn caller(name: &str) -> Option<Caller> {
    all().find(|operation| operation.name == name).map(Caller)
}

fn word(name: &str) -> Option<ArgumentName> {
    let words = all().flat_map(|operation| operation.arguments);
    words.map(|argument| argument.name).find(|word| *word == name).map(ArgumentName)
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for ArgumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Serializes a name as text. Saving a name that is not declared is an error, as it could not be
/// read again.
macro_rules! in_files {
    ($($type:ident, $find:ident, $text:expr;)*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text: &str = $text(self);
                match $find(text) {
                    Some(_) => serializer.serialize_str(text),
                    None => Err(S::Error::custom(format!("{text} is not declared"))),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $find(&text).ok_or_else(|| D::Error::custom("an unknown name"))
            }
        }
    )* };
}
in_files!(
    Caller, caller, |caller: &Caller| caller.0.name;
    ArgumentName, word, |word: &ArgumentName| word.0;
);
