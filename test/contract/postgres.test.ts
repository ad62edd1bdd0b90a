import { view } from '@tapedeck/tape';
import { encodeLine, sha256 } from '@tapedeck/tape/store';
import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
import { expect, test } from 'vitest';
import { serverPlace, serverStore } from '../support/postgres.ts';
import { playScript, scriptHashes } from '../support/script.ts';
import { fixedSources } from '../support/store.ts';

test('the same script leaves the same bytes as in a file: heads, lines and views', async () => {
  await using store = await serverStore({ homeId: '01JD000000000000000000H0ME', ...fixedSources() });
  await playScript(store);
  const lines = (await Array.fromAsync(store.lineage.read())).map(encodeLine);
  const views: string[] = [];
  for (const name of ['main', 'one', 'two'])
    for (const policy of ['last-boundary', 'full'] as const) {
      const entries = await Array.fromAsync(store.views.entries(name, { policy }));
      views.push(JSON.stringify(view(entries, { policy, target: { provider: 'anthropic' } }).messages));
    }
  expect({
    head: (await store.sessions.find('main'))?.headHash,
    lines: sha256(lines.join('\n')),
    views: sha256(views.join('\n')),
  }).toEqual(scriptHashes);
});

tapeStoreContract({ test, expect }, () => serverStore(), { place: serverPlace });
