import type { Pulled } from '@tapedeck/tape/remotes';
import { readRemotes, remoteFor, remoteState } from '../config/remotes.ts';
import { commandLine } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { bytesText } from '../output/refused.ts';
import { broughtText, pulledJson, sayLeft } from '../session/pulled.ts';
import { defineVerb, type Verb } from './verb.ts';

export const pull: Verb = defineVerb({
  command: 'pull',
  group: 'Share',
  summary: 'Take in what a remote has and this home lacks',
  detail:
    'Each file of the remote is verified as a whole before anything of it is visible. What comes is foreign data: nothing that was approved ' +
    'elsewhere is approved here. A session that went on in another way here, or whose name another session has, is left out, and the others come. ' +
    'To continue after an interruption, pull again.',
  examples: [
    ['tape pull', 'Take in what others pushed'],
    ['tape pull --dry-run', 'Print what would come'],
  ],
  options: {
    remote: { type: 'string', takes: 'NAME', describe: 'Remote (default: the only one, or origin)' },
    'dry-run': { type: 'boolean', describe: 'Only print what would come' },
  },
  run: async ({ remote: named, dryRun = false }, context) =>
    await context.changing(async (store) => {
      const { home, io, answer, inHome } = context;
      const remote = remoteFor(await readRemotes(context), named, 'pull');
      const state = remoteState(home, remote);
      const { openRemote, pull: fetch, shownUrl } = await import('@tapedeck/tape/remotes');
      const url = shownUrl(remote.url);
      const pulled = await withProgress(context, async (progress) =>
        fetch(store, await openRemote(remote.url, { state, env: io.env }), {
          ...{ state, dryRun, onProgress: progress('Reading packs') },
        }),
      );
      await answer({
        json: {
          remote: remote.name,
          url,
          ...pulledJson(pulled),
          ...(dryRun && { dry_run: true }),
        },
        quiet: pulled.sessions.map(({ session }) => session).join('\n'),
        human: inHome(textOf(pulled, { name: remote.name, dryRun })),
      });
      return sayLeft(pulled, { url }, context);
    }),
});

/** The most sessions that a line names. */
const namedMax = 3;

function textOf(
  pulled: Pulled,
  { name, dryRun }: { readonly name: string; readonly dryRun: boolean },
): string {
  const { sessions, lines, filled, bytes, refused, failed } = pulled;
  if (sessions.length === 0 && lines === 0 && filled === 0)
    return `${name} has nothing ${refused.length + failed.length > 0 ? 'that can be taken in' : 'new'}: nothing to do`;
  if (dryRun)
    return [
      ...sessions.map(
        ({ session, became, entries }) =>
          `${session}: ${counted(entries, 'entry', 'entries')}${became === 'new' ? ', new' : ''}`,
      ),
      `Would take in ${counted(pulled.entries, 'entry', 'entries')} of ${counted(sessions.length, 'session')} from ${name}`,
    ].join('\n');
  const made = sessions.filter(({ became }) => became === 'new');
  const undo = made.map(({ session }) => commandLine('archive', [session])).join('; ');
  const back =
    made.length === 0 || made.length < sessions.length || made.length > namedMax
      ? ''
      : ` (undo with: ${undo})`;
  return `Pulled ${broughtText(pulled)} from ${name}, ${bytesText(bytes)}${back}`;
}
