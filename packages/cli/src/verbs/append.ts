import { randomUUID } from 'node:crypto';
import { type Appended, type Draft, openTapeStore, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { readLines } from '../input.ts';
import { createOptions } from '../options/create.ts';
import { counted } from '../output/counted.ts';
import { relative } from '../reference.ts';
import { readDraft } from '../session/draft-line.ts';
import { drained } from '../session/drained.ts';
import { ensure } from '../session/ensure.ts';
import { assertNoSlip } from '../session/meant.ts';
import { defineVerb, type Verb } from './verb.ts';

export const append: Verb = defineVerb({
  command: 'append <name>',
  group: 'Change',
  summary: 'Append JSON lines from stdin, all or none',
  detail:
    'A line is {"role":"user","content":"…"} or {"kind":…,"payload":…}, with an optional "name", "meta" and "key", or one of ' +
    'log --jsonl. Of those, it leaves out what only an act writes: starts, merges, states of tasks, approvals. It refuses rewinds, ' +
    'redactions, erased messages, summaries that keep later entries, and integers above 2^53 - 1. ' +
    'Creates the session if it does not exist. While another process writes it, the lines wait in its inbox.',
  examples: [
    [`echo '{"role":"user","content":"hello"}' | tape append main`, 'Append one message'],
    ['tape log main --jsonl --own | tape append copy', 'Write the entries of main to another session'],
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
      let leftOut = 0;
      for await (const { number, bytes } of readLines(context.io.stdin)) {
        const draft = readDraft(bytes, number);
        if (draft === 'act') leftOut += 1;
        else if (draft !== undefined) drafts.push(draft);
      }
      sayLeftOut(leftOut, context);
      if (drafts.length === 0)
        throw new UsageError(`cannot append: stdin has no lines${leftOut === 0 ? '' : ' but those'}`);
      rehearse(store, name, drafts, key);
      const isNew = store.sessions.find(name) === undefined;
      ensure(store, name, context);
      return await appendBatch(
        store,
        { name, drafts, isNew, key: key ?? randomUUID(), waitMs: wait * 1000 },
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
  let leftOut = 0;
  let back: string | undefined;
  const isNew = store.sessions.find(name) === undefined;
  for await (const { number, bytes } of readLines(context.io.stdin)) {
    const draft = readDraft(bytes, number);
    if (draft === 'act') leftOut += 1;
    if (draft === 'act' || draft === undefined) continue;
    const drafts = [draft];
    rehearse(store, name, drafts);
    ensure(store, name, context);
    // Each line is an act of its own, so it needs a key of its own.
    const done = store.entries.append(name, drafts, key === undefined ? {} : { key: `${key}:${number}` });
    if (done.added > 0) back ??= wayBack(store, done, drafts, isNew);
    const [entry] = store.entries.read(name, { from: done.to, to: done.to });
    await context.answer({
      json: { seq: done.to, hash: entry?.hash ?? done.head },
      quiet: String(done.to),
      human: `${done.session}@${done.to}`,
    });
  }
  sayLeftOut(leftOut, context);
  const { json, jsonl } = context.options;
  if (back !== undefined && json !== true && jsonl !== true)
    context.status(context.inHome(`${back.replace(/^./, (c) => c.toUpperCase())}`));
  return exit.done;
}

/**
 * How to take back what was appended: with the session, if that is new; by a rewind, where it begins with a prompt; else
 * another session goes on from before it.
 */
function wayBack(
  store: SqliteTapeStore,
  { session, from, to }: Appended,
  [first]: readonly Draft[],
  isNew: boolean,
): string {
  if (isNew) return `undo with: tape archive ${session}`;
  if (first?.kind === 'anchor' && from === to) return `undo with: tape undo ${session}@${from}`;
  const isPrompt = first?.kind === 'message' && isObject(first.payload) && first.payload.role === 'user';
  if (isPrompt && first.meta?.source !== 'merge') return `undo with: tape rewind ${session}@${from}`;
  const before = store.views
    .ranges(session)
    .findLast((range) => range.hiddenBy === undefined && range.from < from);
  return `continue without it in a branch with: tape branch ${session}@${Math.min(before?.to ?? from, from - 1)}`;
}

function sayLeftOut(count: number, { status }: Context): void {
  if (count > 0) status(`Left out ${counted(count, 'entry', 'entries')} that only an act writes`);
}

interface Batch {
  readonly name: string;
  readonly drafts: readonly Draft[];
  /** Whether the session was created for it. */
  readonly isNew: boolean;
  readonly key: string;
  readonly waitMs: number;
}

async function appendBatch(store: SqliteTapeStore, batch: Batch, context: Context): Promise<number> {
  const { name, drafts, isNew, key } = batch;
  const print = async (done: Appended) => {
    const { session, from, to, added, repeated } = done;
    await context.answer({
      json: { session, from, to, added, repeated },
      quiet: String(to),
      human:
        added === 0
          ? `${session}@${from}-${to} exists already: nothing to do`
          : `Appended ${session}@${from === to ? from : `${from}-${to}`}${repeated > 0 ? '' : context.inHome(` (${wayBack(store, done, drafts, isNew)})`)}`,
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
