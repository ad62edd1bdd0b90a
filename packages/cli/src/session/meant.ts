import { type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { safe } from '../escape.ts';
import type { Io } from '../io.ts';
import { relative } from '../reference.ts';
import { similarSessions } from '../similar.ts';
import { assertNoPoint } from './place.ts';

/**
 * Finds the session that a command line means which would create it: a missing one whose name is nearly that of another,
 * or its beginning, is more often a slip than new. Asks the user on a terminal. Returns the name of the session.
 * @throws TAPE_NO_SESSION where the user cannot be asked, or declines; UsageError for a point of a session
 */
export async function meantSession(
  store: SqliteTapeStore,
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
  const near = similarSessions(store, name);
  const [first] = near;
  if (first === undefined) return name;
  const answer = canAsk(context) ? await answerAmong(asking(safe(question(name, first)))) : 'q';
  if (answer === 'y') return first;
  if (answer === 'n') return name;
  throw refusal(name, near);
}

/**
 * Refuses to create a session whose name is nearly that of another, or its beginning.
 * @throws TAPE_NO_SESSION; UsageError for a point of a session
 */
export function assertNoSlip(store: SqliteTapeStore, name: string): void {
  assertNoPoint(store, name);
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

function question(name: string, near: string): string {
  return `Session ${name} does not exist. Did you mean ${near}? [y]es, [n]ew, [q]uit: `;
}

/** Whether a person reads the question and types the answer. */
function canAsk({ io, options }: Context): boolean {
  const isForProgram = options.json === true || options.jsonl === true || options.quiet === true;
  return io.stdinIsTerminal && io.statusIsTerminal && !isForProgram;
}

/** The first line that is one of the offered answers; the end of the input means to quit. */
async function answerAmong(lines: AsyncIterable<string>): Promise<'y' | 'n' | 'q'> {
  for await (const line of lines) {
    const [answer] = /^(?:y|n|q)(?=es$|ew$|uit$|$)/.exec(line.trim().toLowerCase()) ?? [];
    if (answer !== undefined) return answer as 'y' | 'n' | 'q';
  }
  return 'q';
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
