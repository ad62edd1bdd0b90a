import { resolve } from 'node:path';
import type { HomeStore, Merged, MergeRequest, Seq, SessionInfo } from '@tapedeck/tape';
import { patchPaths } from '@tapedeck/tape/internal';
import type { MergeStrategy } from '@tapedeck/tape/store';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { NothingToMergeError, UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { readText } from '../input.ts';
import { type ModelArgs, modelOptions } from '../options/model.ts';
import { type MergeCommand, mergeAndReport, reportQueued } from '../session/merging.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { previewMerge } from '../session/preview.ts';
import { giveTurn, idleOrInterrupted } from '../session/turn.ts';
import { defineVerb, type Verb } from './verb.ts';

export const merge: Verb = defineVerb({
  command: 'merge <child>',
  group: 'Merge',
  summary: 'Append the result of a child to its parent',
  detail:
    'Appends one anchor and one message to the parent. A repeated merge changes nothing; if the child has new entries, it merges ' +
    'those. A child that has not run is not merged, unless --result or --strategy says with what. For a child with a worktree, the merge records a patch and removes the worktree. --apply applies the patch to the ' +
    'files of the repository, all or none, without changing the index; if the patch does not apply, the child is not merged. ' +
    'For a child that was forked with --deliver merge+turn, it then runs the parent, or leaves the message for its next run.',
  examples: [
    ['tape merge main-fork-3fa1c2d4', 'Merge the last answer of the child'],
    ['tape merge fix --result "Nothing to do"', 'Merge this text instead'],
    [
      'tape merge fix --strategy summary --model openai-compatible/gpt-oss',
      'Merge a summary that a model writes',
    ],
    ['tape merge fix --check', 'Report conflicts without merging'],
    ['tape merge fix --dry-run', 'Show the entries without writing them'],
    ['tape merge fix --apply', 'Merge, and apply the patch of the worktree'],
  ],
  arguments: { child: 'Forked session' },
  options: {
    ...modelOptions,
    into: { type: 'string', describe: 'Parent (default), or another ancestor' },
    strategy: {
      type: 'string',
      choices: ['result', 'summary', 'structured', 'pick', 'discard'],
      describe:
        'Text to merge. result: its result or last answer; summary: a summary by a model; structured: its JSON result; pick: chosen entries; discard: none',
    },
    pick: { type: 'list', describe: 'Position or range A..B of the child to quote, with --strategy pick' },
    result: { type: 'string', describe: 'Text to merge (- for stdin, @FILE)' },
    check: { type: 'boolean', describe: 'Report conflicts without merging' },
    'dry-run': { type: 'boolean', describe: 'Show the entries without writing them' },
    apply: { type: 'boolean', describe: 'Apply the patch of its worktree to the repository, or exit 4' },
    'into-dir': {
      type: 'string',
      takes: 'DIR',
      needs: 'apply',
      describe: 'Apply the patch to this working tree instead',
    },
    'on-conflict': {
      type: 'string',
      choices: ['report', 'refuse'],
      describe: 'Report conflicts, or refuse to merge (exit 4)',
    },
    force: {
      type: 'boolean',
      describe: 'Merge a child that is running, or whose worktree cannot be recorded',
    },
    wait: {
      type: 'number',
      negatable: true,
      default: 10,
      describe: 'Seconds to wait for a busy parent; --no-wait: do not wait',
    },
  },
  conflicts: { check: ['dry-run'], apply: ['check', 'dry-run'] },
  run: async (args, context) => {
    if (args.apply === true && args.strategy === 'discard')
      throw new UsageError('cannot merge: --strategy discard cannot be combined with --apply');
    const writesNothing = args.check === true || args.dryRun === true;
    return await (writesNothing ? context.reading : context.changing)(async (store) => {
      const child = needSession(store, args.child).session;
      const request: MergeRequest = {
        ...(args.into !== undefined && { into: needSession(store, args.into).session }),
        ...(args.strategy !== undefined && { strategy: args.strategy as MergeStrategy }),
        ...(args.result !== undefined && { text: await readText(args.result, context.io) }),
        ...(args.onConflict !== undefined && { onConflict: args.onConflict as 'report' | 'refuse' }),
        ...(args.force === true && { force: true }),
      };
      if ((args.pick !== undefined) !== (args.strategy === 'pick'))
        throw new UsageError('cannot merge: --pick and --strategy pick require each other');
      const pick = args.pick?.map(picked);
      if (isWritten(args.strategy) && args.result !== undefined)
        throw new UsageError(`cannot merge: --result cannot be combined with --strategy ${args.strategy}`);
      if (args.check === true) return await check(store, { child, request }, context);
      if (isPlain(request)) await assertBegun(store, needSession(store, child), request);
      if (args.dryRun === true)
        return await previewMerge(
          store,
          { child, request: await withText(store, { child, request, pick }) },
          context,
        );
      const waitMs = typeof args.wait === 'number' ? args.wait * 1000 : 0;
      const command = { child, request, waitMs };
      const dir = args.intoDir === undefined ? {} : { dir: resolve(context.io.cwd, args.intoDir) };
      const apply = args.apply === true ? dir : undefined;
      const act = isWritten(args.strategy)
        ? { act: async () => await mergeWritten(store, command, { args, pick, context }) }
        : {};
      const code = await mergeAndReport(store, command, { context, apply, ...act });
      if (code === exit.done && args.strategy !== 'discard') await giveTurn(store, child, { args, context });
      return context.io.interrupted ? exit.interrupted : code;
    });
  },
});

/** Whether a merge takes what the child has, as it is. */
function isPlain({ text, strategy, force }: MergeRequest): boolean {
  return text === undefined && strategy === undefined && force !== true;
}

/**
 * Checks that a child has done something: its parent would read that it completed without a result. What was merged or
 * discarded before is repeated, and what was changed in a worktree is a patch.
 * @throws NothingToMergeError
 */
async function assertBegun(store: HomeStore, child: SessionInfo, request: MergeRequest): Promise<void> {
  if (child.parentId === undefined || child.delivery !== undefined || child.task !== undefined) return;
  let hasTask = false;
  for (const { kind, name } of store.entries.read(child.id, { own: true })) {
    if (kind !== 'anchor' || (name !== 'fork/start' && name !== 'intention')) return;
    hasTask ||= name === 'intention';
  }
  const { originOf } = await import('@tapedeck/runtime/internal');
  if ((await originOf(store, child)).worktree !== undefined) return;
  // What else stands in the way is said instead.
  if (store.lineage.previewMerge(child.id, request).refusal !== undefined) return;
  const why = hasTask
    ? 'it has not begun its task'
    : 'it has no entries of its own, so there is nothing to merge';
  throw new NothingToMergeError(child.session, why);
}

/** Whether the runtime writes the text of a merge, instead of reading it from the tape of the child. */
function isWritten(strategy: string | undefined): boolean {
  return strategy === 'summary' || strategy === 'structured' || strategy === 'pick';
}

/**
 * Merges with a text that the runtime writes; undefined when the merge is queued for the writer of the
 * parent.
 */
async function mergeWritten(
  store: HomeStore,
  { child, request, waitMs }: MergeCommand & { waitMs: number },
  { args, pick, context }: { args: ModelArgs; pick: Picks | undefined; context: Context },
): Promise<Merged | undefined> {
  const { io } = context;
  // A configuration is code; only a summary needs its model.
  const config = request.strategy === 'summary' ? await deckConfig(args, context) : {};
  await using deck = await openDeckAt(config, store, context);
  const parent = request.into ?? store.sessions.find(child)?.parentId ?? child;
  const { text: _, into: __, ...given } = request;
  try {
    const merged = await (await deck.session(parent)).merge(child, {
      ...given,
      waitMs,
      signal: io.signal,
      ...(pick !== undefined && { pick }),
      ...(args.model !== undefined && { model: args.model }),
    });
    // The merge may have started a run of the parent.
    await idleOrInterrupted(deck, io.signal);
    return merged;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'SESSION_MERGE_WAITING') throw error;
    await reportQueued(context, {
      parent,
      child,
      id: String((error as { data?: { queued?: unknown } }).data?.queued),
    });
    return undefined;
  }
}

/**
 * The request with the text that the runtime would write.
 * @throws UsageError for a summary, which a model writes
 */
async function withText(
  store: HomeStore,
  { child, request, pick }: MergeCommand & { readonly pick: Picks | undefined },
): Promise<MergeRequest> {
  const { strategy } = request;
  if (strategy === 'summary')
    throw new UsageError('cannot preview: a model writes the summary, and --dry-run calls none', {
      hint: 'show conflicts with --check, or the entries without --strategy',
    });
  if (strategy !== 'structured' && strategy !== 'pick') return request;
  const { writeTextAlone } = await import('@tapedeck/runtime/internal');
  const text = await writeTextAlone(store, needSession(store, child), {
    strategy,
    ...(pick !== undefined && { pick }),
  });
  return { ...request, ...(text !== undefined && { text }) };
}

type Picks = readonly (Seq | readonly [Seq, Seq])[];

/** `12` or `12..15`, of the child's own positions. */
function picked(text: string): Seq | readonly [Seq, Seq] {
  const [, from, to] = /^@?(\d{1,15})(?:\.\.@?(\d{1,15}))?$/.exec(text) ?? [];
  if (from === undefined)
    throw new UsageError(`cannot pick ${JSON.stringify(text)}: it is not a position or a range`, {
      hint: 'write it as --pick 12 or --pick 12..15',
    });
  return to === undefined ? Number(from) : [Number(from), Number(to)];
}

async function check(store: HomeStore, { child, request }: MergeCommand, context: Context): Promise<number> {
  const { diffOf } = await import('@tapedeck/runtime/internal');
  const patch = await diffOf({ store, home: context.home.dir }, child);
  const written = patch === undefined ? {} : { written: patchPaths(patch) };
  const { complete, conflicts } = store.lineage.previewMerge(child, { ...request, ...written });
  const found = conflicts.map((c) => `both wrote ${c.what} (child @${c.child}, parent @${c.parent})`);
  await context.answer({
    json: { child, complete, conflicts },
    human: [
      found.length === 0 ? `${child}: no conflicts found` : `${child}: ${found.join('; ')}`,
      ...(complete ? [] : ['A tool ran that does not declare its files: there may be more conflicts']),
    ].join('\n'),
  });
  const refused = request.onConflict === 'refuse' && (conflicts.length > 0 || !complete);
  return refused ? exit.conflict : exit.done;
}
