import { describe, expect, test } from 'vitest';
import { copyCheckout, sourceOf, spoil } from '../mutation/checkout.ts';
import { mutants } from '../mutation/mutants.ts';
import { sized } from '../support/size.ts';

describe('the known bugs that test the tests', () => {
  test.each(mutants)('can be applied: $name', (mutant) => {
    const source = sourceOf(mutant.file);
    expect(spoil(source, mutant)).not.toBe(source);
    expect(sourceOf(mutant.test)).toContain('test');
  });

  // All of them are tried by `pnpm test:mutants`, which a soak runs.
  if (sized(false, true, true))
    test('are caught, as one of them shows', { timeout: 300_000 }, () => {
      using checkout = copyCheckout();
      const mutant = mutants.find(({ test }) => test === 'test/contract/sqlite-memory.test.ts');
      if (mutant === undefined) throw new Error('no bug is tried with the contract of a store');
      expect(checkout.run(mutant, 'push')).toMatchObject({ failed: 0 });
      expect(checkout.runWith(mutant, 'push').failed, mutant.name).toBeGreaterThan(0);
    });
});
