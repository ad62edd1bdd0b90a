import type { Entry } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyHistory } from '../support/golden/arbitrary-history.ts';
import { ask } from '../support/provider/ask.ts';
import { modes } from '../support/provider/modes.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);
const tapes = sized(5, 8, 20_000);

test.each(modes)(
  '$name accepts the views of every tape',
  async (mode) => {
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(anyHistory, async (drafts) => {
        using store = openStore();
        store.sessions.open('main');
        for (const draft of drafts) store.entries.append('main', [draft]);
        const entries: Entry[] = [...store.views.entries('main')];
        const asked = await ask(mode, entries, { blob: (hash) => store.entries.blob(hash) });
        if (asked === undefined) return;
        sent += 1;
        expect(asked.refused).toBeUndefined();
      }),
      { numRuns: tapes, seed, interruptAfterTimeLimit: sized(50_000, 120_000, 3_000_000) },
    );
    expect(sent).toBeGreaterThan(0.6 * tapes);
  },
  sized(120_000, 120_000, 3_600_000),
);
