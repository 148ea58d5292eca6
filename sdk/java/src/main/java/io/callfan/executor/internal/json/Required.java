package io.callfan.executor.internal.json;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.databind.introspect.Annotated;
import com.fasterxml.jackson.databind.introspect.AnnotatedMember;
import com.fasterxml.jackson.databind.introspect.AnnotatedParameter;
import com.fasterxml.jackson.databind.introspect.NopAnnotationIntrospector;
import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.RecordComponent;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Which members of arguments may be absent or null: the components of a record are required, but those of an Optional type
 * and those with an annotation of the name Nullable.
 */
final class Required extends NopAnnotationIntrospector {
    private static final long serialVersionUID = 1;
    private static final Set<Class<?>> OPTIONALS = Set.of(Optional.class, OptionalInt.class, OptionalLong.class, OptionalDouble.class);

    @Override
    public Boolean hasRequiredMarker(AnnotatedMember member) {
        RecordComponent component = componentOf(member);
        return component == null ? null : !optional(component);
    }

    @Override
    public JsonSetter.Value findSetterInfo(Annotated annotated) {
        RecordComponent component = annotated instanceof AnnotatedMember member ? componentOf(member) : null;
        if (component == null) {
            return JsonSetter.Value.empty();
        }
        return JsonSetter.Value.forValueNulls(optional(component) ? Nulls.SET : Nulls.FAIL);
    }

    private static RecordComponent componentOf(AnnotatedMember member) {
        Class<?> type = member.getDeclaringClass();
        if (!type.isRecord()) {
            return null;
        }
        RecordComponent[] components = type.getRecordComponents();
        if (member instanceof AnnotatedParameter parameter) {
            boolean canonical = parameter.getOwner().getParameterCount() == components.length;
            return canonical ? components[parameter.getIndex()] : null;
        }
        return component(type, member.getName());
    }

    /** The component with that name; null when there is none. */
    static RecordComponent component(Class<?> type, String name) {
        if (type.isRecord()) {
            for (RecordComponent component : type.getRecordComponents()) {
                if (component.getName().equals(name)) {
                    return component;
                }
            }
        }
        return null;
    }

    static boolean optional(RecordComponent component) {
        return OPTIONALS.contains(component.getType())
                || nullable(component)
                || nullable(component.getAnnotatedType())
                || nullable(component.getAccessor());
    }

    private static boolean nullable(AnnotatedElement element) {
        for (Annotation annotation : element.getAnnotations()) {
            if (annotation.annotationType().getSimpleName().equals("Nullable")) {
                return true;
            }
        }
        return false;
    }
}
