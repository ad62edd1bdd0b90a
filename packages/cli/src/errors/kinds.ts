/**
 * What a command that failed says. `kinds.ts` has the errors of the command line itself, `codes.ts` every code with its
 * exit code and meaning, `describe.ts` finds message, code and exit code of any error, `hint.ts` the command to try
 * next. Imports `escape` and `exit`.
 */

/** The command line is not valid: exit 2. */
export class UsageError extends Error {
  readonly code = 'CLI_USAGE';
  readonly data: Readonly<Record<string, unknown>>;
  readonly hint: string | undefined;

  constructor(
    message: string,
    { data = {}, hint }: { data?: Readonly<Record<string, unknown>>; hint?: string } = {},
  ) {
    super(message);
    this.data = data;
    this.hint = hint;
  }
}

/** A file, home or verb does not exist: exit 3. */
export class NotFoundError extends Error {
  readonly code = 'CLI_NOT_FOUND';
  readonly data: Readonly<Record<string, unknown>>;

  constructor(message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.data = data;
  }
}

/** A child has nothing to merge: exit 4. */
export class NothingToMergeError extends Error {
  readonly code = 'CLI_NOTHING_TO_MERGE';
  readonly data: Readonly<Record<string, unknown>>;

  constructor(child: string, why: string) {
    super(`cannot merge '${child}': ${why}`);
    this.data = { child };
  }
}

/** A configuration cannot be used, or is code that is not trusted; a home is not this user's: exit 2. */
export class ConfigError extends Error {
  readonly code: 'CLI_BAD_CONFIG' | 'CLI_UNTRUSTED' | 'CLI_FOREIGN_HOME';
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: ConfigError['code'],
    message: string,
    { data, cause }: { data: Readonly<Record<string, unknown>>; cause?: unknown },
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}

/** What is exported does not fit in one file: exit 2. */
export class TooLargeError extends Error {
  readonly code = 'CLI_TOO_LARGE';
  readonly data: Readonly<Record<string, unknown>>;

  constructor(message: string, data: Readonly<Record<string, unknown>>) {
    super(message);
    this.data = data;
  }
}

/** Something that the machine does not have, or does not do, with what it said. */
abstract class MachineError extends Error {
  abstract readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(message: string, { data, cause }: { data: Readonly<Record<string, unknown>>; cause: unknown }) {
    super(message, { cause });
    this.data = data;
  }
}

/** A home is on a server, and the packages that talk to one are not installed: exit 1. */
export class NoDriverError extends MachineError {
  readonly code = 'CLI_NO_DRIVER';
}

/** The server of the page cannot listen: exit 1. */
export class ListenError extends MachineError {
  readonly code = 'CLI_CANNOT_LISTEN';
}
