import type { Draft, Entry } from '@tapedeck/tape';
import { begins } from '../imported/blocks.ts';
import { type Cleaner, cleanerFor } from '../imported/cleaner.ts';
import { comparedMeta, contentMark } from '../imported/imported.ts';

/** What an import replaces; undefined for one that keeps secrets, where an earlier one may have replaced every form. */
export type Cleaning = Cleaner | undefined;

const everyForm = cleanerFor();

/** Whether one of two entries is the other one without its secrets: one was imported with them, the other was not. */
export function areAlikeButSecrets(one: Entry, other: Entry, clean: Cleaning): boolean {
  const [own, its] = [saidIn(one), saidIn(other)];
  return markOf(cleaned(own, clean)) === markOf(its) || markOf(own) === markOf(cleaned(its, clean));
}

/** Whether a message is the beginning of another one, with its secrets or without. */
export function isBeginningOf(part: Entry, whole: Entry, clean: Cleaning): boolean {
  const [own, its] = [saidIn(part), saidIn(whole)];
  return begins(own, its) || begins(cleaned(own, clean), its) || begins(own, cleaned(its, clean));
}

/** What the source says of an entry. */
function saidIn({ kind, payload, meta }: Entry): Draft {
  return { kind, payload, meta };
}

function cleaned(draft: Draft, clean: Cleaning): Draft {
  return (clean ?? everyForm)?.draft(draft) ?? draft;
}

function markOf({ payload, meta = {} }: Draft): string {
  return contentMark(JSON.stringify(payload), JSON.stringify(comparedMeta(meta)));
}
