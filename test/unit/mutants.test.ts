import { describe, expect, test } from 'vitest';
import { copyCheckout, sourceOf, spoil } from '../mutation/checkout.ts';
import { mutants } from '../mutation/mutants.ts';

describe('the known bugs that the tests are tried with', () => {
  test.each(mutants)('can be put in: $name', (mutant) => {
    const source = sourceOf(mutant.file);
    expect(spoil(source, mutant)).not.toBe(source);
    expect(sourceOf(mutant.test)).toContain('test');
  });

  // All of them are tried by `pnpm test:mutants`, which a soak runs.
  test('are caught, as two of them show', { timeout: 300_000 }, () => {
    using checkout = copyCheckout();
    const two = mutants.filter(({ test }) => test === 'test/contract/sqlite-memory.test.ts').slice(0, 2);
    expect(two.length).toBe(2);
    expect(checkout.run(two[0] ?? { test: '' })).toMatchObject({ failed: 0 });
    for (const mutant of two) expect(checkout.runWith(mutant).failed, mutant.name).toBeGreaterThan(0);
  });
});
