import { type HomeStore, TapeError } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { safe } from '../escape.ts';
import type { Io } from '../io.ts';
import { canAsk } from '../question.ts';
import { ofId, relative } from '../reference.ts';
import { similarSessions } from '../similar.ts';
import { assertNoPoint } from './place.ts';

/**
 * Finds the session that a command line means which would create it: a missing one whose name is nearly that of another,
 * or its beginning, is more often a slip than new. Asks the user on a terminal. Returns the name of the session.
 * @throws TAPE_NO_SESSION where the user cannot be asked, or declines; UsageError for a point of a session
 */
export async function meantSession(
  store: HomeStore,
  name: string,
  {
    isNew,
    context,
    asking = (text) => linesTyped(text, context.io),
  }: {
    readonly isNew: boolean | undefined;
    readonly context: Context;
    /** Asks, again after each line that the user types. */
    readonly asking?: (question: string) => AsyncIterable<string>;
  },
): Promise<string> {
  const found = relative(store, name);
  if (found !== undefined) return found.session;
  if (isNew === true) return name;
  assertNoPoint(store, name);
  assertNoId(store, name);
  const near = similarSessions(store, name);
  if (near.length === 0) return name;
  const meant = canAsk(context)
    ? await meantBy(asking(safe(question(name, near))), { name, near })
    : undefined;
  if (meant === undefined) throw refusal(name, near);
  return meant;
}

/**
 * Refuses the beginning of the ids of several sessions: `find` finds one alone. Six characters are no other name.
 * @throws UsageError
 */
function assertNoId(store: HomeStore, name: string): void {
  if (name.length >= 6 && store.sessions.find(name) === undefined) ofId(store, name);
}

/**
 * Refuses to create a session whose name is nearly that of another, or its beginning.
 * @throws TAPE_NO_SESSION; UsageError for a point of a session
 */
export function assertNoSlip(store: HomeStore, name: string): void {
  assertNoPoint(store, name);
  assertNoId(store, name);
  const near = similarSessions(store, name);
  if (near.length > 0) throw refusal(name, near);
}

function refusal(session: string, near: readonly string[]): TapeError {
  const names = near.map(quote).join(' and ');
  return new TapeError(
    'TAPE_NO_SESSION',
    `cannot find session ${quote(session)}: it does not exist, and ${names} ${near.length === 1 ? 'does' : 'do'}`,
    {
      data: { session, near: [...near], creates: true },
    },
  );
}

/** One name is used with `y`, one of several with its number. */
function question(name: string, near: readonly string[]): string {
  const [first = '', ...others] = near;
  const uses =
    others.length === 0 ? `Use ${first} [y]` : `Use ${near.map((one, i) => `${one} [${i + 1}]`).join(', ')}`;
  return `Session ${name} does not exist. ${uses}, create ${name} [c], or stop [Enter]? `;
}

/**
 * The session that the first line means which is one of the answers: a near one, or the new one; undefined to stop, as does
 * the end of the input.
 */
async function meantBy(
  lines: AsyncIterable<string>,
  { name, near }: { readonly name: string; readonly near: readonly string[] },
): Promise<string | undefined> {
  for await (const line of lines) {
    const answer = line.trim().toLowerCase();
    if (/^(?:|n|no|q|quit|s|stop)$/.test(answer)) return undefined;
    if (/^(?:c|create)$/.test(answer)) return name;
    const isYes = near.length === 1 && /^(?:y|yes)$/.test(answer);
    const used = near[isYes ? 0 : Number(answer) - 1];
    if (used !== undefined) return used;
  }
  return undefined;
}

/** Asks on stderr, again after each line of stdin. */
async function* linesTyped(question: string, { stdin, err }: Io): AsyncGenerator<string> {
  let typed = '';
  err(question);
  for await (const chunk of stdin) {
    typed += Buffer.from(chunk).toString();
    const lines = typed.split('\n');
    // The user has not ended the line.
    typed = lines.pop() ?? '';
    for (const line of lines) {
      yield line;
      err(question);
    }
  }
  err('\n');
}
