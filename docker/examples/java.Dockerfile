# An executor in Java. In a repository of your own the SDK comes from Maven Central.
FROM maven:3.9.11-eclipse-temurin-21 AS build
WORKDIR /src
COPY sdk/java ./sdk/java
RUN mvn --batch-mode --quiet --file sdk/java install -DskipTests
COPY examples/java ./examples/java
RUN mvn --batch-mode --quiet --file examples/java compile dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=/app/lib && cp -r examples/java/target/classes /app/classes

FROM eclipse-temurin:21.0.8_9-jre
LABEL org.opencontainers.image.title="customers" \
      org.opencontainers.image.description="An example executor of callfan in Java" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
USER 65532:65532
ENTRYPOINT ["java", "-XX:MaxRAMPercentage=75", "-cp", "/app/classes:/app/lib/*", "Customers"]
