import { resolve } from 'node:path';
import {
  type Merged,
  type MergeRequest,
  type MergeStrategy,
  patchPaths,
  type Seq,
  type SqliteTapeStore,
} from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { readText } from '../input.ts';
import { type ModelArgs, modelOptions } from '../options/model.ts';
import { type MergeCommand, mergeAndTell, tellQueued } from '../session/merging.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { previewMerge } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

export const merge: Verb = defineVerb({
  command: 'merge <child>',
  group: 'Change direction',
  lists: ['pick'],
  summary: "Append a child's result to its parent",
  detail:
    'One anchor and one message at the end of the parent. Merging again changes nothing; after the child grew, what is new ' +
    'is merged. Of a child with a worktree of its own the merge keeps a patch, and the worktree goes. --apply changes the files of ' +
    'the repository by it, all or none, and leaves its index alone; a child that does not fit is not merged either.',
  examples: [
    ['tape merge main-fork-3fa1c2d4', 'Bring the last answer of the child home'],
    ['tape merge fix --result "Nothing to do"', 'Say yourself what came of it'],
    [
      'tape merge fix --strategy summary --model openai-compatible/gpt-oss',
      'A model tells the parent of its work',
    ],
    ['tape merge fix --check', 'Only look for conflicts'],
    ['tape merge fix --dry-run', 'Show what would be written'],
    ['tape merge fix --apply', 'And change the files as the child did in its worktree'],
  ],
  options: (y) =>
    modelOptions(y)
      .positional('child', { type: 'string', demandOption: true, describe: 'The forked session' })
      .option('into', {
        type: 'string',
        requiresArg: true,
        describe: 'Its parent (default), or another ancestor',
      })
      .option('strategy', {
        type: 'string',
        choices: ['result', 'summary', 'structured', 'pick', 'discard'],
        describe:
          'result: its result or last answer; summary: a model writes it; structured: its result, which must be JSON; pick: chosen entries; discard: a receipt without a message',
      })
      .option('pick', {
        type: 'array',
        string: true,
        nargs: 1,
        describe: 'Position of the child to quote, or A..B; with --strategy pick',
      })
      .option('result', {
        type: 'string',
        requiresArg: true,
        describe: 'The result to merge (- for stdin, @FILE)',
      })
      .option('check', { type: 'boolean', describe: 'Report conflicts, write nothing' })
      .option('dry-run', { type: 'boolean', describe: 'Show what would be written, and write nothing' })
      .option('apply', {
        type: 'boolean',
        describe: 'Bring what the child did in its worktree to the files it began with, or exit 4',
      })
      .option('into-dir', {
        type: 'string',
        requiresArg: true,
        implies: 'apply',
        describe: 'To the files of this working tree instead',
      })
      .option('on-conflict', {
        type: 'string',
        choices: ['report', 'refuse'],
        describe: 'Merge all the same, or exit 4',
      })
      .option('force', {
        type: 'boolean',
        describe: 'Merge a child that is still running, or whose worktree cannot be recorded',
      })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for a busy parent; --no-wait for none',
      })
      .conflicts('check', 'dry-run')
      .conflicts('apply', ['check', 'dry-run']),
  run: async (args, context) => {
    if (args.apply === true && args.strategy === 'discard')
      throw new UsageError('cannot merge: what is discarded is not applied');
    const writesNothing = args.check === true || args.dryRun === true;
    return await (writesNothing ? context.reading : context.changing)(async (store) => {
      const child = needSession(store, args.child).name;
      const request: MergeRequest = {
        ...(args.into !== undefined && { into: needSession(store, args.into).name }),
        ...(args.strategy !== undefined && { strategy: args.strategy as MergeStrategy }),
        ...(args.result !== undefined && { text: await readText(args.result, context.io) }),
        ...(args.onConflict !== undefined && { onConflict: args.onConflict as 'report' | 'refuse' }),
        ...(args.force === true && { force: true }),
      };
      if ((args.pick !== undefined) !== (args.strategy === 'pick'))
        throw new UsageError('cannot merge: --pick goes with --strategy pick');
      if (isWritten(args.strategy) && args.result !== undefined)
        throw new UsageError(
          `cannot merge: --result is the text, and --strategy ${args.strategy} writes one`,
        );
      if (args.check === true) return await check(store, { child, request }, context);
      if (args.dryRun === true) return await previewMerge(store, { child, request }, context);
      const waitMs = typeof args.wait === 'number' ? args.wait * 1000 : 0;
      const asked = { child, request, waitMs };
      const dir = args.intoDir === undefined ? {} : { dir: resolve(context.io.cwd, args.intoDir) };
      const apply = args.apply === true ? dir : undefined;
      if (!isWritten(args.strategy)) return await mergeAndTell(store, asked, { context, apply });
      return await mergeAndTell(store, asked, {
        context,
        apply,
        act: async () => await mergeWritten(store, asked, { args, context }),
      });
    });
  },
});

/** Whether a merge's text is written for it, and not found on the child's tape. */
function isWritten(strategy: string | undefined): boolean {
  return strategy === 'summary' || strategy === 'structured' || strategy === 'pick';
}

/** Merges with a text that the runtime writes; nothing when that is left to whoever writes the parent. */
async function mergeWritten(
  store: SqliteTapeStore,
  { child, request, waitMs }: MergeCommand & { waitMs: number },
  {
    args,
    context,
  }: { args: ModelArgs & { readonly pick?: readonly string[] | undefined }; context: Context },
): Promise<Merged | undefined> {
  const { io } = context;
  // Only a summary asks a model, and so runs code that somebody else may have written.
  const config = request.strategy === 'summary' ? await deckConfig(args, context) : {};
  await using deck = await openDeckAt(config, store, context);
  const parent = request.into ?? store.find(child)?.parent ?? child;
  const { text: _, ...given } = request;
  try {
    return await (await deck.session(parent)).merge(child, {
      ...given,
      waitMs,
      signal: io.signal,
      ...(args.pick !== undefined && { pick: args.pick.map(picked) }),
      ...(args.model !== undefined && { model: args.model }),
    });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'SESSION_MERGE_WAITING') throw error;
    await tellQueued(context, {
      parent,
      child,
      id: String((error as { data?: { queued?: unknown } }).data?.queued),
    });
    return undefined;
  }
}

/** `12` or `12..15`, of the child's own positions. */
function picked(text: string): Seq | readonly [Seq, Seq] {
  const [, from, to] = /^@?(\d{1,15})(?:\.\.@?(\d{1,15}))?$/.exec(text) ?? [];
  if (from === undefined)
    throw new UsageError(`cannot pick ${JSON.stringify(text)}: it is no position and no range`, {
      hint: 'write it as --pick 12 or --pick 12..15',
    });
  return to === undefined ? Number(from) : [Number(from), Number(to)];
}

async function check(
  store: SqliteTapeStore,
  { child, request }: MergeCommand,
  context: Context,
): Promise<number> {
  const { diffOf } = await import('@tapedeck/runtime/workspace');
  const patch = await diffOf({ store, home: context.home.dir }, child);
  const written = patch === undefined ? {} : { written: patchPaths(patch) };
  const { complete, conflicts } = store.checkMerge(child, { ...request, ...written });
  const found = conflicts.map((c) => `both wrote ${c.what} (child @${c.child}, parent @${c.parent})`);
  await context.answer({
    json: { child, complete, conflicts },
    human: [
      found.length === 0 ? `${child}: no conflicts found` : `${child}: ${found.join('; ')}`,
      ...(complete ? [] : ['A tool ran that does not declare its files, so this may not be all']),
    ].join('\n'),
  });
  const refused = request.onConflict === 'refuse' && (conflicts.length > 0 || !complete);
  return refused ? exit.conflict : exit.done;
}
