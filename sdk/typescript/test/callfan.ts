// The program callfan, for tests with real servers.
import { existsSync } from "node:fs";
import { root } from "./fixture.js";

export function callfan(): string {
  const path = `${root}bin/callfan`;
  if (!existsSync(path)) throw new Error(`${path} does not exist; remedy: run make test-typescript, or make build first`);
  return path;
}
