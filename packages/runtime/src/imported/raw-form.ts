import type { Draft } from '@tapedeck/tape';
import type { Cleaner } from './cleaner.ts';

/** What drafts were before secrets were replaced in them. */
const raw = new WeakMap<Draft, Draft>();

/** A draft without secrets, of which `rawForm` knows how it was with them. */
export function cleaned(draft: Draft, clean: Cleaner): Draft {
  const one = clean.draft(draft);
  if (one !== draft && one.meta?.redacted !== undefined) raw.set(one, draft);
  return one;
}

/** A draft as it was before secrets were replaced in it; undefined where it has none. */
export function rawForm(draft: Draft): Draft | undefined {
  return raw.get(draft);
}
