# The dispatcher, on nothing.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd ./cmd
COPY internal ./internal
COPY pkg ./pkg
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/callfan/callfan/internal/config.release=$VERSION" -o /out/dispatcher ./cmd/dispatcher

FROM scratch
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="callfan dispatcher" \
      org.opencontainers.image.description="Runs the function calls of OpenAI agents on your own workers" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/dispatcher /dispatcher
USER 65532:65532
EXPOSE 8420
ENTRYPOINT ["/dispatcher"]
