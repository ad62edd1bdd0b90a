import { isObject } from '@tapedeck/tape/internal';
import { z } from 'zod';
import { CallFailed } from './command.ts';
import { fitted, fittedList } from './fit.ts';

/** Runs a command line, and returns the document that it prints. */
export type RunLine = (argv: readonly string[], stdin?: string) => Promise<unknown>;

/** A tool that `tape mcp` offers: its arguments, and the command lines that answer it. */
export interface TapeTool {
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodObject;
  /** Whether it changes the home. */
  readonly writes: boolean;
  run(args: unknown, tape: RunLine): Promise<unknown>;
}

/** A tool whose `run` receives what its input declares. */
function tool<Input extends z.ZodObject>(
  given: Omit<TapeTool, 'input' | 'run'> & {
    readonly input: Input;
    run(args: z.output<Input>, tape: RunLine): Promise<unknown>;
  },
): TapeTool {
  return given as TapeTool;
}

const text = (most: number) => z.string().min(1).max(most);
const name = text(500);
const session = name.describe('Name, alias or ULID of a session');
const position = z.int().min(1);
const limit = (most: number, usual: number) =>
  z.int().min(1).max(most).default(usual).describe(`At most so many (default ${usual})`);
const offset = z
  .int()
  .min(0)
  .max(100_000)
  .default(0)
  .describe('How many to leave out: `next` of the last answer');
const key = name.optional().describe('Idempotency key: a repeat with the same key changes nothing');

/** An option with a value that is no option itself; undefined gives none. */
const option = (flag: string, value: string | number | undefined): readonly string[] =>
  value === undefined ? [] : [`--${flag}=${value}`];
/** The same for a text, which would be the name of a file after `@`. */
const textOption = (flag: string, value: string | undefined): readonly string[] =>
  option(flag, value?.startsWith('@') === true ? `@${value}` : value);

/** A page of a list, and where the next one begins. */
function page(
  field: string,
  all: readonly unknown[],
  { offset, limit }: { offset: number; limit: number },
): object {
  const rows = fittedList(all.slice(offset, offset + limit));
  const next = offset + rows.length;
  return { [field]: rows, next: next < all.length ? next : null };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberIn(value: unknown, field: string): number {
  const found = isObject(value) ? value[field] : undefined;
  return typeof found === 'number' ? found : 0;
}

/** What is left of an answer that is one document. */
function whole(value: unknown): unknown {
  const found = fitted(value);
  if (found !== undefined) return found;
  throw new CallFailed({
    code: 'CLI_USAGE',
    message: 'cannot answer: it is too large; ask for a part of it',
  });
}

/** The tools, by name. */
export const tools: Readonly<Record<string, TapeTool>> = {
  sessions: tool({
    title: 'List sessions',
    description: 'Lists the sessions of the home, the one with the last message first.',
    input: z.strictObject({
      text: name.optional().describe('Only with this text in the name, the title or the first prompt'),
      all: z.boolean().optional().describe('Archived ones too'),
      limit: limit(200, 50),
      offset,
    }),
    writes: false,
    run: async ({ text, all, limit, offset }, tape) => {
      const argv = ['sessions', ...option('grep', text), ...(all === true ? ['--all'] : [])];
      const found = await tape([...argv, '-n', String(offset + limit + 1)]);
      return page('sessions', listOf(found), { offset, limit });
    },
  }),
  log: tool({
    title: 'Read the log of a session',
    description:
      'Reads entries of a session in their order: messages, calls of tools and their results, anchors. Without `from` the last ' +
      'ones. Long texts are cut.',
    input: z.strictObject({
      session,
      from: position.optional().describe('First position: `next` of the last answer'),
      kind: name.optional().describe('Only entries of this kind: message, tool-result, anchor, event, …'),
      own: z.boolean().optional().describe('Leave out what it inherits from its parent'),
      limit: limit(200, 50),
    }),
    writes: false,
    run: async ({ session, from, kind, own, limit }, tape) => {
      const only = [...option('kind', kind), ...(own === true ? ['--own'] : [])];
      const head = numberIn(await tape(['show', '--', session]), 'head');
      const part =
        from === undefined ? ['-n', String(limit)] : [`--from=${from}`, `--to=${from + limit - 1}`];
      const found =
        from !== undefined && from > head ? [] : await tape(['log', ...only, ...part, '--', session]);
      const all = listOf(found);
      const entries = from === undefined ? fittedList(all.toReversed()).toReversed() : fittedList(all);
      const last = entries.length < all.length ? numberIn(entries.at(-1), 'seq') : (from ?? head) + limit - 1;
      const next = from === undefined ? null : last < head ? last + 1 : null;
      return { entries, head, next };
    },
  }),
  search: tool({
    title: 'Search all sessions',
    description: 'Finds entries by their words, the best first.',
    input: z.strictObject({
      text: text(1_000).describe('Words to look for'),
      session: session.optional().describe('Only what this session sees'),
      limit: limit(100, 20),
      offset,
    }),
    writes: false,
    run: async ({ text, session, limit, offset }, tape) => {
      const words = text.startsWith('@') ? `@${text}` : text;
      const argv = ['search', ...option('session', session), '-n', String(offset + limit + 1), '--', words];
      const found = await tape(argv);
      const { hits, unsearched } = isObject(found) ? found : {};
      return { ...page('hits', listOf(hits), { offset, limit }), unsearched };
    },
  }),
  view: tool({
    title: 'See what the model of a session sees',
    description:
      'Gives the messages that the next model call of a session would get: since its last handoff or summary, without what a ' +
      'rewind hides. Without `offset` the last ones.',
    input: z.strictObject({
      session,
      at: name.optional().describe('As it was at this point: a position, or the name of an anchor'),
      limit: limit(200, 50),
      offset: offset.optional(),
    }),
    writes: false,
    run: async ({ session, at, limit, offset }, tape) => {
      const found = await tape(['view', '--', at === undefined ? session : `${session}@${at}`]);
      const { messages, ...facts } = isObject(found) ? found : {};
      const all = listOf(messages);
      const { explain: _, ...known } = facts;
      return {
        ...known,
        count: all.length,
        ...page('messages', all, { offset: offset ?? Math.max(0, all.length - limit), limit }),
      };
    },
  }),
  fork: tool({
    title: 'Fork a session',
    description:
      'Makes a child session that begins at a point of its parent, without copying. The parent does not change. Work in the child ' +
      'with append, and give its result back with merge.',
    input: z.strictObject({
      parent: session,
      at: name
        .optional()
        .describe('Last point that it inherits: a position, or an anchor (default: the head)'),
      since: name.optional().describe('Inherit only what follows this anchor or @position'),
      inherit: z.enum(['all', 'nothing']).optional(),
      name: name.optional().describe('Name of the child (default: made of that of the parent)'),
      task: text(100_000).optional().describe('What the child is for: its first message'),
      key,
    }),
    writes: true,
    run: async ({ parent, at, since, inherit, name, task, key }, tape) =>
      whole(
        await tape([
          'fork',
          ...option('since', since),
          ...option('inherit', inherit),
          ...option('as', name),
          ...textOption('task', task),
          ...option('key', key),
          '--',
          at === undefined ? parent : `${parent}@${at}`,
        ]),
      ),
  }),
  append: tool({
    title: 'Append messages to a session',
    description: 'Appends messages, all or none. Creates the session if it does not exist.',
    input: z.strictObject({
      session: name.describe('Name of the session'),
      messages: z
        .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: text(1_000_000) }))
        .min(1)
        .max(100),
      key,
    }),
    writes: true,
    run: async ({ session, messages, key }, tape) => {
      const lines = messages.map((message) => `${JSON.stringify(message)}\n`).join('');
      return whole(await tape(['append', '--new', '--wait=2', ...option('key', key), '--', session], lines));
    },
  }),
  anchor: tool({
    title: 'Mark a point of a session',
    description:
      'Writes an anchor, a name for the head of a session, with a state. With `summary` it is a handoff: views begin there, ' +
      'with the summary.',
    input: z.strictObject({
      session,
      name: name.describe('Name of the anchor'),
      state: z.record(z.string(), z.json()).optional(),
      summary: text(100_000).optional(),
      key,
    }),
    writes: true,
    run: async ({ session, name, state, summary, key }, tape) =>
      whole(
        await tape([
          summary === undefined ? 'anchor' : 'handoff',
          ...textOption('summary', summary),
          ...option('state', state === undefined ? undefined : JSON.stringify(state)),
          ...option('key', key),
          '--',
          session,
          name,
        ]),
      ),
  }),
  merge: tool({
    title: 'Merge a child into its parent',
    description:
      'Appends the result of a child to its parent, as one message. With `check` it only reports what both changed since the fork.',
    input: z.strictObject({
      child: session,
      result: text(100_000)
        .optional()
        .describe('The result (default: that of the child, else its last answer)'),
      check: z.boolean().optional(),
    }),
    writes: true,
    run: async ({ child, result, check }, tape) =>
      whole(
        await tape([
          'merge',
          '--wait=2',
          ...textOption('result', result),
          ...(check === true ? ['--check'] : []),
          '--',
          child,
        ]),
      ),
  }),
  diff: tool({
    title: 'Compare two sessions',
    description: 'Shows what two sessions have in common, and the last messages of each since then.',
    input: z.strictObject({ a: session, b: session, limit: limit(100, 20) }),
    writes: false,
    run: async ({ a, b, limit }, tape) => whole(await tape(['diff', '-n', String(limit), '--', a, b])),
  }),
  trace: tool({
    title: 'Trace an entry',
    description:
      'Shows where an entry comes from: through merges to the session that made it, and through forks.',
    input: z.strictObject({ session, at: name.describe('A position, or the name of an anchor') }),
    writes: false,
    run: async ({ session, at }, tape) => whole(await tape(['trace', '--', `${session}@${at}`])),
  }),
  check: tool({
    title: 'Check sessions',
    description: 'Verifies the hashes of entries, the lineage, and that nothing is unfinished.',
    input: z.strictObject({ session: session.optional() }),
    writes: false,
    run: async ({ session }, tape) =>
      whole(await tape(['check', ...(session === undefined ? [] : ['--', session])])),
  }),
};
