package io.callfan.executor.internal.wire;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The definition of a function, as it is registered.
 *
 * @param json the member "function" of the registration
 */
public record Definition(String name, ObjectNode json) {}
