import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { append } from './append.ts';
import { cli } from './cli.ts';
import { disk } from './disk.ts';
import { fork } from './fork.ts';
import { memory } from './memory.ts';
import { open } from './open.ts';
import { processes } from './processes.ts';
import { read } from './read.ts';
import { search } from './search.ts';
import { table } from './table.ts';
import type { Bench, Row, Topic } from './topic.ts';
import { verify } from './verify.ts';

const topics: Readonly<Record<string, Topic>> = {
  append,
  fork,
  read,
  open,
  verify,
  disk,
  search,
  memory,
  processes,
  cli,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    json: { type: 'string' },
    dir: { type: 'string' },
  },
});
const chosen = positionals.length > 0 ? positionals : Object.keys(topics);
for (const name of chosen)
  if (topics[name] === undefined)
    throw new RangeError(`there is no topic '${name}': ${Object.keys(topics).join(', ')}`);

using dir = mkdtempDisposableSync(join(values.dir ?? tmpdir(), 'tapedeck-bench-'));
const bench: Bench = {
  dir: dir.path,
  size: (full, quick) => (values.quick ? quick : full),
  say: (text) => process.stderr.write(`${text}\n`),
};
const rows: Row[] = [];
for (const name of chosen) {
  const start = performance.now();
  rows.push(...((await topics[name]?.(bench)) ?? []));
  bench.say(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
process.stdout.write(`${table(rows, { markdown: values.markdown })}\n`);
