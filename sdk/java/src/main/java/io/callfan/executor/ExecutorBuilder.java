package io.callfan.executor;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.internal.engine.Worker;
import io.callfan.executor.internal.json.Inputs;
import io.callfan.executor.internal.nats.Connecting;
import io.callfan.executor.internal.nats.NatsLink;
import io.callfan.executor.internal.wire.Requests;
import io.callfan.executor.internal.wire.Texts;
import io.nats.client.Options;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.UnaryOperator;

/** Describes an executor. All methods return this. */
public final class ExecutorBuilder {
    private final Map<String, String> env;
    private String pool;
    private String servers;
    private String credsFile;
    private String nkeyFile;
    private String user;
    private String password;
    private String token;
    private UnaryOperator<Options.Builder> nats = UnaryOperator.identity();
    private String prefix;
    private String inboxPrefix;
    private String apiPrefix;
    private int concurrency = 32;
    private String id;
    private String version;
    private Duration stopTimeout = Duration.ofSeconds(25);
    private ObjectMapper mapper = Inputs.defaultMapper();

    ExecutorBuilder() {
        this(System.getenv());
    }

    ExecutorBuilder(Map<String, String> env) {
        this.env = env;
    }

    /** The name of the deployment, 1 to 64 of [A-Za-z0-9_-]. All processes of a pool must serve the same functions. */
    public ExecutorBuilder pool(String name) {
        pool = name;
        return this;
    }

    /** Addresses of NATS, separated by commas. Default NATS_URL, or nats://127.0.0.1:4222. */
    public ExecutorBuilder servers(String addresses) {
        servers = addresses;
        return this;
    }

    /**
     * Proves who this is. Default for all such settings: NATS_CREDS, NATS_NKEY, NATS_USER with NATS_PASSWORD, or NATS_TOKEN; the last two secrets also
     * from the files that NATS_PASSWORD_FILE and NATS_TOKEN_FILE name.
     */
    public ExecutorBuilder credsFile(String path) {
        credsFile = path;
        return this;
    }

    /** Proves who this is, by the file of an nkey's seed. */
    public ExecutorBuilder nkeyFile(String path) {
        nkeyFile = path;
        return this;
    }

    /** Proves who this is. */
    public ExecutorBuilder user(String name, String secret) {
        user = name;
        password = secret;
        return this;
    }

    /** Proves who this is. */
    public ExecutorBuilder token(String secret) {
        token = secret;
        return this;
    }

    /** More options of the NATS client, which win over all others: TLS, for example. Default for TLS: NATS_CA, NATS_CERT, NATS_KEY. */
    public ExecutorBuilder nats(UnaryOperator<Options.Builder> options) {
        nats = Objects.requireNonNull(options, "options");
        return this;
    }

    /** What the subjects of the installation begin with. Default CALLFAN_PREFIX, or "fn". */
    public ExecutorBuilder prefix(String subjects) {
        prefix = subjects;
        return this;
    }

    /** Where replies arrive. Default CALLFAN_NATS_INBOX_PREFIX, or "_INBOX". */
    public ExecutorBuilder inboxPrefix(String subjects) {
        inboxPrefix = subjects;
        return this;
    }

    /** The subject prefix of the JetStream API. Default CALLFAN_NATS_API_PREFIX, or "$JS.API". */
    public ExecutorBuilder apiPrefix(String subjects) {
        apiPrefix = subjects;
        return this;
    }

    /** How many calls run at once, each on a thread of its own. Default 32. */
    public ExecutorBuilder concurrency(int calls) {
        concurrency = calls;
        return this;
    }

    /** Names this process for operators: at most 128 bytes of printable characters. Default: host, process and four characters. */
    public ExecutorBuilder id(String name) {
        id = name;
        return this;
    }

    /** The version of the program, for operators and for changes of a definition. */
    public ExecutorBuilder version(String text) {
        version = text;
        return this;
    }

    /** How long running handlers may go on after a stop. Keep it below the time that the platform gives. Default 25 s. */
    public ExecutorBuilder stopTimeout(Duration time) {
        stopTimeout = Objects.requireNonNull(time, "time");
        return this;
    }

    /** Reads arguments and writes outputs. Arguments are read by a stricter copy. Default: Jackson with Optional and java.time. */
    public ExecutorBuilder mapper(ObjectMapper jackson) {
        mapper = Objects.requireNonNull(jackson, "jackson");
        return this;
    }

    /** Checks the settings. Nothing is connected before run(). It throws ConfigurationException. */
    public Executor build() {
        String subjects = prefix != null ? prefix : variable("CALLFAN_PREFIX", "fn");
        String name = id != null ? id : defaultId();
        if (pool == null || !pool.matches("[A-Za-z0-9_-]{1,64}")) {
            throw new ConfigurationException("pool is " + quoted(pool) + "; name the deployment with 1 to 64 of A-Z a-z 0-9 _ -");
        }
        if (!subjects.matches("[A-Za-z0-9_-]{1,32}")) {
            throw new ConfigurationException("prefix is " + quoted(subjects) + "; use 1 to 32 of A-Z a-z 0-9 _ -");
        }
        if (concurrency < 1) {
            throw new ConfigurationException("concurrency is " + concurrency + "; use a whole number from 1");
        }
        if (name.isEmpty() || !Texts.executorName(name).equals(name)) {
            throw new ConfigurationException("id is " + quoted(name) + "; use at most 128 bytes of printable characters, or none");
        }
        if (stopTimeout.isNegative()) {
            throw new ConfigurationException("stopTimeout is " + stopTimeout + "; it must not be negative");
        }
        Connecting connecting = new Connecting(
                addresses(), credsFile, nkeyFile, user, password, token,
                inboxPrefix != null ? inboxPrefix : variable("CALLFAN_NATS_INBOX_PREFIX", "_INBOX"),
                "executor " + pool + " " + name, nats, env);
        NatsLink.Settings link = new NatsLink.Settings(
                pool, subjects, apiPrefix != null ? apiPrefix : variable("CALLFAN_NATS_API_PREFIX", "$JS.API"), connecting,
                new Requests.ExecutorInfo(name, "java", version, host()));
        return new Executor(new Config(link, new Worker.Settings(pool, name, concurrency, stopTimeout.toMillis())), mapper);
    }

    private List<String> addresses() {
        String given = servers != null ? servers : variable("NATS_URL", "nats://127.0.0.1:4222");
        List<String> list = Arrays.stream(given.split(",")).map(String::trim).filter(address -> !address.isEmpty()).toList();
        if (list.isEmpty()) {
            throw new ConfigurationException("servers is empty; give an address of NATS, such as nats://127.0.0.1:4222");
        }
        return list;
    }

    private String variable(String name, String otherwise) {
        String value = env.get(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    private static String quoted(String text) {
        return text == null ? "missing" : Texts.quote(text);
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown";
        }
    }

    private static String defaultId() {
        String process = String.format(Locale.ROOT, "-%d-%04x", ProcessHandle.current().pid(), ThreadLocalRandom.current().nextInt(0x10000));
        String host = host().replaceAll("[^\\x21-\\x7e]", "_");
        return host.substring(0, Math.min(host.length(), 128 - process.length())) + process;
    }
}
