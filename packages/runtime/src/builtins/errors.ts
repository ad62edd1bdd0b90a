import { CodedError } from '@tapedeck/tape/errors';

/** Stable codes of the failures of the built-in tools. The message of each ends with its code, for the tape. */
export type BuiltinErrorCode =
  | 'TOOL_NO_FILE'
  | 'TOOL_NOT_A_FILE'
  | 'TOOL_NOT_A_DIRECTORY'
  | 'TOOL_BINARY_FILE'
  | 'TOOL_TOO_LARGE'
  | 'TOOL_FILE_CHANGED'
  | 'TOOL_FILE_EXISTS'
  | 'TOOL_NOT_ALLOWED'
  | 'TOOL_FILE_FAILED'
  | 'TOOL_NO_TEXT'
  | 'TOOL_TEXT_NOT_UNIQUE'
  | 'TOOL_BAD_PATTERN'
  | 'TOOL_CANNOT_START';

/**
 * A failure of a built-in tool, which the model gets as the result of its call. `code` says which.
 *
 * @example
 * ```ts
 * import { BuiltinError, builtins } from '@tapedeck/runtime';
 *
 * const { read_file } = builtins();
 * const options = { toolCallId: 'call-1', messages: [], context: { directory: '/nowhere' } };
 * try {
 *   await read_file?.execute?.({ path: 'notes.txt' }, options);
 * } catch (error) {
 *   if (!(error instanceof BuiltinError)) throw error;
 *   console.log(error.message); // cannot read 'notes.txt': it does not exist (TOOL_NO_FILE)
 * }
 * ```
 */
export class BuiltinError extends CodedError<BuiltinErrorCode> {
  override readonly name = 'BuiltinError';

  constructor(
    code: BuiltinErrorCode,
    message: string,
    options: ConstructorParameters<typeof CodedError>[2] = {},
  ) {
    super(code, `${message} (${code})`, options);
  }
}

/** A failure of the system as one of the tool. Errors of the tools, and aborts, pass as they are. */
export function asBuiltin(error: unknown, act: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof BuiltinError || typeof code !== 'string' || (error as Error).name === 'AbortError')
    return error;
  const why = reasons[code];
  return new BuiltinError(why?.code ?? 'TOOL_FILE_FAILED', `cannot ${act}: ${why?.text ?? code}`, {
    data: { errno: code },
    cause: error,
  });
}

const reasons: Readonly<Record<string, { readonly code: BuiltinErrorCode; readonly text: string }>> = {
  ENOENT: { code: 'TOOL_NO_FILE', text: 'it does not exist' },
  ENOTDIR: { code: 'TOOL_NOT_A_DIRECTORY', text: 'a part of its path is no directory' },
  EISDIR: { code: 'TOOL_NOT_A_FILE', text: 'it is a directory' },
  ENXIO: { code: 'TOOL_NOT_A_FILE', text: 'it is a pipe, a socket or a device' },
  EACCES: { code: 'TOOL_FILE_FAILED', text: 'the system does not permit it' },
  EPERM: { code: 'TOOL_FILE_FAILED', text: 'the system does not permit it' },
  EROFS: { code: 'TOOL_FILE_FAILED', text: 'the file system is read-only' },
  ENOSPC: { code: 'TOOL_FILE_FAILED', text: 'the disk is full' },
  ENAMETOOLONG: { code: 'TOOL_FILE_FAILED', text: 'its name is too long' },
  // What was opened by its real path has no links.
  ELOOP: { code: 'TOOL_FILE_CHANGED', text: 'it became a link while it was opened' },
};
