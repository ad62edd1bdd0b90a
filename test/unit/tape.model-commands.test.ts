import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commands } from '../support/commands/command.ts';
import { Handles } from '../support/commands/handles.ts';
import { Model } from '../support/commands/model.ts';
import { sized } from '../support/size.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);

const timeout = sized(900_000, 900_000, 6 * 3_600_000);

test('two to four handles on one file answer like one model, command after command', { timeout }, () => {
  let deepest = 0;
  const histories = fc.commands(commands, { maxCommands: 40, size: 'max' });
  fc.assert(
    fc.property(histories, fc.integer({ min: 2, max: 4 }), (history, count) => {
      using handles = new Handles(count);
      const model = new Model();
      fc.modelRun(() => ({ model, real: handles }), history);
      expect(handles.faults()).toEqual([]);
      deepest = Math.max(deepest, ...model.sessions.map(({ depth }) => depth));
    }),
    { numRuns: sized(24, 24, 20_000), seed },
  );
  expect(deepest).toBeGreaterThan(2);
});
