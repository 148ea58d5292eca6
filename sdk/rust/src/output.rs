use serde::Serialize;

use crate::error::{Error, causes};
use crate::wire::texts::quote;

/// What a handler may return. All that serde serialises is an output already:
///
/// | a value | the model gets |
/// |---|---|
/// | that serde writes as a text: `String`, `&str`, … | that text, as it is |
/// | that serde writes as null: `()`, `None`, … | no value |
/// | any other | its JSON, as a text |
///
/// and so are [`Content`] and [`RawText`].
pub trait IntoOutput: Send + 'static {
    /// The output as the wire carries it: a JSON string, an array of content parts, or null.
    #[doc(hidden)]
    fn into_output(self) -> Result<Output, Error>;
}

/// An output as the wire carries it.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Output(pub(crate) String);

impl<T: Serialize + Send + 'static> IntoOutput for T {
    fn into_output(self) -> Result<Output, Error> {
        let json = serde_json::to_string(&self)
            .map_err(|e| Error::failure(format!("the function's output cannot be written as JSON: {e}")).with_cause(causes::INVALID_OUTPUT))?;
        // RawValue may have white space around it.
        Ok(Output(if json.trim_start().starts_with('"') || json.trim() == "null" { json } else { quote(&json) }))
    }
}

/// An output of several parts, in the order the model sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(Vec<Part>);

impl Content {
    /// An output of these parts. Without any it is an output that is not valid, of which the model is told.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        Self(parts.into_iter().collect())
    }
}

/// One part of a [`Content`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A text.
    Text(String),
    /// An image by its URL, which may be a data URL.
    Image(String),
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An image by its URL, which may be a data URL.
    pub fn image(url: impl Into<String>) -> Self {
        Self::Image(url.into())
    }

    fn json(&self) -> Result<String, Error> {
        match self {
            Self::Text(text) => Ok(format!(r#"{{"type":"input_text","text":{}}}"#, quote(text))),
            Self::Image(url) if url.is_empty() => {
                Err(Error::failure("the function's output has an image without a URL").with_cause(causes::INVALID_OUTPUT))
            }
            Self::Image(url) => Ok(format!(r#"{{"type":"input_image","image_url":{}}}"#, quote(url))),
        }
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<Output, Error> {
        if self.0.is_empty() {
            return Err(Error::failure("the function's output has no content parts").with_cause(causes::INVALID_OUTPUT));
        }
        let parts = self.0.iter().map(Part::json).collect::<Result<Vec<_>, _>>()?;
        Ok(Output(format!("[{}]", parts.join(","))))
    }
}

/// A text of bytes that need not be valid UTF-8: what is not becomes U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawText(pub Vec<u8>);

impl<T: AsRef<[u8]>> From<T> for RawText {
    fn from(bytes: T) -> Self {
        Self(bytes.as_ref().to_vec())
    }
}

impl IntoOutput for RawText {
    fn into_output(self) -> Result<Output, Error> {
        Ok(Output(quote(&String::from_utf8_lossy(&self.0))))
    }
}
