package io.callfan.executor;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.internal.engine.Log;
import io.callfan.executor.internal.engine.Registered;
import io.callfan.executor.internal.engine.Threads;
import io.callfan.executor.internal.engine.Worker;
import io.callfan.executor.internal.json.Inputs;
import io.callfan.executor.internal.json.Outputs;
import io.callfan.executor.internal.json.Schemas;
import io.callfan.executor.internal.nats.NatsLink;
import io.callfan.executor.internal.wire.Texts;
import java.lang.reflect.Type;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs functions.
 *
 * <pre>{@code
 * record Input(String customerId) {}
 *
 * Executor executor = Executor.builder().pool("customers").build();
 * executor.function("get_customer", Input.class, (input, call) -> Map.of("found", true))
 *         .description("Look up a customer by ID.")
 *         .effects(Effects.NONE);
 * executor.run();
 * }</pre>
 */
public final class Executor {
    private final Config config;
    private final Inputs inputs;
    private final Outputs outputs;
    private final Schemas schemas;
    private final Map<String, Function<?>> functions = new LinkedHashMap<>();
    private final Map<String, Inputs.Reader<?>> readers = new LinkedHashMap<>();
    private Worker worker;
    private boolean started;
    private boolean stopping;

    Executor(Config config, ObjectMapper mapper) {
        this.config = config;
        this.inputs = new Inputs(mapper);
        this.outputs = new Outputs(mapper);
        this.schemas = new Schemas(inputs);
    }

    /** Everything but the pool has a default. */
    public static ExecutorBuilder builder() {
        return new ExecutorBuilder();
    }

    /**
     * Adds a function whose arguments are read into a type, most often a record, by Jackson. Arguments that do not fit become
     * a failure that names the member. All components of a record are required, but those of an Optional type and those with
     * an annotation Nullable. The JSON Schema for the model is derived from the type.
     */
    public <I> Function<I> function(String name, Class<I> input, Handler<I> handler) {
        return add(name, input, handler);
    }

    /** The same for a generic type. */
    public <I> Function<I> function(String name, TypeReference<I> input, Handler<I> handler) {
        return add(name, input.getType(), handler);
    }

    /** Adds a function whose handler gets the very text of the arguments, with every digit of every number. Nothing is checked. */
    public Function<String> rawFunction(String name, Handler<String> handler) {
        return add(new Function<>(name, null, handler), arguments -> new String(arguments, java.nio.charset.StandardCharsets.UTF_8));
    }

    private <I> Function<I> add(String name, Type input, Handler<I> handler) {
        try {
            return add(new Function<>(name, schemas.of(input), handler), inputs.reader(inputs.type(input)));
        } catch (ConfigurationException e) {
            throw new ConfigurationException("function " + Texts.quote(String.valueOf(name)) + ": " + e.getMessage(), e);
        }
    }

    private synchronized <I> Function<I> add(Function<I> function, Inputs.Reader<I> reader) {
        if (started) {
            throw new ConfigurationException("the executor runs already; add functions before run()");
        }
        if (functions.putIfAbsent(function.name(), function) != null) {
            throw new ConfigurationException("there is one of that name");
        }
        readers.put(function.name(), reader);
        return function;
    }

    /**
     * Serves the functions until SIGTERM or SIGINT, or {@link #stop()}: finishes what runs, gives back what was not started. A
     * second signal interrupts what runs. It waits for NATS and for a dispatcher for ever.
     *
     * @throws RegistrationRefusedException when a dispatcher refuses a function
     * @throws PermissionDeniedException when the NATS server forbids to register
     */
    public void run() {
        Signals signals = new Signals(this::stop, this::interrupt);
        try {
            serve();
        } finally {
            signals.close();
        }
    }

    /** As {@link #run()}, in a program that has its own way to stop. An interruption of the thread stops as well. */
    public void serve() {
        Map<String, Registered> registered = start();
        config.connecting().check();
        try (Threads threads = new Threads()) {
            serve(threads, registered);
        }
    }

    private void serve(Threads threads, Map<String, Registered> registered) {
        NatsLink link = new NatsLink(config.link());
        Worker serving = new Worker(link, threads, registered, config.worker());
        synchronized (this) {
            worker = serving;
            if (stopping) {
                serving.stop();
            }
        }
        try {
            serving.serve();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            close(link);
        }
        if (serving.abandoned() > 0) {
            Log.LOG.atWarn().addKeyValue("handlers", serving.abandoned()).log("handlers did not return; their calls were settled");
        }
    }

    private static void close(NatsLink link) {
        boolean interrupted = Thread.interrupted();
        try {
            link.close();
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Begins to stop; run() ends when it is done. */
    public synchronized void stop() {
        stopping = true;
        if (worker != null) {
            worker.stop();
        }
    }

    private synchronized void interrupt() {
        if (worker != null) {
            worker.interrupt();
        }
    }

    private synchronized Map<String, Registered> start() {
        if (started) {
            throw new ConfigurationException("the executor was run before; make a new one");
        }
        if (functions.isEmpty()) {
            throw new ConfigurationException("there is no function; add one before run()");
        }
        Map<String, Registered> registered = registered();
        functions.values().forEach(Function::seal);
        started = true;
        return registered;
    }

    /** The functions as the engine runs them. For io.callfan.executor.testing; not a part of the interface. */
    public synchronized Map<String, Registered> registered() {
        Map<String, Registered> made = new LinkedHashMap<>();
        functions.forEach((name, function) -> made.put(name, Assembly.of(function, readers.get(name), outputs)));
        return made;
    }
}
