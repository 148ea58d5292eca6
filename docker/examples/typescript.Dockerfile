# An executor in TypeScript, which Node runs as it is. In a repository of your own `npm ci` takes the place of the first stage.
FROM node:24.11.1-bookworm-slim AS build
WORKDIR /src
COPY sdk/typescript ./sdk/typescript
RUN npm ci --prefix sdk/typescript --no-audit --no-fund && npm pack ./sdk/typescript
WORKDIR /app
RUN npm init --yes && npm pkg set type=module && npm install --no-audit --no-fund /src/callfan-0.1.0.tgz zod@4.1.12

FROM node:24.11.1-bookworm-slim
LABEL org.opencontainers.image.title="customers" \
      org.opencontainers.image.description="An example executor of callfan in TypeScript" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
COPY --from=build /app /app
COPY examples/typescript/customers.ts /app/customers.ts
USER 65532:65532
ENTRYPOINT ["node", "/app/customers.ts"]
