import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { matrix } from './peers/matrix.ts';
import { table } from './table.ts';
import type { Bench, Row } from './topic.ts';
import { chosen, topics } from './topics.ts';

/**
 * Prints how the store compares with its physical limits: `run.ts [TOPIC …] [--quick] [--markdown]
 * [--json FILE] [--compare FILE]`.
 * Nothing fails because a machine is slow; a goal that is missed is marked.
 */
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
const notes: string[] = [];
const bench: Bench = {
  dir: dir.path,
  size: (full, quick) => (values.quick ? quick : full),
  say: (text) => process.stderr.write(`${text}\n`),
  note: (text) => notes.push(text),
};
const rows: Row[] = [];
for (const [name, topic] of chosen(positionals, values.quick)) {
  const start = performance.now();
  rows.push(...(await topic(bench)));
  bench.say(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  // Signals are seen when the event loop turns.
  await setImmediate();
  if (interrupted) break;
}
if (interrupted) process.exitCode = 130;
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
// Stores stand side by side, unless each row has another one beside it: that of an earlier run.
const beside = before === undefined ? rows.filter(({ store }) => store !== undefined) : [];
const others = rows.filter((row) => !beside.includes(row));
const parts = [
  ...(others.length > 0 ? [table(others, { markdown: values.markdown, before })] : []),
  ...(beside.length > 0 ? [matrix(beside, { markdown: values.markdown })] : []),
  ...(notes.length > 0 ? [notes.join('\n')] : []),
];
process.stdout.write(`${parts.join('\n\n')}\n`);

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
