package io.callfan.executor;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Stops on SIGTERM and SIGINT without the end of the virtual machine, so that run() returns, what follows it is done, and the
 * exit status is 0. A shutdown hook would run beside those of libraries, which close what running handlers still use, and
 * leaves the status 143. Where signals cannot be handled, as with -Xrs, there is such a hook all the same.
 */
final class Signals implements AutoCloseable {
    /** Signals that come so soon after the first are the same one: a terminal and a parent process may both send it. */
    private static final long REPEATED_NANOS = 500_000_000;

    private final Runnable stop;
    private final Runnable interrupt;
    private final Map<Object, Object> earlier = new LinkedHashMap<>();
    private Method handle;
    private Thread hook;
    private boolean signalled;
    private long firstNanos;
    private boolean ended;

    Signals(Runnable stop, Runnable interrupt) {
        this.stop = stop;
        this.interrupt = interrupt;
        try {
            install("TERM");
            install("INT");
        } catch (ReflectiveOperationException | RuntimeException e) {
            hook = new Thread(this::shutDown, "callfan-stop");
            Runtime.getRuntime().addShutdownHook(hook);
        }
    }

    /** By reflection, since the module jdk.unsupported need not be there. */
    private void install(String name) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal");
        Class<?> handler = Class.forName("sun.misc.SignalHandler");
        handle = signal.getMethod("handle", signal, handler);
        InvocationHandler invoked = (proxy, method, args) -> switch (method.getName()) {
            case "handle" -> {
                signalled();
                yield null;
            }
            case "hashCode" -> System.identityHashCode(proxy);
            case "equals" -> proxy == args[0];
            default -> "callfan";
        };
        Object ours = Proxy.newProxyInstance(Signals.class.getClassLoader(), new Class<?>[] {handler}, invoked);
        Object which = signal.getConstructor(String.class).newInstance(name);
        earlier.put(which, handle.invoke(null, which, ours));
    }

    private void signalled() {
        boolean again;
        synchronized (this) {
            again = signalled && System.nanoTime() - firstNanos > REPEATED_NANOS;
            if (!signalled) {
                firstNanos = System.nanoTime();
            }
            signalled = true;
        }
        if (again) {
            interrupt.run();
        }
        stop.run();
    }

    private void shutDown() {
        stop.run();
        synchronized (this) {
            try {
                while (!ended) {
                    wait();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Puts back what was there before. */
    @Override
    public void close() {
        synchronized (this) {
            ended = true;
            notifyAll();
        }
        earlier.forEach((signal, before) -> {
            try {
                handle.invoke(null, signal, before);
            } catch (ReflectiveOperationException e) {
                // the program ends anyway
            }
        });
        if (hook != null) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // it runs already
            }
        }
    }
}
