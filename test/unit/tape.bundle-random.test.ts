import { openTapeStore, type SqliteTapeStore, view } from '@tapedeck/tape';
import type { BundleScope } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { adopt, bundleOf, faceOf } from '../support/bundles.ts';
import { commands } from '../support/commands/command.ts';
import { Handles } from '../support/commands/handles.ts';
import { Model } from '../support/commands/model.ts';
import { sized } from '../support/size.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);
const timeout = sized(120_000, 900_000, 6 * 3_600_000);
const histories = fc.commands(commands, { maxCommands: 40, size: 'max' });

/** All but what says that something did not come along. */
function damage(store: SqliteTapeStore): string[] {
  return [...store.verify(), ...store.verifyDatabase()].flatMap(({ code, message }) =>
    code === 'not-here' ? [] : [`${code}: ${message}`],
  );
}

function seen(store: SqliteTapeStore, name: string): string {
  return view(store.views.entries(name)).digest;
}

test('bundles of any home land whole, add nothing twice, and add what is new', { timeout }, async () => {
  let [landed, partial] = [0, 0];
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(), async (history, pick) => {
      using handles = new Handles(2);
      fc.modelRun(() => ({ model: new Model(), real: handles }), history);
      const here = handles.at(0);
      const sessions = here.sessions.list({ all: true });
      using there = openTapeStore(':memory:', { secrets: [] });
      const scopes: readonly BundleScope[] = ['session', 'lineage', 'tree'];
      for (const [n, { session: name, id }] of sessions.entries()) {
        const scope = scopes[(pick + n) % 3] ?? 'session';
        const bundle = bundleOf(here, id, { scope });
        await adopt(there, bundle);
        expect(damage(there)).toEqual([]);
        expect(there.sessions.find(id)?.headHash).toBe(here.sessions.find(id)?.headHash);
        expect(seen(there, id)).toBe(seen(here, id));
        if (scope !== 'session') {
          using empty = openTapeStore(':memory:', { secrets: [] });
          await adopt(empty, bundle);
          expect(damage(empty)).toEqual([]);
          const { aliases: _a, ...face } = faceOf(empty, id) as { readonly aliases: unknown };
          const { aliases: _b, ...same } = faceOf(here, id) as { readonly aliases: unknown };
          expect(face).toEqual(same);
          landed += 1;
        }
        const again = await adopt(there, bundle);
        expect([name, again.entries, again.lines, again.filled]).toEqual([name, 0, 0, 0]);
        partial += 1;
      }
      const all = here.sessions.list({ roots: true, all: true });
      for (const { id } of all) await adopt(there, bundleOf(here, id, { scope: 'tree' }));
      expect([...there.verify()]).toEqual([]);
      for (const { id } of sessions) expect(faceOf(there, id)).toEqual(faceOf(here, id));
    }),
    { numRuns: sized(6, 8, 20_000), seed, endOnFailure: true },
  );
  expect(landed).toBeGreaterThan(5);
  expect(partial).toBeGreaterThan(10);
});
