import type { Draft, Redact } from '@tapedeck/tape';
import { redactedDraft, redactorFor } from '@tapedeck/tape/internal';

/** Replaces what has the form of a secret. The same input gives the same output. */
export interface Cleaner {
  draft(draft: Draft): Draft;
  text(text: string): string;
}

/**
 * The cleaner of a setting, which looks at all that a transcript has, whatever the setting says of that; undefined for
 * `false`.
 * @throws TypeError for an invalid pattern
 */
export function cleanerFor(redact: Redact = true): Cleaner | undefined {
  const redactor = redactorFor(typeof redact === 'object' ? { ...redact, in: 'all' } : redact && 'all');
  if (redactor === undefined) return undefined;
  return { draft: (draft) => redactedDraft(draft, redactor), text: redactor.text };
}
