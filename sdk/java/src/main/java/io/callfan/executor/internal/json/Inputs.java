package io.callfan.executor.internal.json;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.exc.InvalidNullException;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import com.fasterxml.jackson.databind.exc.ValueInstantiationException;
import com.fasterxml.jackson.databind.introspect.AnnotationIntrospectorPair;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.type.LogicalType;
import com.fasterxml.jackson.datatype.jdk8.Jdk8Module;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import io.callfan.executor.Failure;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.stream.Collectors;

/** Reads arguments into the type that a handler takes. Nothing is coerced: a number is no text, and 1.5 is no integer. */
public final class Inputs {
    private final ObjectMapper mapper;

    /** base gives modules and names. */
    public Inputs(ObjectMapper base) {
        mapper = base.copy()
                .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
                .configure(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, true)
                .configure(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES, true)
                .configure(DeserializationFeature.ACCEPT_FLOAT_AS_INT, false)
                .configure(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, true);
        mapper.coercionConfigFor(LogicalType.Textual)
                .setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail);
        for (LogicalType scalar : new LogicalType[] {LogicalType.Integer, LogicalType.Float, LogicalType.Boolean}) {
            mapper.coercionConfigFor(scalar)
                    .setCoercion(CoercionInputShape.String, CoercionAction.Fail)
                    .setCoercion(CoercionInputShape.EmptyString, CoercionAction.Fail)
                    .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail);
        }
        mapper.coercionConfigFor(LogicalType.Boolean).setCoercion(CoercionInputShape.Integer, CoercionAction.Fail);
        mapper.coercionConfigFor(LogicalType.Enum).setCoercion(CoercionInputShape.Integer, CoercionAction.Fail);
        mapper.setAnnotationIntrospector(
                AnnotationIntrospectorPair.create(new Required(), mapper.getDeserializationConfig().getAnnotationIntrospector()));
    }

    /** What values are read and written by, unless the program brings its own. */
    public static ObjectMapper defaultMapper() {
        return JsonMapper.builder()
                .addModule(new Jdk8Module())
                .addModule(new JavaTimeModule())
                .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
                .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
                .build();
    }

    ObjectMapper mapper() {
        return mapper;
    }

    public JavaType type(java.lang.reflect.Type type) {
        return mapper.constructType(type);
    }

    /** Reads arguments of that type. What does not fit is a failure that names the member. */
    public <I> Reader<I> reader(JavaType type) {
        ObjectReader reader = mapper.readerFor(type);
        return arguments -> {
            int at = 0;
            while (at < arguments.length && arguments[at] <= ' ' && arguments[at] >= 0) {
                at++;
            }
            if (at == arguments.length || arguments[at] != '{') {
                throw invalid("want a JSON object");
            }
            try {
                return reader.readValue(arguments);
            } catch (JsonParseException e) {
                throw invalid("not valid JSON");
            } catch (StreamConstraintsException e) {
                throw invalid(e.getOriginalMessage());
            } catch (JsonMappingException e) {
                throw invalid(pathOf(e) + reasonOf(e));
            } catch (IOException e) {
                throw invalid("they cannot be read");
            } catch (StackOverflowError e) {
                throw invalid("they are nested too deeply");
            }
        };
    }

    /** Reads arguments. */
    @FunctionalInterface
    public interface Reader<I> {
        I read(byte[] arguments) throws Failure;
    }

    private static Failure invalid(String text) {
        return new Failure("invalid arguments: " + text, "invalid_arguments");
    }

    private static String pathOf(JsonMappingException e) {
        String path = e.getPath().stream()
                .map(step -> step.getFieldName() != null ? step.getFieldName() : String.valueOf(step.getIndex()))
                .collect(Collectors.joining("."));
        return path.isEmpty() ? "" : path + ": ";
    }

    private static String reasonOf(JsonMappingException e) {
        if (e instanceof InvalidNullException) {
            return "must not be null";
        }
        if (e instanceof ValueInstantiationException && e.getCause() != null) {
            return String.valueOf(e.getCause().getMessage()); // a record that checks its components
        }
        if (e.getCause() instanceof InputCoercionException number) {
            return "want " + kind(number.getTargetType());
        }
        if (e instanceof MismatchedInputException mismatch) {
            if (mismatch.getOriginalMessage().startsWith("Missing required creator property")) {
                return "is missing";
            }
            if (mismatch.getTargetType() != null) {
                return "want " + kind(mismatch.getTargetType());
            }
        }
        return e.getOriginalMessage();
    }

    private static String kind(Class<?> type) {
        if (type.isEnum()) {
            return "one of " + Arrays.stream(type.getEnumConstants()).map(Object::toString).collect(Collectors.joining(", "));
        }
        if (CharSequence.class.isAssignableFrom(type)) {
            return "a string";
        }
        if (type == boolean.class || type == Boolean.class) {
            return "true or false";
        }
        if (type == double.class || type == float.class || type == Double.class || type == Float.class || type == java.math.BigDecimal.class) {
            return "a number";
        }
        if (type.isPrimitive() || Number.class.isAssignableFrom(type)) {
            return "an integer in the range of " + type.getSimpleName();
        }
        if (type.isArray() || Collection.class.isAssignableFrom(type)) {
            return "an array";
        }
        return type.isRecord() ? "an object" : "a value of the type " + type.getSimpleName();
    }
}
