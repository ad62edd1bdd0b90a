import { TapeError, type TapeErrorCode } from '../errors.ts';

/** Failures after which the same act can succeed: two acts waited for each other, or saw each other's writes. */
const repeatable: ReadonlySet<string> = new Set(['40001', '40P01', '55P03']);

/** Whether an act that has committed nothing may run again from its start. */
export function mayRepeat(error: unknown): boolean {
  return repeatable.has(codeOf(error)) || (error instanceof TapeError && error.data.reason === 'busy');
}

/** Whether the connection is of no use any more. */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  return (
    /^(?:08|57P0|25P0[34])/.test(code) ||
    /^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code) ||
    /terminated|not queryable|read timeout/.test(textOf(error))
  );
}

/** Whether a connection has prepared a statement whose columns have changed since: another one can do the same. */
export function isStale(error: unknown): boolean {
  return codeOf(error) === '0A000' && /cached plan/.test(textOf(error));
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a server cannot be used, for who repairs it: `data.reason` of the error. */
function reasonOf(error: unknown): { readonly reason: string; readonly why: string } | undefined {
  const [code, text] = [codeOf(error), textOf(error)];
  if (code === '28P01' || code === '28000')
    return { reason: 'password', why: 'the server does not accept the user and password' };
  if (/^SASL: .*password must be a/.test(text))
    return { reason: 'password', why: 'the server asks for a password, and none is given' };
  if (code === '3D000') return { reason: 'database', why: 'the server has no such database' };
  if (code === '42501') return { reason: 'privilege', why: `the user lacks a privilege: ${text}` };
  if (code === '25006') return { reason: 'read-only', why: 'the server only reads' };
  if (code === '08P01' && /startup parameter/.test(text))
    return { reason: 'pooler', why: 'a pooler between does not pass on what a connection sets' };
  if (code === '42704' || code === '22023' || code === '42601')
    return { reason: 'options', why: `the server does not take a setting of the connection: ${text}` };
  const { syscall } = (error ?? {}) as { readonly syscall?: unknown };
  // Files that the address names are read before anything is sent.
  if (/^(?:ENOENT|EACCES|EISDIR)$/.test(code) && syscall !== 'connect')
    return { reason: 'tls', why: `a file of its certificates cannot be read: ${text}` };
  if (isTls(code) || /does not support SSL|SSL\/TLS required/.test(text))
    return { reason: 'tls', why: `no safe connection was made: ${text}` };
  if (
    /^(?:ECONNREFUSED|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code) ||
    // No such socket.
    (code === 'ENOENT' && syscall === 'connect') ||
    /connection timeout|timeout expired/.test(text)
  )
    return { reason: 'unreachable', why: 'no server answers there' };
  return undefined;
}

/** The codes of Node.js for certificates that it does not trust. */
function isTls(code: string): boolean {
  return /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH|EPROTO)/.test(
    code,
  );
}

/** Turns errors of the server and of the connection into TapeErrors; others stay as they are. */
export function typed(shown: string, error: unknown): unknown {
  if (error instanceof TapeError) return error;
  const code = codeOf(error);
  const fail = (as: TapeErrorCode, why: string, reason: string) =>
    new TapeError(as, `cannot use ${shown}: ${why}`, {
      data: { server: shown, reason },
      // That of a refused password names the user.
      ...(reason !== 'password' && { cause: error }),
    });
  const known = reasonOf(error);
  if (known !== undefined) return fail('TAPE_CANNOT_OPEN', known.why, known.reason);
  if (code === '42P01' || code === '42703' || code === '42883')
    return fail('TAPE_CORRUPT', textOf(error), 'schema');
  if (code === '22021')
    return fail('TAPE_BAD_OPTION', 'it keeps no text with the character U+0000, and a value has it', 'text');
  if (mayRepeat(error)) return fail('TAPE_LOCKED', 'other acts did not let this one end', 'busy');
  if (isLost(error)) return fail('TAPE_IO', `the connection failed: ${textOf(error)}`, 'lost');
  if (/^(?:53|57|58)/.test(code)) return fail('TAPE_IO', `the server gave up: ${textOf(error)}`, 'failed');
  return error;
}
