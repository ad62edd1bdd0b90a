import { jsonText, safe } from '../escape.ts';
import { describeError } from './describe.ts';

/**
 * The text of an error for stderr: a message with a hint, or one JSON document.
 * @param given a hint in the place of the error's own
 */
export function errorText(
  error: unknown,
  { asJson, hint: given }: { readonly asJson: boolean; readonly hint?: string | undefined },
): string {
  const { code, message, data, hint: own } = describeError(error);
  const hint = given ?? own;
  if (asJson) return `${jsonText({ error: { code, message, ...(hint !== undefined && { hint }), data } })}\n`;
  return safe(`Error: ${message}\n${hint === undefined ? '' : `Hint: ${hint}\n`}`);
}

/** Whether a command line requests JSON, also for its errors. */
export function requestsJson(argv: readonly string[]): boolean {
  return argv.includes('--json') || argv.includes('--jsonl');
}
