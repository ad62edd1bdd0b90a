import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { SourceTable } from '@tapedeck/runtime/import';
import { expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';
import { codeBlocks, page } from './pages.ts';

const format = page('docs/format.md');
const section = format.slice(format.indexOf('\n## Sources of imports'), format.indexOf('\n## The lineage'));
const [source = [], session = []] = codeBlocks(section, 'json').map((text) => JSON.parse(text) as unknown[]);

/** Whether a value is a text, a number, … */
const kindOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value);

const id = '5f3c9a52-0000-4000-8000-000000000000';
const secret = 'what the user says ';
const turns = Array.from({ length: 40 }, (_, i) => [
  person({ uuid: `u${i}`, ...(i > 0 && { parent: `a${i - 1}` }) }, secret.repeat(400)),
  model({ uuid: `a${i}`, parent: `u${i}` }, [says('an answer')]),
]).flat();
const records = turns.map((one, i) => ({
  ...one,
  ...{ sessionId: id, cwd: '/p' },
  timestamp: new Date(Date.UTC(2026, 2, 1, 10, 0, i)).toISOString(),
}));

test('what imports note of sources is as the page says, and has no content', async () => {
  using dir = tempDir();
  using store = openStore();
  const path = dir.file(`${id}.jsonl`);
  writeFileSync(path, jsonl(records));
  const table = dir.file('sources.jsonl');
  await importFiles(store, [path], { table: SourceTable.open(table), now: () => 5 });

  const lines = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n');
  const [row = '', behind = ''] = lines(table);
  const wrote = JSON.parse(row) as unknown[];
  expect(wrote.map(kindOf)).toEqual(source.slice(0, 17).map(kindOf));
  const bytes = readFileSync(path);
  expect(wrote.slice(1, 3)).toEqual([path, expect.any(Number)]);
  expect(wrote.slice(9, 13)).toEqual(['main', 5, records.length + 1, bytes.length]);
  expect(wrote[14]).toBe(createHash('sha256').update(bytes).digest('hex').slice(0, 32));

  const [sum = '', json = ''] = lines(`${table}.sessions`)[0]?.split(/ (.*)/s) ?? [];
  expect(sum).toBe(crc32(json).toString(16).padStart(8, '0'));
  const kept = JSON.parse(json) as unknown[];
  const { headHash, head, id: ulid } = store.sessions.find(id) ?? {};
  expect(kept.slice(0, 4)).toEqual([session[0], ulid, head, headHash]);
  expect(JSON.parse(behind)).toEqual({ v: 3, head: { id: ulid, seq: head, hash: headHash } });
  const names = (value: unknown): string[] => Object.keys(Object(value));
  expect(names(kept[4])).toEqual(names(session[4]));
  expect(names(Object(kept[4]).beginning)).toEqual(names(Object(session[4]).beginning));
  const described = [...names(kept[4]), ...names(Object(kept[4]).beginning)];
  for (const name of described) expect(section).toContain(`\`${name}\``);

  const end = `${table}.ends/${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`;
  expect(JSON.parse(readFileSync(end, 'utf8'))).toMatchObject({
    ...{ path, offset: bytes.length, tail: wrote[14] },
  });
  for (const file of [table, `${table}.sessions`, end])
    expect(readFileSync(file, 'utf8')).not.toContain(secret);
});
