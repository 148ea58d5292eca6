// Reads protocol/fixtures.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The root of the repository; this file is run from sdk/typescript/build/test. */
export const root = fileURLToPath(new URL("../../../../", import.meta.url));

export function bytes(path: string): Buffer {
  return readFileSync(`${root}protocol/fixtures/${path}`);
}

/** The cases of an index. */
export function cases<Case>(index: string): Case[] {
  const path = `${root}protocol/fixtures/${index}`;
  if (!existsSync(path)) throw new Error(`${path} does not exist; remedy: run the tests in a checkout of the whole repository`);
  const { cases: all } = JSON.parse(readFileSync(path, "utf8")) as { cases: Case[] };
  if (all.length === 0) throw new Error(`${path} has no cases`);
  return all;
}
