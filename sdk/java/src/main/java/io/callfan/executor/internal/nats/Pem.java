package io.callfan.executor.internal.nats;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** TLS from files of certificates and keys, as other programs have them. */
final class Pem {
    private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

    private Pem() {}

    /** Any of them may be null; a certificate needs its key. */
    static SSLContext context(String caFile, String certFile, String keyFile) throws IOException, GeneralSecurityException {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(certFile == null ? null : keys(certFile, keyFile), caFile == null ? null : trust(caFile), null);
        return context;
    }

    private static TrustManager[] trust(String caFile) throws IOException, GeneralSecurityException {
        KeyStore store = empty();
        int n = 0;
        for (Certificate certificate : certificates(caFile)) {
            store.setCertificateEntry("ca-" + n++, certificate);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private static KeyManager[] keys(String certFile, String keyFile) throws IOException, GeneralSecurityException {
        if (keyFile == null) {
            throw new GeneralSecurityException("there is a certificate, and no key");
        }
        KeyStore store = empty();
        store.setKeyEntry("client", key(keyFile), new char[0], certificates(certFile));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, new char[0]);
        return factory.getKeyManagers();
    }

    private static KeyStore empty() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Certificate[] certificates(String file) throws IOException, GeneralSecurityException {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        return CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(bytes)).toArray(Certificate[]::new);
    }

    private static PrivateKey key(String file) throws IOException, GeneralSecurityException {
        Matcher pem = KEY.matcher(Files.readString(Path.of(file), StandardCharsets.US_ASCII));
        if (!pem.find()) {
            throw new GeneralSecurityException("the key is not PKCS #8; remedy: openssl pkcs8 -topk8 -nocrypt");
        }
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem.group(1)));
        for (String algorithm : new String[] {"EC", "RSA", "EdDSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (InvalidKeySpecException e) {
                // of another algorithm
            }
        }
        throw new GeneralSecurityException("the key is neither EC, RSA nor EdDSA");
    }
}
