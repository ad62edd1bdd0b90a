import type { AuditFinding } from '@tapedeck/runtime';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { commandFor } from '../session/next-step.ts';
import { needSession } from '../session/place.ts';
import { hangingLines } from '../terminal/wrap.ts';
import { defineVerb, type Verb } from './verb.ts';

export const audit: Verb = defineVerb({
  command: 'audit [name]',
  group: 'Trust',
  paged: true,
  summary: 'Find work that was not finished, answered or merged',
  detail:
    'Reports runs that were cut off, messages and calls without an answer, results that were not merged, refused merges, ' +
    'and forks and merges that are missing from the tapes, the lineage or the graph file. Each finding names the next command. ' +
    'With a name: checks that session and its descendants, and looks up their lines in the graph file; lines that only the file ' +
    'has are found without a name.',
  examples: [
    ['tape audit', 'Check all sessions'],
    ['tape audit main --json', 'Check main and its descendants, for a program'],
  ],
  arguments: { name: 'Session (default: all)' },
  run: async ({ name }, context) => {
    const { reading, answer, home, io, options } = context;
    const columns = io.isTerminal ? io.columns : Number.POSITIVE_INFINITY;
    const { audit: auditStore } = await import('@tapedeck/runtime');
    return await reading(async (store) => {
      const session = name === undefined ? undefined : needSession(store, name).id;
      const { sessions, findings } = await withProgress(context, (progress) =>
        auditStore(store, {
          graph: home.graph,
          onProgress: progress('Examining sessions'),
          ...(session !== undefined && { session }),
        }),
      );
      const ok = findings.length === 0;
      await answer({
        json: { ok, sessions, findings: findings.map((finding) => findingJson(finding, options.home)) },
        quiet: ok ? 'ok' : 'incomplete',
        human: ok
          ? `ok: ${counted(sessions, 'session')}, all work is finished and merged`
          : [
              ...findings.flatMap((finding) =>
                hangingLines(safe(findingLine(finding, options.home)), columns, 2),
              ),
              `${counted(findings.length, 'finding')} in ${counted(sessions, 'session')}`,
            ].join('\n'),
      });
      if (findings.some(({ code }) => code === 'database-damaged')) return exit.damaged;
      return ok ? exit.done : exit.failed;
    });
  },
});

function findingJson(
  { code, session, seq, message, next }: AuditFinding,
  home: string | undefined,
): Readonly<Record<string, unknown>> {
  return { code, session, seq, message, next: commandFor(next, { home }) };
}

function findingLine({ code, message, next }: AuditFinding, home: string | undefined): string {
  return `${code}: ${message} (next: ${commandFor(next, { home })})`;
}
