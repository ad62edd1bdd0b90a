import type { RecoveredSession, RecoveryReport } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import { hintFor } from '../errors/hint.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { runOptions } from '../options/model.ts';
import { otherRealms } from '../output/other-realms.ts';
import { awaitedOf, toolHint } from '../output/run.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const recover: Verb = defineVerb({
  command: 'recover [name]',
  group: 'Run',
  summary: 'Continue sessions whose process was killed, and merge delegated children',
  detail:
    'Each session continues from its last recorded step, with the model that its tape records: what was saved of an answer goes ' +
    'to the tape first, recorded answers are not requested again, and calls that may have run do not run again unless their tool ' +
    'is safe to repeat. Ended children are merged. Without a name, a session whose recorded model cannot be used is reported as failed, and the others are recovered. With a name: that session and its descendants, and the messages in their ' +
    'inboxes; calls that an aborted run left open get results. Without: all unfinished delegated children, all sessions whose process died during a run, and those with an approved call that waits for a process with its tool, in one realm (--base); says on stderr how many sessions others have. Skips what another ' +
    'process runs, but takes over children that it has not started yet: recover after the process that delegated has ended.',
  examples: [
    ['tape recover', 'Continue all interrupted sessions and children'],
    ['tape recover main --dry-run', 'Show what would be done with main and what is under it'],
    ['tape recover main --abort', 'Abort the run of main and its children, and merge that outcome into main'],
  ],
  arguments: { name: 'Only this session and its descendants: a name, an alias or a ULID' },
  options: {
    ...runOptions,
    abort: { type: 'boolean', describe: 'Abort what is unfinished instead of continuing it' },
    'dry-run': { type: 'boolean', describe: 'Show what would be done, and write nothing' },
    wait: {
      type: 'number',
      negatable: true,
      default: 10,
      describe: 'Seconds to wait for a busy parent; --no-wait: do not wait',
    },
  },
  run: async (args, context) => {
    const { name, abort, wait, dryRun } = args;
    const { io } = context;
    // Aborting calls no model, and so needs no configuration, which is code.
    const config = abort === true ? {} : await deckConfig(args, context);
    const { openDeck } = await import('@tapedeck/runtime');
    const recovered = async (store: HomeStore) => {
      if (name === undefined) for (const line of otherRealms(store)) context.status(line);
      const session = name === undefined ? undefined : needSession(store, name).id;
      await using deck =
        // The list of active runs in the home is written to, too.
        dryRun === true
          ? await openDeck({ ...config, store, env: io.env, cwd: io.cwd })
          : await openDeckAt(config, store, context);
      return await deck.recover({
        ...(args.model !== undefined && { model: args.model }),
        ...(session !== undefined && { session }),
        ...(abort === true && { abort: true }),
        ...(dryRun === true && { dryRun: true }),
        waitMs: typeof wait === 'number' ? wait * 1000 : 0,
        signal: io.signal,
      });
    };
    // The merges that wait in inboxes are part of the recovery, which reports them.
    const changed = async (store: HomeStore) => {
      const report = await recovered(store);
      store.catchUp();
      return report;
    };
    const report = await (dryRun === true
      ? context.reading(recovered)
      : context.changing(changed, { keepInboxes: true }));
    const { resumed, aborted, merged, waiting, busy, failed, sessions } = report;
    await context.answer({
      json: {
        resumed,
        aborted,
        merged,
        waiting,
        busy,
        failed,
        sessions: sessions.map(sessionJson),
        ...(dryRun === true && { dry_run: true }),
      },
      quiet: merged.join('\n'),
      human: safe(linesOf(report).join('\n')),
    });
    if (failed.length > 0) return exit.failed;
    return busy.length + waiting.length === 0 || dryRun === true ? exit.done : exit.accepted;
  },
});

function sessionJson({ calls, view, head, saved, ...session }: RecoveredSession) {
  return {
    ...session,
    view,
    head,
    saved,
    calls: calls.map(({ toolCallId, name, became, for: awaited }) => ({
      call: toolCallId,
      tool: name,
      became,
      ...(awaited !== undefined && { for: awaited }),
    })),
  };
}

/** The report for people: a line for each kind of outcome, then what is worth knowing about each session. */
function linesOf(report: RecoveryReport): readonly string[] {
  const { resumed, aborted, merged, waiting, busy, failed, sessions } = report;
  const would = report.dryRun === true;
  const line = (what: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`${what} ${names.join(', ')}`];
  const lackTool = sessions
    .filter(({ calls }) => calls.some((call) => call.for === 'tool'))
    .map(({ session }) => session);
  const lines = [
    ...line(would ? 'Would continue' : 'Continued', resumed),
    ...line(would ? 'Would abort' : 'Aborted', aborted),
    ...line(would ? 'Would merge' : 'Merged', merged),
    ...line(
      'Waiting for an answer (tape status):',
      waiting.filter((name) => !lackTool.includes(name)),
    ),
    ...lackTool.map((name) => `${name} waits: ${toolHint(name)}`),
    ...line('Running in other processes:', busy),
    ...failed.map(({ session, message, code }) => {
      const of = code === 'TAPE_CORRUPT' ? code : 'SESSION_NO_MODEL';
      const hint = code === undefined ? undefined : hintFor(of, { session, abortable: true });
      return `${session}: ${message}${hint === undefined ? '' : ` (${hint})`}`;
    }),
    ...sessions.flatMap((session) => sessionLines(session, would)),
  ];
  return lines.length === 0 ? ['Nothing to recover'] : lines;
}

const becameText = {
  repeated: 'repeated',
  unknown: 'not repeated, its outcome is unknown',
  'not-run': 'not run',
  answered: 'answered',
  open: 'waits for an answer',
} as const;

function sessionLines(
  { session, model, head, view, saved, calls, queued }: RecoveredSession,
  would: boolean,
): readonly string[] {
  const after = head.after === undefined ? '' : ` → @${head.after} ${view.after?.slice(0, 8) ?? ''}`;
  const facts = [
    `@${head.before} ${view.before.slice(0, 8)}${after}`,
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(saved ? [would ? 'a part of an answer is saved' : 'a part of an answer went to the tape'] : []),
    ...calls.map(
      ({ toolCallId, name, became, for: awaited }) =>
        `${name} ${toolCallId}: ${became === 'open' && awaited !== undefined ? awaitedOf[awaited] : becameText[became]}`,
    ),
    ...(queued === 0 ? [] : [`${queued} in the inbox`]),
  ];
  return [`  ${session}  ${facts.join('; ')}`];
}
