import { chmodSync, copyFileSync } from 'node:fs';
import { openTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { audited } from '../support/audited.ts';
import { forge } from '../support/forge.ts';
import { fillForForgeries, forgeAtRandom } from '../support/random-forgery.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261124);
const forgeries = sized(20, 30, 20_000);

test(`an audit of all sessions finds what one of each session finds, in ${forgeries} random forgeries`, {
  timeout: 3_600_000,
}, async () => {
  const random = seeded(seed);
  let [made, incomplete] = [0, 0];
  using origin = tempDir();
  const whole = origin.file('tape.db');
  {
    using store = openTapeStore(whole);
    fillForForgeries(store);
  }
  while (made < forgeries) {
    using dir = tempDir();
    const path = dir.file('tape.db');
    copyFileSync(whole, path);
    chmodSync(path, 0o600);
    let what = '';
    try {
      forge(path, (db) => {
        what = forgeAtRandom(db, random);
      });
    } catch {
      // A constraint of the table refuses it, or there is nothing of the kind to change.
      continue;
    }
    made += 1;
    using store = openTapeStore(path, { readonly: true });
    const { findings } = await audited(store).catch((cause: unknown) => {
      throw new Error(`TAPEDECK_SEED=${seed}: ${what}`, { cause });
    });
    // The home has one finding: no run answered the last message.
    if (findings.length > 1) incomplete += 1;
  }
  expect(incomplete).toBeGreaterThan(made / 20);
});
