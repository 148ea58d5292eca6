package io.callfan.executor;

import java.util.List;
import java.util.Objects;

/** An output of several parts, in the order the model sees them. */
public record Content(List<Part> parts) {
    public Content {
        parts = List.copyOf(parts);
        if (parts.isEmpty()) {
            throw new IllegalArgumentException("content has no parts; give at least one");
        }
    }

    /** An output of these parts. */
    public static Content of(Part... parts) {
        return new Content(List.of(parts));
    }

    /** A part of that text. */
    public static Part text(String text) {
        return new Text(text);
    }

    /** An image by its URL, which may be a data URL. */
    public static Part image(String url) {
        return new Image(url);
    }

    /** One part of a content. */
    public sealed interface Part permits Text, Image {}

    /** A text. */
    public record Text(String text) implements Part {
        public Text {
            Objects.requireNonNull(text, "text");
        }
    }

    /** An image. */
    public record Image(String url) implements Part {
        public Image {
            if (url.isEmpty()) {
                throw new IllegalArgumentException("an image has no URL");
            }
        }
    }
}
