import type { Merged, MergeRequest, SqliteTapeStore } from '@tapedeck/tape';
import { exit } from '../errors.ts';
import { needSession } from '../place.ts';
import { parentIsBusy, previewMerge, queuedJson } from '../preview.ts';
import { readText } from '../text.ts';
import { type Context, defineVerb, type Verb } from '../verb.ts';
import { drained } from './append.ts';

export const merge: Verb = defineVerb({
  command: 'merge <child>',
  group: 'Change direction',
  summary: "Append a child's result to its parent",
  detail:
    'One anchor and one message at the end of the parent. Merging again changes nothing; after the child grew, what is new ' +
    'is merged.',
  examples: [
    ['tape merge main-fork-3fa1c2d4', 'Bring the last answer of the child home'],
    ['tape merge fix --result "Nothing to do"', 'Say yourself what came of it'],
    ['tape merge fix --check', 'Only look for conflicts'],
    ['tape merge fix --dry-run', 'Show what would be written'],
  ],
  options: (y) =>
    y
      .positional('child', { type: 'string', demandOption: true, describe: 'The forked session' })
      .option('into', {
        type: 'string',
        requiresArg: true,
        describe: 'Its parent (default), or another ancestor',
      })
      .option('strategy', {
        type: 'string',
        choices: ['result', 'discard'],
        describe: 'result: its result or last answer; discard: a receipt without a message',
      })
      .option('result', {
        type: 'string',
        requiresArg: true,
        describe: 'The result to merge (- for stdin, @FILE)',
      })
      .option('check', { type: 'boolean', describe: 'Report conflicts, write nothing' })
      .option('dry-run', { type: 'boolean', describe: 'Show what would be written, and write nothing' })
      .option('on-conflict', {
        type: 'string',
        choices: ['report', 'refuse'],
        describe: 'Merge all the same, or exit 4',
      })
      .option('force', { type: 'boolean', describe: 'Merge a child that is still running' })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for a busy parent; --no-wait for none',
      })
      .conflicts('check', 'dry-run'),
  run: async (args, context) => {
    const writesNothing = args.check === true || args.dryRun === true;
    return await (writesNothing ? context.reading : context.changing)(async (store) => {
      const child = needSession(store, args.child).name;
      const request: MergeRequest = {
        ...(args.into !== undefined && { into: needSession(store, args.into).name }),
        ...(args.strategy !== undefined && { strategy: args.strategy as 'result' | 'discard' }),
        ...(args.result !== undefined && { text: await readText(args.result, context.io) }),
        ...(args.onConflict !== undefined && { onConflict: args.onConflict as 'report' | 'refuse' }),
        ...(args.force === true && { force: true }),
      };
      if (args.check === true) return await check(store, { child, request }, context);
      if (args.dryRun === true) return await previewMerge(store, { child, request }, context);
      const waitMs = typeof args.wait === 'number' ? args.wait * 1000 : 0;
      return await mergeOrQueue(store, { child, request, waitMs }, context);
    });
  },
});

interface Asked {
  readonly child: string;
  readonly request: MergeRequest;
}

async function check(store: SqliteTapeStore, { child, request }: Asked, context: Context): Promise<number> {
  const { complete, conflicts } = store.checkMerge(child, request);
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

/** Merges, or leaves the merge in the inbox of a busy parent and waits for it; returns the exit code. */
export async function mergeOrQueue(
  store: SqliteTapeStore,
  { child, request, waitMs }: Asked & { waitMs: number },
  context: Context,
): Promise<number> {
  try {
    return await tellMerged(store.merge(child, request), context);
  } catch (error) {
    if (!parentIsBusy(error)) throw error;
  }
  const info = store.find(child);
  const parent = request.into ?? info?.parent ?? child;
  const { id } = store.post(parent, {
    body: { type: 'merge', draft: { ...request, child } },
    key: `merge:${info?.id}:${info?.headHash}`,
    source: 'cli',
  });
  context.status(`${parent} is being written by another process: left in its inbox`);
  if (await drained(store, { name: parent, id, waitMs }))
    return await tellMerged({ ...store.merge(child, request), repeated: false }, context);
  await context.answer({
    json: queuedJson(parent, child),
    quiet: id,
    human: `Queued: ${parent} takes ${child} in when it is idle`,
  });
  return exit.accepted;
}

async function tellMerged(merged: Merged, context: Context): Promise<number> {
  const { parent, child, state, seq, range, repeated, complete, conflicts } = merged;
  const where = `${parent}@${seq}`;
  const brought =
    state === 'discarded'
      ? `Discarded ${child}, noted at ${where}`
      : `Merged ${child}:${range[0]}-${range[1]} into ${where}`;
  await context.answer({
    json: {
      parent,
      child,
      state,
      seq,
      range,
      repeated,
      complete,
      conflicts,
      ...(merged.graphLagging === true && { graph_lagging: true }),
    },
    quiet: where,
    human: repeated
      ? `${where} has it already: nothing to do`
      : `${brought}${conflicts.length === 0 ? '' : `; both wrote ${conflicts.map((c) => c.what).join(', ')}`}`,
  });
  return exit.done;
}
