import { openTapeStore, type StoreOptions, user, view } from '@tapedeck/tape';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { countedIds } from '../support/ids.ts';
import { MemoryJournal } from '../support/memory-journal.ts';
import { sized } from '../support/size.ts';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const day = 86_400_000;
const start = Date.UTC(2026, 10, 21, 10);
const zone = process.env.TZ;

afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

/** A store with a clock under the control of the test. */
function storeAt(path: string, times: Iterator<number>, o: StoreOptions = {}) {
  let last = start;
  const now = () => {
    last = times.next().value ?? last;
    return last;
  };
  return openTapeStore(path, { durability: 'fast', now, ...o });
}

describe('order follows positions, whatever the clock shows', () => {
  const clocks: Readonly<Record<string, (n: number) => number>> = {
    'goes back a day each time': (n) => start - n * day,
    'jumps a hundred years on and back': (n) => start + (n % 2) * 36_525 * day,
    'stands still': () => start,
    'is at its beginning': () => 0,
    'is at the end of what an id can hold': () => 2 ** 48 - 1,
    'passes a leap second and a change of the hour': (n) => Date.UTC(2026, 2, 29, 0, 59, 58) + n * 500,
  };

  test.each(Object.entries(clocks))('%s', (_, at) => {
    using dir = tempDir();
    const journal = new MemoryJournal();
    let n = 0;
    const now = () => {
      n += 1;
      return at(n);
    };
    const texts = Array.from({ length: 30 }, (_, i) => `entry ${i}`);
    {
      using store = openTapeStore(dir.file('tape.db'), { durability: 'fast', now, journal });
      store.sessions.open('main');
      for (const text of texts) store.entries.append('main', [user(text)]);
      store.lineage.fork('main', { name: 'child', cut: 20 });
      store.entries.append('child', [user('own')]);
      store.lineage.merge('child', { text: 'done' });
    }
    // Read by another clock, as another machine would.
    using store = openTapeStore(dir.file('tape.db'), { journal });
    const seqs = [...store.entries.read('main')].map(({ seq }) => seq);
    expect(seqs).toEqual(Array.from({ length: 33 }, (_, i) => i + 1));
    const shown = JSON.stringify(view([...store.views.entries('main')]).messages);
    expect([...shown.matchAll(/entry \d+/g)].map(([text]) => text)).toEqual(texts);
    expect(store.entries.search({ text: 'entry', limit: 100 }).hits.map((hit) => hit.seq)).toEqual(
      seqs.slice(1, 31).reverse(),
    );
    expect(journal.lines().map((line) => JSON.parse(line).type)).toEqual(['session', 'fork', 'merge']);
    expect([...store.verify()]).toEqual([]);
  });

  test('any times at all', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 4_000_000_000_000 }), { minLength: 1, maxLength: 40 }),
        (times) => {
          using store = storeAt(':memory:', times[Symbol.iterator]());
          store.sessions.open('main');
          for (let n = 0; n < 10; n += 1) store.entries.append('main', [user(String(n))]);
          const read = [...store.entries.read('main', { from: 2 })].map(({ payload }) =>
            JSON.stringify(payload),
          );
          expect(read.map((text) => /"text":"(\d)"/.exec(text)?.[1])).toEqual([...'0123456789']);
          expect([...store.verify()]).toEqual([]);
        },
      ),
      { numRuns: sized(30, 30, 5_000) },
    );
  });

  test('time zones change only the display: the stored bytes are the same in each', () => {
    const heads = ['UTC', 'Pacific/Kiritimati', 'America/St_Johns', 'Asia/Kathmandu'].map((tz) => {
      process.env.TZ = tz;
      const journal = new MemoryJournal();
      const salt = () => new Uint8Array(16);
      const newId = countedIds();
      using store = openTapeStore(':memory:', { now: () => start, salt, newId, journal });
      store.sessions.open('main');
      store.entries.append('main', [user('hello')]);
      return [store.sessions.find('main')?.headHash, journal.text];
    });
    expect(new Set(heads.map(String)).size).toBe(1);
  });
});

describe('ids', () => {
  test('are distinct and in order while the clock stands still or goes back', () => {
    for (const step of [0, -1]) {
      let time = start;
      const now = () => {
        time += step;
        return time;
      };
      using store = openTapeStore(':memory:', { now });
      store.sessions.open('main');
      const ids = Array.from(
        { length: 5_000 },
        () => store.inbox.post('main', { body: { type: 'append', drafts: [user('x')] } }).id,
      );
      expect(new Set(ids).size).toBe(5_000);
      expect(ids.toSorted()).toEqual(ids);
    }
  });

  test('that repeat, as from a broken source, create no second session and change no first', () => {
    const newId = () => '01JD0000000000000000000001';
    using store = openTapeStore(':memory:', { newId });
    store.sessions.open('main');
    const before = store.sessions.find('main');
    expect(() => store.sessions.open('second')).toThrow();
    expect(() => store.lineage.fork('main', { name: 'child' })).toThrow();
    expect(store.sessions.find('main')).toEqual(before);
    expect(store.sessions.list({ all: true }).map(({ session: name }) => name)).toEqual(['main']);
    expect(refusal(() => store.entries.append('second', [user('x')])).code).toBe('TAPE_NO_SESSION');
  });
});
