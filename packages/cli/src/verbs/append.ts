import { randomUUID } from 'node:crypto';
import {
  type Appended,
  type Draft,
  type HomeStore,
  openTapeStore,
  type Seq,
  TapeError,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { normalise } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { callerPrefix, type LoggedLine, readDraft } from '../copied/draft-line.ts';
import { CopiedLog, type Planned } from '../copied/log.ts';
import { placed } from '../copied/placed.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { readLines } from '../input.ts';
import { createOptions } from '../options/create.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
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
    'A line is {"role":"user","content":"…"} or {"kind":…,"payload":…}, with an optional "name", "meta" and "key", or one of ' +
    'log --jsonl: the copy of a log has the same view, and the same entries but those that only an act writes, such as starts, marks of ' +
    'merges and approvals, and erased ones. Rewinds, kept tails and prunings refer to the entries of the copy. Integers above 2^53 - 1 are refused. ' +
    'Creates the session if it does not exist. While another process writes it, lines that refer to no other wait in its inbox.',
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
      const copy = new CopiedLog();
      const planned: Planned[] = [];
      await withProgress(context, async (progress) => {
        const shown = progress('Reading lines');
        for await (const { number, bytes } of readLines(context.io.stdin)) {
          planned.push(...plan(copy, readDraft(bytes, number)));
          if (number % 1_000 === 0) shown({ done: number });
        }
      });
      planned.push(...copy.end());
      sayCopied(copy, context);
      if (planned.length === 0)
        throw new UsageError(`cannot append: stdin has no lines${copy.acts === 0 ? '' : ' but those'}`);
      const batch = { name, planned, key: key ?? randomUUID(), waitMs: wait * 1000 };
      const isNew = store.sessions.find(name) === undefined;
      if (isNew) rehearse(name, placed(planned, { ...batch, head: 1 }).drafts, key);
      ensure(store, name, context);
      return await appendBatch(store, { ...batch, isNew }, context);
    }),
});

/** Plans what a line becomes: of a message of results, each result is an entry. */
function plan(copy: CopiedLog, line: Draft | LoggedLine | undefined): readonly Planned[] {
  if (line === undefined) return [];
  return 'draft' in line ? copy.logged(line) : normalise(line).flatMap((draft) => copy.plain(draft));
}

/**
 * Appends the batch of a new session to a store in memory first, so that a refused batch creates no session.
 */
function rehearse(name: string, drafts: readonly Draft[], key?: string): void {
  using scratch = openTapeStore(':memory:');
  scratch.sessions.open(name);
  scratch.entries.append(name, drafts, { key });
}

async function appendEach(
  store: HomeStore,
  { name, key }: { readonly name: string; readonly key: string | undefined },
  context: Context,
): Promise<number> {
  let back: string | undefined;
  const head = store.sessions.find(name)?.head;
  const copy = new CopiedLog();
  /** The positions of what was appended. */
  const seqs: Seq[] = [];
  const at = (entry: number) => {
    const before = (seqs[0] ?? (head ?? 1) + 1) - 1;
    return entry < 0 ? before : (seqs[entry] ?? (seqs.at(-1) ?? before) + 1);
  };
  const add = async (planned: readonly Planned[], number: number) => {
    for (const [i, one] of planned.entries()) {
      const drafts = [one(at)];
      if (seqs.length === 0 && head === undefined) rehearse(name, drafts);
      ensure(store, name, context);
      // Each line is an act of its own, so it needs a key of its own.
      const own = `${key}:${number}${i === 0 ? '' : `.${i + 1}`}`;
      const done = store.entries.append(name, drafts, key === undefined ? {} : { key: own });
      seqs.push(done.to);
      if (done.added > 0) back ??= wayBack(store, done, drafts, head === undefined);
      const [entry] = store.entries.read(name, { from: done.to, to: done.to });
      await context.answer({
        json: { seq: done.to, hash: entry?.hash ?? done.head },
        quiet: String(done.to),
        human: `${done.session}@${done.to}`,
      });
    }
  };
  let last = 0;
  for await (const { number, bytes } of readLines(context.io.stdin)) {
    await add(plan(copy, readDraft(bytes, number)), number);
    last = number;
  }
  await add(copy.end(), last + 1);
  sayCopied(copy, context);
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
  store: HomeStore,
  { session, from, to }: Appended,
  [first]: readonly Draft[],
  isNew: boolean,
): string {
  if (isNew) return `undo with: ${commandLine('archive', [session])}`;
  if (first?.kind === 'anchor' && from === to)
    return `undo with: ${commandLine('undo', [`${session}@${from}`])}`;
  const isPrompt = first?.kind === 'message' && isObject(first.payload) && first.payload.role === 'user';
  if (isPrompt && first.meta?.source !== 'merge')
    return `undo with: ${commandLine('rewind', [`${session}@${from}`])}`;
  const before = store.views
    .ranges(session)
    .findLast((range) => range.hiddenBy === undefined && range.from < from);
  return `continue without it in a branch with: ${commandLine('branch', [`${session}@${Math.min(before?.to ?? from, from - 1)}`])}`;
}

function sayCopied({ acts, erased }: CopiedLog, { status }: Context): void {
  if (acts > 0) status(`Left out ${counted(acts, 'entry', 'entries')} that only an act writes`);
  if (erased > 0)
    status(
      `${counted(erased, 'entry has', 'entries have')} no content: views of the copy show as little of ${erased === 1 ? 'it' : 'them'}`,
    );
}

interface Batch {
  readonly name: string;
  readonly planned: readonly Planned[];
  /** Whether the session was created for it. */
  readonly isNew: boolean;
  readonly key: string;
  readonly waitMs: number;
}

/** How often a batch that refers to positions is placed again, when others append meanwhile. */
const placesMax = 10;

async function appendBatch(store: HomeStore, batch: Batch, context: Context): Promise<number> {
  const { name, planned, isNew, key } = batch;
  let drafts: readonly Draft[] = [];
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
  for (let place = 1; ; place += 1) {
    const { head, headHash } = store.sessions.find(name) ?? { head: 1, headHash: '' };
    let { refers, ...found } = placed(planned, { head, key });
    if (refers) found = placed(planned, { head, key, known: keysOf(store, name) });
    drafts = found.drafts;
    try {
      return await print(
        store.entries.append(name, drafts, { key, ...(refers && { expectHead: headHash }) }),
      );
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
      if (error.code === 'TAPE_STALE_HEAD' && place < placesMax) continue;
      // Where the entries of an inbox will be is not known.
      if (error.code !== 'TAPE_BUSY' || refers) throw error;
      break;
    }
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

/** The positions of the entries of a session that have a key of a caller. */
function keysOf(store: HomeStore, name: string): ReadonlyMap<string, Seq> {
  const keys = new Map<string, Seq>();
  for (const { key, seq } of store.entries.read(name, { own: true }))
    if (key?.startsWith(callerPrefix)) keys.set(key.slice(callerPrefix.length), seq);
  return keys;
}
