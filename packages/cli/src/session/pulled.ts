import type { Pulled } from '@tapedeck/tape/remotes';
import type { Context } from '../context.ts';
import { commandLine, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { refusedJson } from '../output/refused.ts';

/** What a pull brought, as JSON. */
export function pulledJson({
  packs,
  bytes,
  sessions,
  entries,
  lines,
  filled,
  refused,
  failed,
  aliasesTaken,
  redactedElsewhere,
}: Pulled): Readonly<Record<string, unknown>> {
  return {
    ...{ packs, bytes, sessions, entries, lines, filled, refused: refusedJson(refused) },
    failed: failed.map(({ pack, error: { code, message } }) => ({ pack, code, message })),
    aliases_taken: aliasesTaken,
    redacted_elsewhere: redactedElsewhere.map(({ session, seq }) => `${session}@${seq}`),
  };
}

/** Says what a pull could not take in, and how to go on; returns the exit code of it. */
export function sayLeft(
  { refused, failed, aliasesTaken, redactedElsewhere }: Pulled,
  { url }: { readonly url: string },
  { status }: Pick<Context, 'status'>,
): number {
  for (const alias of aliasesTaken) status(`the other name ${alias} is taken here, and was left out`);
  if (redactedElsewhere.length > 0)
    status(
      `redacted elsewhere, and still here: ${redactedElsewhere.map(({ session, seq }) => `${session}@${seq}`).join(', ')}; erase each with: tape redact SESSION@SEQ`,
    );
  for (const { session, error } of refused) status(`${session} was left out: ${error.message}`);
  for (const { pack, error } of failed) status(`${pack} was left out: ${error.message}`);
  if (failed.length > 0) return exit.failed;
  if (refused.length === 0) return exit.done;
  const [first] = refused;
  const session = shellWord(first?.session ?? '');
  // An archived session keeps its name.
  const isTaken = first?.error.code === 'TAPE_EXISTS';
  const other = isTaken ? 'free the name here, as tape delete and tape unalias do' : 'archive the one here';
  status(
    `Hint: take ${session} in under another name with: tape clone ${shellWord(url)} DIR; ${commandLine('export', [session], ['--home DIR'])} | tape import - --as NEW; or ${other}`,
  );
  return exit.conflict;
}

/** What a pull brought, in a few words. */
export function broughtText({ entries, lines, sessions, filled }: Pulled): string {
  const content = filled === 0 ? '' : `, and the content of ${counted(filled, 'entry', 'entries')}`;
  return `${counted(entries, 'entry', 'entries')} and ${counted(lines, 'line')} of ${counted(sessions.length, 'session')}${content}`;
}
