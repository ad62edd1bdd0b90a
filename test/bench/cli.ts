import { cpSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gather } from './measure.ts';
import { processesOf, tape } from './process-time.ts';
import { sizes, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** The least that a process in Node.js needs to show something of a database. */
const bare = `
  const Database = require('better-sqlite3');
  const db = new Database(process.argv[1], { readonly: true });
  console.log(db.prepare('SELECT name, head_seq FROM tape ORDER BY updated_at DESC LIMIT 20').all());
  db.close();`;

/**
 * The least that one needs to write something with its hash so that it stays: a row in a database of its own and, with
 * `line`, a line in a file, both synced, and the log written back at the end.
 */
const bareWriter = (line: boolean) => `
  const { hash, randomBytes } = require('node:crypto');
  const { closeSync, fdatasyncSync, openSync, writeSync } = require('node:fs');
  const Database = require('better-sqlite3');
  const db = new Database(process.argv[1] + '.bare');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, salt BLOB, hash TEXT, text TEXT) STRICT');
  const text = JSON.stringify({ role: 'user', content: [{ type: 'text', text: 'Go on.' }] });
  db.prepare('INSERT INTO row (salt, hash, text) VALUES (?, ?, ?)').run(randomBytes(16), hash('sha256', text), text);
  if (${line}) {
    const fd = openSync(process.argv[1] + '.lines', 'a');
    writeSync(fd, text + '\\n');
    fdatasyncSync(fd);
    closeSync(fd);
  }
  console.log(text);
  db.close();`;

const limits = {
  bare: 'a bare process that opens the database and prints',
  writer: 'a bare process that writes a row with its hash, synced, and prints',
  lineWriter: 'a bare process that writes a row with its hash and a line in a file, both synced, and prints',
} as const;

/** The verbs that a person waits for, with their limits and the most that they may take of them. */
const goals = {
  'log main -n 20': ['bare', 1.4],
  'show main@5': ['bare', 1.4],
  sessions: ['bare', 1.4],
  'status main': ['bare', 1.4],
  'append main': ['writer', 1.4],
  'fork main': ['lineWriter', 1.4],
  'view main': ['bare', 2],
  'verify main': ['bare', 2],
} as const satisfies Record<string, readonly [keyof typeof limits, number]>;

/** Those that are also measured as under another version of Node.js than that of the build. */
const elsewhere = ['log main -n 20', 'append main', 'verify main'] as const;

/** The processor time of a process from its start to its end, for the verbs that one waits for. */
export async function cli(bench: Bench): Promise<Row[]> {
  return [...(await short(bench)), ...(await long(bench))];
}

/** The verbs that seek in a long session, in place of reading it. */
const seeking = ['log main --kind anchor', 'log main --kind tool-call -n 5', 'usage main --quiet'] as const;

/** The same verbs in a long session and in a short one. */
async function long(bench: Bench): Promise<Row[]> {
  const lengths = [sizes(bench).at(0), sizes(bench).at(-1)].filter((entries) => entries !== undefined);
  const [few = 0, many = 0] = lengths;
  const acts = lengths.flatMap((entries) => {
    const timed = processesOf(dirname(tapeOf(bench, entries)));
    return seeking.map((line) => [`${line} ${entries}`, timed(tape, ...line.split(' '))] as const);
  });
  const samples = await gather(Object.fromEntries(acts), bench.size(9, 1));
  return seeking.map((line) =>
    compared(samples[`${line} ${many}`] ?? [], samples[`${line} ${few}`] ?? [], {
      work: `tape ${line} in a session of ${grouped(many)} entries (CPU)`,
      against: `in one of ${grouped(few)}`,
      unit: 'ms',
      goal: { most: 1.2 },
    }),
  );
}

/** The verbs in a session that is short. */
async function short(bench: Bench): Promise<Row[]> {
  const path = tapeOf(bench, bench.size(200, 100));
  const timed = processesOf(dirname(path));
  const lines = Object.keys(goals) as (keyof typeof goals)[];
  const uncompiled = tapeWithoutCode(bench);
  const samples = await gather(
    {
      bare: timed('-e', bare, path),
      writer: timed('-e', bareWriter(false), path),
      lineWriter: timed('-e', bareWriter(true), path),
      ...Object.fromEntries(lines.map((line) => [line, timed(tape, ...line.split(' '))])),
      ...Object.fromEntries(
        elsewhere.map((line) => [`${line} elsewhere`, timed(uncompiled, ...line.split(' '))]),
      ),
    } as Readonly<Record<Measured, () => Promise<number>>>,
    bench.size(25, 2),
  );
  return [
    ...lines.map((line) => {
      const [limit, most] = goals[line];
      return compared(samples[line], samples[limit], {
        work: `tape ${line}, a process (CPU)`,
        against: limits[limit],
        unit: 'ms',
        goal: { most },
      });
    }),
    ...elsewhere.map((line) => {
      const [limit] = goals[line];
      return compared(samples[`${line} elsewhere`], samples[limit], {
        work: `tape ${line}, without compiled code (CPU)`,
        against: limits[limit],
        unit: 'ms',
      });
    }),
  ];
}

type Measured = keyof typeof limits | keyof typeof goals | `${(typeof elsewhere)[number]} elsewhere`;

/** The program of a copy of the command that has no code of the build. */
function tapeWithoutCode({ dir }: Bench): string {
  const [from, to] = [dirname(dirname(tape)), join(dir, 'uncompiled')];
  for (const part of ['bin', 'bundle', 'package.json'])
    cpSync(join(from, part), join(to, part), {
      recursive: true,
      filter: (file) => !file.endsWith('.code') && !file.endsWith('.map'),
    });
  symlinkSync(join(from, '../../node_modules'), join(to, 'node_modules'));
  return join(to, 'bin/tape.js');
}
