/** Gets one line per noteworthy event, with a constant message. It never gets arguments, outputs or nonces. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes JSON lines to standard error, without the debug ones. */
export const jsonLogger: Logger = {
  debug: () => undefined,
  info: (message, fields) => write("INFO", message, fields),
  warn: (message, fields) => write("WARN", message, fields),
  error: (message, fields) => write("ERROR", message, fields),
};

/** Drops everything. */
export const silentLogger: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function write(level: string, msg: string, fields: LogFields = {}): void {
  process.stderr.write(JSON.stringify({ time: new Date().toISOString(), level, msg, ...fields }) + "\n");
}
