//! Arguments into the type that a handler takes.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, causes};

const LONGEST_PATH: usize = 256;

/// The JSON Schema of the type, as the model gets it.
pub(crate) fn schema<I: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<I>();
    schema.remove("title"); // the name of a type in a program says nothing to a model
    schema.to_value()
}

/// Reads arguments of that type. What does not fit is a failure that names the member.
pub(crate) fn read<I: DeserializeOwned>(arguments: &[u8]) -> Result<I, Error> {
    if arguments.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid("want a JSON object")); // serde would take an array for a struct
    }
    let mut reader = serde_json::Deserializer::from_slice(arguments);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let reason = reason_of(e.inner());
        // What is nested too deeply has a path that helps nobody.
        invalid(&if path == "." || path.len() > LONGEST_PATH { reason } else { format!("{path}: {reason}") })
    })?;
    reader.end().map_err(|e| invalid(&reason_of(&e)))?;
    Ok(value)
}

/// The text of the error without the line and the column, which say nothing to a model.
fn reason_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]).to_owned()
}

fn invalid(what: &str) -> Error {
    Error::failure(format!("invalid arguments: {what}")).with_cause(causes::INVALID_ARGUMENTS)
}
