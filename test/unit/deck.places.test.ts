import { existsSync } from 'node:fs';
import { type DeckOptions, openDeck } from '@tapedeck/runtime';
import { expect, test } from 'vitest';

const wrong = [{ cwd: 5 }, { engine: 5 }, { newId: 5 }, { now: 5 }, { modelFrom: 5 }].map((field) => ({
  home: 'h',
  ...field,
}));

test('a deck without a usable place is refused before anything is opened', async () => {
  for (const options of [{}, { home: '' }, { home: 5 }, { home: 'h', env: 5 }, ...wrong])
    await expect(openDeck(options as DeckOptions)).rejects.toMatchObject({ code: 'SESSION_BAD_CONFIG' });
  expect(existsSync('h')).toBe(false);
});
