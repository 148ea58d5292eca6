// A reporter of node:test that ends with the line that .ci/run counts. A skipped test counts as failed.
interface Event {
  readonly type: string;
  readonly data: { readonly skip?: unknown; readonly todo?: unknown; readonly details?: { readonly type?: string } };
}

export default async function* count(events: AsyncIterable<Event>): AsyncGenerator<string> {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    if (type === "test:pass" && data.skip === undefined && data.todo === undefined) passed++;
    else failed++;
  }
  if (failed > 0 || passed === 0) process.exitCode = 1;
  yield `${passed} passed, ${failed} failed\n`;
}
