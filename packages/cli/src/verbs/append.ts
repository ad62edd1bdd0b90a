import { randomUUID } from 'node:crypto';
import {
  type Appended,
  type Draft,
  type Json,
  openTapeStore,
  type SqliteTapeStore,
  TapeError,
} from '@tapedeck/tape';
import { isObject, parseJson } from '@tapedeck/tape/internal';
import { assertDraft } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { decode, readLines } from '../input.ts';
import { createOptions } from '../options/create.ts';
import { relative } from '../reference.ts';
import { drained } from '../session/drained.ts';
import { ensure } from '../session/ensure.ts';
import { assertNoSlip } from '../session/meant.ts';
import { defineVerb, type Verb } from './verb.ts';

export const append: Verb = defineVerb({
  command: 'append <name>',
  group: 'Change',
  summary: 'Append JSON lines from stdin, all or none',
  detail:
    'A line is {"role":"user","content":"…"} or {"kind":…,"payload":…}, with an optional "name", "meta" and "key". ' +
    'Creates the session if it does not exist. While another process writes it, the lines wait in its inbox.',
  examples: [
    [`echo '{"role":"user","content":"hello"}' | tape append main`, 'Append one message'],
    ['tape append main --each --jsonl < lines.jsonl', 'Commit and acknowledge every line as it arrives'],
  ],
  arguments: { name: 'Session to append to' },
  options: {
    ...createOptions,
    each: { type: 'boolean', describe: 'Commit every line as it arrives' },
    wait: { type: 'number', negatable: true, default: 10, describe: 'Seconds to wait for a busy session' },
    key: {
      type: 'string',
      describe: 'Idempotency key of the batch, with --each of its lines: a repeat adds nothing',
    },
  },
  run: async (args, context) =>
    await context.writing(async (store) => {
      const { each, wait, key } = args;
      const name = relative(store, args.name)?.session ?? args.name;
      // Stdin has the lines, and no answer to a question.
      if (args.new !== true) assertNoSlip(store, name);
      // All input is read and checked before the session is created, so that bad input creates nothing.
      if (each === true) return await appendEach(store, { name, key }, context);
      const drafts: Draft[] = [];
      for await (const { number, bytes } of readLines(context.io.stdin))
        drafts.push(...readDraft(bytes, number));
      if (drafts.length === 0) throw new UsageError('cannot append: stdin has no lines');
      rehearse(store, name, drafts, key);
      ensure(store, name, context);
      return await appendBatch(
        store,
        { name, drafts, key: key ?? randomUUID(), waitMs: wait * 1000 },
        context,
      );
    }),
});

/**
 * Appends the batch of a new session to a store in memory first, so that a refused batch creates no session.
 */
function rehearse(store: SqliteTapeStore, name: string, drafts: readonly Draft[], key?: string): void {
  if (store.sessions.find(name) !== undefined) return;
  using scratch = openTapeStore(':memory:');
  scratch.sessions.open(name);
  scratch.entries.append(name, drafts, { key });
}

async function appendEach(
  store: SqliteTapeStore,
  { name, key }: { readonly name: string; readonly key: string | undefined },
  context: Context,
): Promise<number> {
  for await (const { number, bytes } of readLines(context.io.stdin)) {
    const drafts = readDraft(bytes, number);
    if (drafts.length === 0) continue;
    rehearse(store, name, drafts);
    ensure(store, name, context);
    // Each line is an act of its own, so it needs a key of its own.
    const done = store.entries.append(name, drafts, key === undefined ? {} : { key: `${key}:${number}` });
    const [entry] = store.entries.read(name, { from: done.to, to: done.to });
    await context.answer({
      json: { seq: done.to, hash: entry?.hash ?? done.head },
      quiet: String(done.to),
      human: `${done.session}@${done.to}`,
    });
  }
  return exit.done;
}

interface Batch {
  readonly name: string;
  readonly drafts: readonly Draft[];
  readonly key: string;
  readonly waitMs: number;
}

async function appendBatch(store: SqliteTapeStore, batch: Batch, context: Context): Promise<number> {
  const { name, drafts, key } = batch;
  const print = async (done: Appended) => {
    const { session, from, to, added, repeated } = done;
    await context.answer({
      json: { session, from, to, added, repeated },
      quiet: String(to),
      human:
        added === 0
          ? `${session}@${from}-${to} exists already: nothing to do`
          : `Appended ${session}@${from === to ? from : `${from}-${to}`}`,
    });
    return exit.done;
  };
  try {
    return await print(store.entries.append(name, drafts, { key }));
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') throw error;
  }
  const { id } = store.inbox.post(name, { body: { type: 'append', drafts }, key, source: 'cli' });
  context.status(`Another process is writing ${name}: posted to its inbox`);
  if (await drained(store, { name, id, waitMs: batch.waitMs })) {
    // The owner has appended the batch; a repeat with the same key returns its positions.
    const done = store.entries.append(name, drafts, { key });
    return await print({ ...done, added: done.repeated, repeated: 0 });
  }
  await context.answer({
    json: { session: name, queued: id },
    quiet: id,
    human: `Queued for ${name} as ${id}: the process that writes it will append it`,
  });
  return exit.accepted;
}

/** The draft of one line; none for a blank line. */
function readDraft(bytes: Uint8Array, number: number): Draft[] {
  const what = `line ${number}`;
  const fail = (why: string) => new UsageError(`cannot append: ${what}: ${why}`, { data: { line: number } });
  let text: string;
  try {
    text = decode(bytes, what);
  } catch {
    throw fail('it is not UTF-8');
  }
  if (text.trim() === '') return [];
  let value: unknown;
  try {
    value = parseJson(text, what);
  } catch (error) {
    throw fail((error as Error).message.replace(/^cannot read line \d+: /, ''));
  }
  if (!isObject(value)) throw fail('it must be a JSON object');
  const draft = toDraft(value, fail);
  try {
    assertDraft(draft);
  } catch (error) {
    throw fail((error as Error).message.replace(/^cannot (?:append|store)(?: [^:]*)?: /, ''));
  }
  return [draft];
}

const fields = new Set(['kind', 'role', 'content', 'payload', 'key', 'name', 'meta', 'mark']);

function toDraft(value: Record<string, Json>, fail: (why: string) => UsageError): Draft {
  const unknown = Object.keys(value).find((field) => !fields.has(field));
  if (unknown !== undefined) throw fail(`unknown field ${JSON.stringify(unknown.slice(0, 40))}`);
  const { kind = 'message', role = 'user', content, payload, key, name, meta, mark } = value;
  if (typeof kind !== 'string') throw fail('"kind" must be a string');
  for (const [field, text] of [
    ['key', key],
    ['name', name],
  ] as const)
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      throw fail(`"${field}" must be a non-empty string`);
  if (meta !== undefined && !isObject(meta)) throw fail('"meta" must be an object');
  if (content === undefined && payload === undefined) throw fail('it has neither "content" nor "payload"');
  if (content !== undefined && payload !== undefined) throw fail('it has both "content" and "payload"');
  if (mark !== undefined && (kind !== 'anchor' || (mark !== 'anchor' && mark !== 'boundary')))
    throw fail('"mark" must be "anchor" or "boundary", and needs "kind": "anchor"');
  return {
    kind: kind as Draft['kind'],
    payload: 'payload' in value ? payload : kind === 'message' ? { role, content } : content,
    ...(typeof key === 'string' && { key }),
    ...(typeof name === 'string' && { name }),
    ...(isObject(meta) && { meta }),
    ...(kind === 'anchor' && { mark: mark === 'boundary' ? 'boundary' : 'anchor' }),
  };
}
