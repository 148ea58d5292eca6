package io.callfan.executor.internal.nats;

import io.callfan.executor.ConfigurationException;
import io.nats.client.Nats;
import io.nats.client.NKey;
import io.nats.client.Options;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * How to reach NATS. What is null or empty comes from the environment.
 *
 * @param servers addresses, nats:// or tls://
 * @param customize more options of the client, which win over all others
 */
public record Connecting(
        List<String> servers,
        String credsFile,
        String nkeyFile,
        String user,
        String password,
        String token,
        String inboxPrefix,
        String name,
        UnaryOperator<Options.Builder> customize,
        Map<String, String> env) {

    /** Checks what can be checked without a connection, so that a wrong file name ends the program. */
    public void check() {
        try {
            for (String server : servers) {
                int scheme = server.indexOf("://");
                if (scheme >= 0 && !List.of("nats", "tls").contains(server.substring(0, scheme).toLowerCase(Locale.ROOT))) {
                    throw new ConfigurationException("NATS is not reached by " + server.substring(0, scheme) + "; use nats:// or tls://");
                }
                URI.create(scheme >= 0 ? server : "nats://" + server);
            }
            options().build();
        } catch (ConfigurationException e) {
            throw e;
        } catch (RuntimeException e) {
            throw new ConfigurationException("NATS cannot be reached as configured: " + e.getMessage(), e);
        }
    }

    /** Made anew for each connection, so that files of credentials may change. */
    Options.Builder options() {
        Options.Builder options = new Options.Builder()
                .servers(servers.toArray(String[]::new))
                .inboxPrefix(inboxPrefix)
                .connectionName(name)
                .connectionTimeout(Duration.ofSeconds(5))
                .maxReconnects(-1)
                .reconnectWait(Duration.ofMillis(250))
                .reconnectJitter(Duration.ofMillis(500))
                .reconnectJitterTls(Duration.ofMillis(500))
                .reconnectBufferSize(0) // what is sent while the connection is away would come too late
                .pingInterval(Duration.ofSeconds(5))
                .maxPingsOut(2)
                .reportNoResponders();
        try {
            identify(options);
            secure(options);
        } catch (IOException e) {
            throw new ConfigurationException("the file " + e.getMessage() + " of the credentials for NATS cannot be read", e);
        } catch (GeneralSecurityException e) {
            throw new ConfigurationException("NATS_CA, NATS_CERT or NATS_KEY cannot be used: " + e.getMessage(), e);
        }
        return customize.apply(options);
    }

    /** Credentials: those that were given, else those of the environment, else those in an address, which jnats takes. */
    private void identify(Options.Builder options) throws IOException {
        boolean given = credsFile != null || nkeyFile != null || user != null || token != null;
        String creds = given ? credsFile : variable("NATS_CREDS");
        String nkey = given ? nkeyFile : variable("NATS_NKEY");
        String name = given ? user : variable("NATS_USER");
        String tokenText = given ? token : secret("NATS_TOKEN");
        if (creds != null) {
            Files.readAllBytes(Path.of(creds)); // jnats would try for ever
            options.authHandler(Nats.credentials(creds));
        } else if (nkey != null) {
            options.authHandler(new SeedAuth(Files.readString(Path.of(nkey)).trim()));
        } else if (name != null) {
            String secret = given ? password : secret("NATS_PASSWORD");
            options.userInfo(name.toCharArray(), secret == null ? new char[0] : secret.toCharArray());
        } else if (tokenText != null) {
            options.token(tokenText.toCharArray());
        }
    }

    private void secure(Options.Builder options) throws IOException, GeneralSecurityException {
        String ca = variable("NATS_CA");
        String cert = variable("NATS_CERT");
        if (ca != null || cert != null) {
            options.sslContext(Pem.context(ca, cert, variable("NATS_KEY")));
        }
    }

    private String variable(String name) {
        String value = env.get(name);
        return value == null || value.isEmpty() ? null : value;
    }

    /** The secret of a variable, or of the file that the variable with _FILE names. */
    private String secret(String name) throws IOException {
        String file = variable(name + "_FILE");
        if (variable(name) != null || file == null) {
            return variable(name);
        }
        return Files.readString(Path.of(file)).replaceFirst("\r?\n$", "");
    }

    /** An nkey without a JWT. */
    private record SeedAuth(String seed) implements io.nats.client.AuthHandler {
        SeedAuth {
            NKey.fromSeed(seed.toCharArray()).clear();
        }

        @Override
        public byte[] sign(byte[] nonce) {
            NKey key = NKey.fromSeed(seed.toCharArray());
            try {
                return key.sign(nonce);
            } catch (IOException | GeneralSecurityException e) {
                throw new IllegalStateException("the nkey cannot sign", e);
            } finally {
                key.clear();
            }
        }

        @Override
        public char[] getID() {
            NKey key = NKey.fromSeed(seed.toCharArray());
            try {
                return key.getPublicKey();
            } catch (IOException | GeneralSecurityException e) {
                throw new IllegalStateException("the nkey has no public key", e);
            } finally {
                key.clear();
            }
        }

        @Override
        public char[] getJWT() {
            return null;
        }

        @Override
        public String toString() {
            return "nkey";
        }
    }
}
