import { assistant, type Draft, user } from '@tapedeck/tape';
import { encodeJson } from '@tapedeck/tape/store';
import { seeded } from './random.ts';

/** The word that every thousandth entry holds, and no other text does. */
export const needle = 'quokkasighting';

const poolChars = 1_000_000;
const longest = 50_000;

/** Words with the frequencies of a language: few are common, most are rare. */
function makePool(random: () => number): string {
  const syllables = ['ta', 'pe', 'de', 'ck', 'or', 'in', 'sel', 'mo', 'ver', 'lu', 'qua', 'ri', 'en', 'sto'];
  const syllable = () => syllables[Math.floor(random() * syllables.length)] ?? '';
  const words = Array.from({ length: 4000 }, () =>
    Array.from({ length: 1 + Math.floor(random() * 4) }, syllable).join(''),
  );
  let pool = '';
  while (pool.length < poolChars) pool += `${words[Math.floor(random() ** 3 * words.length)]} `;
  return pool;
}

/**
 * Entries as agents write them: about 1.3 KB on the average, one in fifty of 10 to 50 KB, half of them from a
 * person and half from a model. The same seed gives the same entries.
 */
export function payloads(seed = 1): () => Draft {
  const random = seeded(seed);
  const pool = makePool(random);
  let count = 0;
  return () => {
    count += 1;
    const length = Math.floor(
      random() < 0.02 ? 10_000 + random() * (longest - 10_000) : 100 + random() * 1200,
    );
    const at = Math.floor(random() * (poolChars - longest));
    const text = `${count % 1000 === 0 ? `${needle} ` : ''}${pool.slice(at, at + length)}`;
    return count % 2 === 0 ? assistant(text) : user(text);
  };
}

/** Entries of about 200 bytes, for the histories that are too long for entries of the usual size. */
export function smallPayloads(seed = 1): () => Draft {
  const random = seeded(seed);
  const pool = makePool(random);
  return () => {
    const at = Math.floor(random() * (poolChars - longest));
    return user(pool.slice(at, at + 80 + Math.floor(random() * 140)));
  };
}

export function take(next: () => Draft, count: number): Draft[] {
  return Array.from({ length: count }, next);
}

/** The bytes of a draft as the store keeps them, for those that write the same without a store. */
export function bytesOf(draft: Draft): string {
  return encodeJson(draft.payload);
}
