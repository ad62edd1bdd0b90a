import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { append } from './append.ts';
import { cli } from './cli.ts';
import { delegate } from './delegate.ts';
import { disk } from './disk.ts';
import { fork } from './fork.ts';
import { homes } from './homes.ts';
import { memory } from './memory.ts';
import { open } from './open.ts';
import { processes } from './processes.ts';
import { read } from './read.ts';
import { record } from './record.ts';
import { search } from './search.ts';
import { table } from './table.ts';
import type { Bench, Row, Topic } from './topic.ts';
import { verify } from './verify.ts';

/**
 * Prints how the store compares with its physical limits: `run.ts [TOPIC …] [--quick] [--markdown]
 * [--json FILE] [--compare FILE]`.
 * Nothing fails because a machine is slow; a goal that is missed is marked.
 */
const topics: Readonly<Record<string, Topic>> = {
  append,
  read,
  open,
  verify,
  disk,
  search,
  fork,
  memory,
  processes,
  record,
  delegate,
  cli,
  homes,
};

/** Topics that take long, and run only when they are named, or quickly. */
const long: ReadonlySet<string> = new Set(['homes']);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    json: { type: 'string' },
    compare: { type: 'string' },
  },
});
const unknown = positionals.filter((name) => topics[name] === undefined);
if (unknown.length > 0) {
  process.stderr.write(
    `There is no topic ${unknown.join(', ')}; there are ${Object.keys(topics).join(', ')}\n`,
  );
  process.exit(2);
}

const before = values.compare === undefined ? undefined : savedRows(values.compare);

using dir = mkdtempDisposableSync(join(tmpdir(), 'tapedeck-bench-'));
// A topic is not interrupted; what it made goes away after it.
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    interrupted = true;
  });
const bench: Bench = {
  dir: dir.path,
  size: (full, quick) => (values.quick ? quick : full),
  say: (text) => process.stderr.write(`${text}\n`),
};
const rows: Row[] = [];
for (const [name, topic] of Object.entries(topics)) {
  if (positionals.length > 0 ? !positionals.includes(name) : long.has(name) && !values.quick) continue;
  const start = performance.now();
  rows.push(...(await topic(bench)));
  bench.say(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  // Signals are seen when the event loop turns.
  await setImmediate();
  if (interrupted) break;
}
if (interrupted) process.exitCode = 130;
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
process.stdout.write(`${table(rows, { markdown: values.markdown, before })}\n`);

/** The rows that `--json` saved. */
function savedRows(file: string): readonly Row[] {
  try {
    const rows: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (Array.isArray(rows) && rows.every((row) => typeof row?.work === 'string')) return rows;
    throw new Error('it has no rows of a bench');
  } catch (error) {
    process.stderr.write(`cannot compare with '${file}': ${(error as Error).message}\n`);
    return process.exit(2);
  }
}
