/**
 * Why a file could not be used, as the system says it: without the code, the system call and the names that it got, which
 * can be those of drafts.
 */
export function systemFault(cause: unknown): string {
  const { message } = cause as Error;
  return message.replace(/^[A-Z0-9]+: (.+?), \w+(?: '.*)?$/s, '$1');
}
