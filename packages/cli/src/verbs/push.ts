import { secretsIn } from '@tapedeck/tape/internal';
import type { Pushed } from '@tapedeck/tape/remotes';
import { redactIn } from '../config/redact.ts';
import { readRemotes, remoteFor, remoteState } from '../config/remotes.ts';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { bytesText, refusedJson } from '../output/refused.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const push: Verb = defineVerb({
  command: 'push [name]',
  group: 'Share',
  summary: 'Send to a remote what it lacks of the sessions here',
  detail:
    'Sends all sessions, or one with its ancestors: new entries, and lines of the lineage, as one file that is there as a whole or not at all. A session of ' +
    'which the remote has entries that are not here is refused, and the others are sent: pull first. Entries in which a secret is found ' +
    'travel as hashes alone, unless --raw is given. A push erases nothing, and takes nothing back: a later tape redact here does not reach the remote.',
  examples: [
    ['tape push', 'Send all sessions'],
    ['tape push main --dry-run', 'Print what would be sent of session main, with sizes'],
  ],
  arguments: { name: 'Session (default: all)' },
  options: {
    remote: { type: 'string', takes: 'NAME', describe: 'Remote (default: the only one, or origin)' },
    'dry-run': { type: 'boolean', describe: 'Only print what would be sent' },
    raw: { type: 'boolean', describe: 'With the secrets that are found' },
  },
  run: async ({ name, remote: named, dryRun = false, raw = false }, context) => {
    const { changing, home, io } = context;
    const redact = await redactIn({ io, home });
    return await changing(async (store) => {
      const remote = remoteFor(await readRemotes(context), named, 'push');
      const state = remoteState(home, remote);
      const { openRemote, push: send, shownUrl } = await import('@tapedeck/tape/remotes');
      const pushed = await withProgress(context, async (progress) =>
        send(store, await openRemote(remote.url, { state, env: io.env }), {
          ...{ state, dryRun, raw, secrets: secretsIn(io.env), onProgress: progress('Packing entries') },
          ...(name !== undefined && { sessions: [needSession(store, name).id] }),
          ...(redact !== undefined && redact !== false && { redact }),
        }),
      );
      return await say(pushed, { name: remote.name, named, url: shownUrl(remote.url), dryRun }, context);
    });
  },
});

async function say(
  pushed: Pushed,
  {
    name,
    named,
    url,
    dryRun,
  }: {
    readonly name: string;
    /** The name, where the user gave it. */
    readonly named: string | undefined;
    readonly url: string;
    readonly dryRun: boolean;
  },
  { answer, status }: Context,
): Promise<number> {
  const { pack, bytes, sessions, entries, lines, withheld, refused, behind } = pushed;
  const size = `${counted(entries, 'entry', 'entries')} and ${counted(lines, 'line')} of ${counted(sessions.length, 'session')}`;
  await answer({
    json: {
      ...{ remote: name, url, pack, bytes, sessions, entries, lines, withheld },
      ...{ refused: refusedJson(refused), behind, ...(dryRun && { dry_run: true }) },
    },
    quiet: pack ?? '',
    human:
      sessions.length === 0
        ? `${name} lacks nothing${refused.length > 0 ? ' else' : ' of this home'}: nothing to send`
        : dryRun
          ? [
              ...sessions.map(
                (one) =>
                  `${one.session}: ${counted(one.entries, 'entry', 'entries')}, ${counted(one.lines, 'line')}`,
              ),
              `Would send ${size} to ${name}, ${bytesText(bytes)}`,
            ].join('\n')
          : `Pushed ${size} to ${name}, ${bytesText(bytes)}`,
  });
  for (const { session, error } of refused) status(`${session} was left out: ${error.message}`);
  if (withheld > 0)
    status(
      `${counted(withheld, 'entry', 'entries')} with a secret: only the hashes ${dryRun ? 'would be sent' : 'were sent'}; to send all, add --raw`,
    );
  const pull = `tape pull${named === undefined ? '' : ` --remote ${named}`}`;
  if (refused.length > 0) {
    status(`Hint: pull first: ${pull}`);
    return exit.conflict;
  }
  if (behind.length > 0)
    status(`${name} has more of ${counted(behind.length, 'session')} than this home: ${pull}`);
  return exit.done;
}
