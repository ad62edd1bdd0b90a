import { resolve } from 'node:path';
import type { ExportFormat } from '@tapedeck/runtime';
import { secretsIn } from '@tapedeck/tape/internal';
import { redactIn } from '../config/redact.ts';
import { UsageError } from '../errors/kinds.ts';
import { exportFolder } from '../export/folder.ts';
import { exportForm } from '../export/form.ts';
import { shownIo } from '../export/shown.ts';
import { exportTranscript } from '../export/transcript.ts';
import { stdinWord } from '../input.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

/** `exportFormats` of the runtime, which only an export loads, behind the bundle. */
const formats = [
  'tape',
  'ui-message',
  'openai-chat',
  'markdown',
  'html',
  'session-jsonl',
  'nexus3',
  'claude-code',
  'pi',
] as const satisfies readonly ('tape' | 'html' | ExportFormat)[];

export const exportVerb: Verb = defineVerb({
  command: 'export <name>',
  group: 'Share',
  summary: 'Write a session to a file, for another home or program',
  detail:
    'The file, a bundle, has the session with its id and hashes, and of its ancestors what it reads. Other entries of theirs, redacted ones, ' +
    'and entries in which a secret is found travel as hashes alone. With --format, it is the conversation in the form of another program, ' +
    'without what rewinds hide: UIMessages of the AI SDK, a line for each context of the model as fine-tuning takes it, Markdown for a ' +
    'reader, one HTML file that shows the session and its lineage, a directory with session.jsonl and metadata.json, which --follow keeps up to date, a saved session of NEXUS3, or a ' +
    'transcript from which Claude Code or pi continues: it is written to where the program looks for it, unless -o is given, and what ' +
    'Claude Code adds there returns with tape import. Secrets are replaced. A name that ends with .zst or .gz makes a compressed file. On a terminal, what could steer it is printed as an escape. Never replaces an existing file.',
  examples: [
    ['tape export main -o main.tape.zst', 'Write session main, compressed'],
    ['tape export main --tree -o main.tape', 'Write it with all sessions that were forked from it'],
    ['tape export main --format claude-code', 'Continue it in Claude Code, with the command that is printed'],
    ['tape export main | tape import - --home ../other', 'Take it into another home'],
    ['tape export main --format markdown -o main.md', 'Write the conversation for a reader'],
    ['tape export main --tree --format html -o main.html', 'Write a page with its lineage, to send'],
    [
      'tape export main --format session-jsonl -o sessions',
      'Write session.jsonl and metadata.json to a directory in sessions',
    ],
  ],
  arguments: { name: 'SESSION; with --format of a conversation also SESSION@POINT, up to there' },
  options: {
    output: {
      type: 'string',
      takes: 'FILE',
      alias: 'o',
      describe: 'New file (-, default: stdout); for session-jsonl a directory of sessions',
    },
    format: {
      type: 'string',
      default: 'tape',
      choices: formats,
      describe: 'Form of the file; tape is a bundle',
    },
    project: {
      type: 'string',
      takes: 'DIR',
      describe:
        'For claude-code and pi, where it continues (default: the recorded directory, or else this one)',
    },
    lineage: { type: 'boolean', describe: 'All entries of all its ancestors, too' },
    tree: { type: 'boolean', describe: 'Like --lineage, and all its descendants' },
    raw: { type: 'boolean', describe: 'With the secrets that are found' },
    follow: { type: 'boolean', alias: 'f', describe: 'Keep session-jsonl up to date, until Ctrl-C' },
  },
  conflicts: { follow: ['json'] },
  run: async ({ name, output: given, format, project, lineage, tree, raw, follow }, outer) => {
    const context = { ...outer, io: shownIo(outer.io, format) };
    const { io, home, reading, answer, options, status } = context;
    if (lineage === true && tree === true)
      throw new UsageError('cannot export with --lineage and --tree: --tree includes --lineage');
    const output = given === stdinWord || given === '-' ? undefined : given;
    const isTranscript = format === 'claude-code' || format === 'pi';
    if (project !== undefined && !isTranscript)
      throw new UsageError(`cannot export as ${format} for a project`, {
        hint: 'a project is where a program continues: --format claude-code or --format pi',
      });
    const isJson = options.json === true || options.jsonl === true;
    if (output === undefined && isJson && !(isTranscript && given === undefined))
      throw new UsageError('cannot print JSON about an export that goes to stdout: name a file with -o FILE');
    if (format !== 'tape' && format !== 'html' && (lineage === true || tree === true))
      throw new UsageError(`cannot export as ${format} with ${tree === true ? '--tree' : '--lineage'}`, {
        hint: 'only a bundle and a page have other sessions: leave --format out, or add --format html',
      });
    if (follow === true && (format !== 'session-jsonl' || output === undefined))
      throw new UsageError('cannot follow an export that is no directory', {
        hint: 'follow a session with: --format session-jsonl -o DIR --follow',
      });
    const redact = await redactIn({ io, home });
    const how = {
      raw: raw === true,
      secrets: secretsIn(io.env),
      ...(redact !== undefined && redact !== false && { redact }),
    };
    return await reading(async (store) => {
      const place =
        format === 'tape' || format === 'session-jsonl' || format === 'html'
          ? { session: name }
          : readPlace(store, name);
      const { id, session } = needSession(store, place.session);
      const file = output === undefined ? undefined : resolve(io.cwd, output);
      if (format === 'session-jsonl' && file !== undefined)
        return await exportFolder(
          { store, id, root: file, follow: follow === true },
          { ...how, format },
          context,
        );
      const at = 'point' in place && place.point !== undefined ? { at: place.point } : {};
      if (isTranscript) {
        const directory = project === undefined ? {} : { project: resolve(io.cwd, project) };
        const target = { store, id, file, isPrinted: given !== undefined && file === undefined };
        return await exportTranscript(target, { ...how, ...at, ...directory, format }, context);
      }
      const scope =
        tree === true ? ('tree' as const) : lineage === true ? ('lineage' as const) : ('session' as const);
      if (format === 'html') {
        const { exportHtml } = await import('../ui/export-html.ts');
        return await exportHtml({ store, id, scope, file }, how, context);
      }
      if (format !== 'tape')
        return await exportForm(
          { store, id, file },
          { ...how, ...at, format: format as ExportFormat },
          context,
        );
      if (file === undefined) {
        // A terminal shows the lines themselves.
        const withheld = await withProgress(context, async (progress) => {
          const onProgress = io.isTerminal ? undefined : progress('Exporting entries');
          const options = { ...how, scope, ...(onProgress !== undefined && { onProgress }) };
          const lines = store.bundles.write(id, options);
          for (;;) {
            const { done, value } = lines.next();
            if (done === true) return value.withheld;
            await io.out(value);
          }
        });
        if (withheld > 0) status(withheldText(withheld));
        return 0;
      }
      const { sessions, entries, withheld, hashed } = await withProgress(context, (progress) =>
        store.bundles.save(id, file, { ...how, scope, onProgress: progress('Exporting entries') }),
      );
      await answer({
        json: { file, session, sessions, entries, withheld, hashed },
        quiet: file,
        human: `Exported ${session} to ${file}: ${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}${hashed === 0 ? '' : `, of which ${hashed} as hashes alone`}`,
      });
      if (withheld > 0) status(withheldText(withheld));
      return 0;
    });
  },
});

function withheldText(withheld: number): string {
  return `${counted(withheld, 'entry', 'entries')} with a secret: only the hashes were exported; to export all, add --raw`;
}
