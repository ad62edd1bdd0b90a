import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { forge } from '../support/forge.ts';
import { disagreements, skipsPython } from '../support/python.ts';
import { fillForForgeries, forgeAtRandom } from '../support/random-forgery.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261123);
const forgeries = sized(25, 25, 20_000);

test.skipIf(skipsPython('the verifier in Python'))(
  `tape verify and docs/verify.py agree on ${forgeries} random forgeries`,
  { timeout: 3_600_000 },
  async () => {
    const random = seeded(seed);
    using filled = tempHome();
    {
      using store = filled.open();
      fillForForgeries(store);
    }
    const wrong: string[] = [];
    let made = 0;
    let detected = 0;
    while (made < forgeries) {
      using home = tempHome();
      copyFileSync(filled.db, home.db);
      copyFileSync(filled.graph, home.graph);
      let what = '';
      try {
        forge(home.db, (db) => {
          what = forgeAtRandom(db, random);
        });
      } catch {
        // A constraint of the table refuses it, or there is nothing of the kind to change.
        continue;
      }
      made += 1;
      const { code, stdout } = await home.here(['verify', '--json']);
      const { problems } = JSON.parse(stdout) as { problems: Parameters<typeof disagreements>[1] };
      const differing = disagreements(home.path, problems);
      if (differing.length > 0) wrong.push(`${what} of TAPEDECK_SEED=${seed}: ${differing.join('; ')}`);
      if (code === 5) detected += 1;
    }
    expect(wrong).toEqual([]);
    expect(detected).toBeGreaterThan(made / 2);
  },
);
