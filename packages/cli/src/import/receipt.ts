import type { Brought, FileImport, FoundFile, Reconciled } from '@tapedeck/runtime/import';
import type { Answer } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { commandLine } from '../escape.ts';
import { besideLines } from '../output/beside.ts';
import { counted } from '../output/counted.ts';
import { leftOutBy, leftOutJson } from './left-out.ts';

/** What the import of one source says of it, for programs. */
export interface ReceiptJson {
  readonly sessions: number;
  readonly entries: number;
  readonly repaired: number;
  readonly derived: number;
  readonly redacted: number;
  readonly omitted: number;
  readonly names: readonly string[];
}

/** Sums of what several files brought. Pure. */
export function receiptJson(brought: readonly Brought[]): ReceiptJson {
  const sessions = brought.flatMap((one) => one.sessions);
  const names = [...new Set(sessions.map(({ session }) => session))];
  const sum = (of: (one: Brought) => number) => brought.reduce((total, one) => total + of(one), 0);
  const wrote = (of: (one: Reconciled) => number) => sessions.reduce((total, one) => total + of(one), 0);
  return {
    sessions: names.length,
    entries: wrote(({ added }) => added),
    repaired: sum(({ counts }) => counts.repaired),
    derived: sum(({ derived }) => derived),
    redacted: wrote(({ redacted }) => redacted),
    omitted: wrote(({ omitted }) => omitted),
    names,
  };
}

/** The counts of several files, as fields of JSON. Pure. */
function countsJson(brought: readonly Brought[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const { counts } of brought)
    for (const [name, count] of Object.entries(counts)) {
      const field = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      sums.set(field, (sums.get(field) ?? 0) + count);
    }
  return Object.fromEntries(sums);
}

/** The places of lines that were left out, and of those that were taken though something in them is wrong. */
function linesJson(brought: readonly Brought[]) {
  return {
    bad_lines: brought.flatMap(({ bad }) => bad),
    irregular_lines: brought.flatMap(({ irregular }) => irregular),
  };
}

/** A file as fields of JSON. */
export interface FileJson {
  readonly file: string;
  readonly [field: string]: unknown;
}

/** A file that was found, as fields of JSON. Pure. */
export function fileJson({ path, tool, session, role, project, facts }: FoundFile): FileJson {
  const about = { tool: tool.name, session, role, ...(project !== undefined && { project }) };
  return { file: path, ...about, bytes: facts.size };
}

/** What became of a file, as fields of JSON. Pure. */
export function importJson({ file, seen, brought, error }: FileImport): FileJson {
  const said = error === undefined ? undefined : describeError(error);
  const { entries = 0, names, redacted } = brought === undefined ? {} : receiptJson([brought]);
  return {
    ...fileJson(file),
    ...{ seen, entries },
    ...(brought !== undefined && { redacted, names, counts: countsJson([brought]), ...linesJson([brought]) }),
    ...(said !== undefined && { error: { code: said.code, message: said.message } }),
  };
}

/** The receipt of one source of which nothing had to be read, with the names of its sessions. Pure. */
export function receiptOfKnown(names: readonly string[], files: readonly FileImport[]): Answer {
  const [name = ''] = names;
  return {
    json: { ...receiptJson([]), sessions: names.length, names, files: files.map(importJson), left_out: [] },
    quiet: name,
    human: nothingNew(name),
  };
}

function nothingNew(name: string): string {
  return `${name} has all records already: nothing to do`;
}

/** The most sessions that a line names. */
const namedMax = 3;

/** The receipt of one source. Pure. */
export function receiptOf(brought: readonly Brought[], files: readonly FileImport[] = []): Answer {
  const receipt = receiptJson(brought);
  const counts = countsJson(brought);
  const { entries, sessions, derived } = receipt;
  const all = brought.flatMap((one) => one.sessions);
  // The first may be one that was deleted here, and others of its file not.
  const { session: name = '' } = all.find(({ refused }) => refused === undefined) ?? all[0] ?? {};
  const made = all.filter(({ created }) => created);
  const undo = made.map(({ session }) => commandLine('archive', [session])).join('; ');
  const back = made.length > 0 && made.length <= namedMax ? `; undo with: ${undo}` : '';
  const replaced = receipt.redacted > 0 ? `, ${counted(receipt.redacted, 'secret')} replaced` : '';
  const among = sessions > 1 ? ` in ${counted(sessions, 'session')}` : '';
  const concluded = derived > 0 ? `, ${counted(derived, 'derived edge')} (tape log --derived)` : '';
  const { records = 0, off_path = 0, compactions = 0, repaired = 0 } = counts;
  return {
    json: {
      ...receipt,
      ...{ counts, ...linesJson(brought), files: files.map(importJson) },
      left_out: files.flatMap(leftOutBy).map(leftOutJson),
    },
    quiet: name,
    human:
      entries === 0
        ? nothingNew(name)
        : [
            `Imported ${name}: ${counted(entries, 'entry', 'entries')}${among} from ${counted(records, 'record')} (${off_path} beside the conversation, ${counted(compactions, 'compaction')}, ${counted(repaired, 'call')} without a result${concluded}${replaced}${back})`,
            ...besideLines(brought),
          ].join('\n'),
  };
}
