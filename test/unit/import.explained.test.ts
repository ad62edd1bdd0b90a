import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { objectsIn } from '../support/claude-reader.ts';
import { besideTheView, unexplained } from '../support/claude-records.ts';
import { importFiles } from '../support/import-files.ts';
import { root } from '../support/imports.ts';
import { openStore } from '../support/store.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);
const files = absent ? [] : globSync('**/*.jsonl', { cwd: samples }).sort();

describe.skipIf(absent)(`each record of a real transcript (skipped unless ${samples} is there)`, () => {
  test.each(files)('is in a view, or there is a reason why not: %s', async (file) => {
    const path = join(samples, file);
    using store = openStore();
    const { names } = await importFiles(store, [path], { clean: false });
    const { objects: records } = objectsIn(readFileSync(path, 'utf8'));
    expect(unexplained(store, { names, records })).toEqual([]);
  });
});

test('the page of the format names each kind of record that is in no view', () => {
  const page = readFileSync(join(root, 'docs/formats/claude-code.md'), 'utf8');
  expect(Object.keys(besideTheView).filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
});
