//! Texts as JSON, and pieces of texts.

use std::time::Duration;

/// The text as a JSON string. Nothing is escaped that need not be.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default() // a text can always be written
}

/// The beginning of a text that has so many bytes at most.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The printable part of a name, as far as it fits into 128 bytes.
pub(crate) fn executor_name(name: &str) -> String {
    let printable: String = name.chars().filter(|&c| is_printable(c)).collect();
    cut(&printable, 128).to_owned()
}

fn is_printable(c: char) -> bool {
    let space = c.is_whitespace() && c != ' ';
    let format = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    let private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    !(c.is_control() || space || format || private || c == '\u{fffd}')
}

/// A time for people and for policies: 1500 ms is `1.5s`.
pub(crate) fn duration(time: Duration) -> String {
    let ms = time.as_millis();
    if ms < 1000 {
        return format!("{ms}ms");
    }
    let (hours, minutes, left) = (ms / 3_600_000, ms % 3_600_000 / 60_000, ms % 60_000);
    let fraction = format!("{:03}", left % 1000);
    let fraction = fraction.trim_end_matches('0');
    let seconds = if fraction.is_empty() { format!("{}s", left / 1000) } else { format!("{}.{fraction}s", left / 1000) };
    match (hours, minutes) {
        (0, 0) => seconds,
        (0, _) => format!("{minutes}m{seconds}"),
        _ => format!("{hours}h{minutes}m{seconds}"),
    }
}
