import { jsonText, safe } from '../escape.ts';
import { describeError } from './describe.ts';

/**
 * The text of an error for stderr: a message with a hint, or one JSON document.
 * @param hint for an error that has none
 */
export function errorText(
  error: unknown,
  { asJson, hint: other }: { readonly asJson: boolean; readonly hint?: string | undefined },
): string {
  const { code, message, data, hint = other } = describeError(error);
  if (asJson) return `${jsonText({ error: { code, message, ...(hint !== undefined && { hint }), data } })}\n`;
  return safe(`Error: ${message}\n${hint === undefined ? '' : `Hint: ${hint}\n`}`);
}

/** Whether a command line requests JSON, also for its errors. */
export function requestsJson(argv: readonly string[]): boolean {
  return argv.includes('--json') || argv.includes('--jsonl');
}
