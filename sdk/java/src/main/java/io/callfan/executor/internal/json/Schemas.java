package io.callfan.executor.internal.json;

import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.victools.jsonschema.generator.FieldScope;
import com.github.victools.jsonschema.generator.Option;
import com.github.victools.jsonschema.generator.OptionPreset;
import com.github.victools.jsonschema.generator.SchemaGenerator;
import com.github.victools.jsonschema.generator.SchemaGeneratorConfigBuilder;
import com.github.victools.jsonschema.generator.SchemaVersion;
import com.github.victools.jsonschema.module.jackson.JacksonModule;
import com.github.victools.jsonschema.module.jackson.JacksonOption;
import io.callfan.executor.ConfigurationException;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.Map;

/** Derives the JSON Schema of arguments from the type that a handler takes. */
public final class Schemas {
    private final Inputs inputs;
    private final SchemaGenerator generator;

    public Schemas(Inputs inputs) {
        this.inputs = inputs;
        SchemaGeneratorConfigBuilder config = new SchemaGeneratorConfigBuilder(
                        inputs.mapper(), SchemaVersion.DRAFT_2020_12, OptionPreset.PLAIN_JSON)
                .with(new JacksonModule(
                        JacksonOption.RESPECT_JSONPROPERTY_REQUIRED,
                        JacksonOption.FLATTENED_ENUMS_FROM_JSONVALUE,
                        JacksonOption.FLATTENED_ENUMS_FROM_JSONPROPERTY))
                .with(Option.FLATTENED_OPTIONALS, Option.MAP_VALUES_AS_ADDITIONAL_PROPERTIES)
                .without(Option.SCHEMA_VERSION_INDICATOR);
        config.forTypesInGeneral().withPropertySorter((first, second) -> 0); // as they are declared
        config.forFields().withRequiredCheck(Schemas::required).withNullableCheck(Schemas::nullable);
        generator = new SchemaGenerator(config.build());
    }

    /** The schema; null for a type of any object. */
    public ObjectNode of(Type type) {
        JavaType java = inputs.type(type);
        if (JsonNode.class.isAssignableFrom(java.getRawClass()) || java.getRawClass() == Map.class || java.getRawClass() == Object.class) {
            return null;
        }
        ObjectNode schema;
        try {
            schema = generator.generateSchema(type);
        } catch (RuntimeException e) {
            throw new ConfigurationException("no JSON Schema can be derived from " + type.getTypeName() + ": " + e.getMessage() + "; give one by parameters()", e);
        }
        if (schema.has("properties") || "object".equals(schema.path("type").asText())) {
            schema.put("type", "object");
        }
        check(schema);
        return schema;
    }

    /** Checks that a JSON Schema can be the parameters of a function. */
    public static void check(JsonNode schema) {
        if (!schema.isObject()) {
            throw new ConfigurationException("the parameters are not a JSON Schema, which is an object");
        }
        if (schema.has("type") && !schema.path("type").asText().equals("object")) {
            throw new ConfigurationException("the parameters have the type " + schema.path("type") + "; the arguments of a function are an object, most often a record");
        }
    }

    private static RecordComponent component(FieldScope field) {
        return field.isFakeContainerItemScope() ? null : Required.component(field.getDeclaringType().getErasedType(), field.getDeclaredName());
    }

    private static boolean required(FieldScope field) {
        RecordComponent component = component(field);
        return component != null && !Required.optional(component);
    }

    private static boolean nullable(FieldScope field) {
        RecordComponent component = component(field);
        return component != null && Required.optional(component);
    }
}
