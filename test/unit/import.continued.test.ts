import { existsSync, globSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Entry, type Json, type SqliteTapeStore, user, type ViewPolicy } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { hostileFiles } from '../support/hostile-transcripts.ts';
import { importFiles } from '../support/import-files.ts';
import { ask } from '../support/provider/ask.ts';
import { modes } from '../support/provider/modes.ts';
import { signatureOf } from '../support/provider/signed.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl } from '../support/transcript.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const files = existsSync(samples)
  ? globSync('**/*.jsonl', { cwd: samples })
      .filter((file) => basename(file) !== 'journal.jsonl' && !file.includes('subagents/'))
      .sort()
  : [];

const policies: readonly ViewPolicy[] = ['last-boundary', 'full'];

/** Imports a file with those of its subagents, and says something in each of its sessions. */
async function continued(
  path: string,
): Promise<{ readonly store: SqliteTapeStore; readonly names: readonly string[] }> {
  const store = openStore();
  const { names } = await importFiles(store, [path], { clean: false });
  for (const name of names) store.entries.append(name, [user('Go on.')]);
  return { store, names };
}

/** The strict server knows its own signatures alone. */
function signed(entries: Iterable<Entry>): Entry[] {
  return [...entries].map((entry) => ({ ...entry, payload: resigned(entry.payload) as Entry['payload'] }));
}

function resigned(value: Json): Json {
  if (Array.isArray(value)) return value.map(resigned);
  if (!isObject(value)) return value;
  const options = isObject(value.providerOptions) ? value.providerOptions : {};
  const isSigned =
    value.type === 'reasoning' && isObject(options.anthropic) && 'signature' in options.anthropic;
  if (isSigned)
    return { ...value, providerOptions: { anthropic: { signature: signatureOf(String(value.text)) } } };
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, resigned(field ?? null)]));
}

/** Imports a file once, and gives its sessions to each provider. */
async function expectAccepted(path: string): Promise<void> {
  const { store, names } = await continued(path);
  for (const name of names)
    for (const policy of policies) {
      const entries = signed(store.views.entries(name, { policy }));
      for (const mode of modes) {
        const asked = await ask(mode, entries, { policy });
        const about = { mode: mode.name, name, policy };
        if (asked === undefined) throw new TypeError(`nothing was sent: ${JSON.stringify(about)}`);
        expect({ ...about, refused: asked.refused }).toEqual(about);
      }
    }
  store.close();
}

describe('every provider takes an imported session', () => {
  test.each(files)('%s', async (file) => {
    await expectAccepted(join(samples, file));
  });

  test.each(Object.entries(hostileFiles))('with %s', async (_, records) => {
    using dir = tempDir();
    writeFileSync(dir.file('s-1.jsonl'), jsonl(records));
    await expectAccepted(dir.file('s-1.jsonl'));
  });
});
