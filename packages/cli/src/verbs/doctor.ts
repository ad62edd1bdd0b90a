import { exit } from '../exit.ts';
import { getHome } from '../home.ts';
import { counted } from '../output/counted.ts';
import { lookAt, mend } from '../session/mend.ts';
import { defineVerb, type Verb } from './verb.ts';

export const doctor: Verb = defineVerb({
  command: 'doctor',
  group: 'Trust',
  summary: 'Check a tape home, and repair what can be rebuilt',
  detail:
    'Checks everything that verify checks, the database file, leases of dead processes, items left in inboxes, and files that ' +
    'other users can read. --fix rebuilds projections and never changes an entry; it renames a graph file that differs from the ' +
    'database, and writes a new one.',
  examples: [
    ['tape doctor', 'Check, and change nothing'],
    ['tape doctor --fix', 'Repair what can be rebuilt'],
  ],
  options: { fix: { type: 'boolean', describe: 'Repair what can be rebuilt' } },
  run: async ({ fix }, context) => {
    const { home, answer } = context;
    getHome(home);
    const before = await lookAt(context);
    const fixed = fix === true ? await mend(context, before) : [];
    const { problems, left, files, sessions, entries } = fixed.length === 0 ? before : await lookAt(context);
    const ok = problems.length === 0;
    const findings = [...left, ...files.map(({ path: _, ...finding }) => finding)];
    const lines = [
      ...fixed.map((text) => `fixed: ${text}`),
      ...problems.map((p) => `${p.code}: ${p.message}`),
      ...findings.map((f) => `${f.code}: ${f.message}`),
    ];
    await answer({
      json: { ok, sessions, entries, problems, findings, fixed },
      quiet: ok ? 'ok' : 'damaged',
      human: [
        ...lines,
        `${ok ? 'ok' : counted(problems.length, 'problem')}: ${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}`,
      ].join('\n'),
    });
    return ok ? exit.done : exit.damaged;
  },
});
