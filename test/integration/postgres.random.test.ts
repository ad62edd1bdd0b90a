import type { TapeStore } from '@tapedeck/tape';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { fixedClock } from '../support/clock.ts';
import { serverPlace } from '../support/postgres.ts';
import { contentOf, type Leases, nextAct, resultOf, withoutIds } from '../support/random-acts.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const histories = sized(
  [1, 2, 3],
  [1, 2, 3],
  Array.from({ length: 200 }, (_, i) => i),
);
const actsOfEach = 120;

test.for(histories)(
  'two stores on a server, which act by turns on the same sessions, do what one file does: history %i',
  async (seed) => {
    const random = seeded(seed);
    const clock = fixedClock();
    const { now } = clock;
    await using place = await serverPlace();
    await using one = await openPostgresStore(place.url, { now });
    await using two = await openPostgresStore(place.url, { now });
    using file = openStore(':memory:', { now });
    await one.sessions.open('main');
    file.sessions.open('main');
    const [served, filed]: [Leases, Leases] = [new Map(), new Map()];
    let store: TapeStore = one;
    for (let at = 0; at < actsOfEach; at += 1) {
      // An owner acts several times in a row, so that what it knows of its session matters.
      if (random.chance(30)) store = random.of([one, two]);
      if (random.chance(10)) clock.advance(15_000);
      clock.advance(1);
      const act = nextAct(random, at, [...filed.keys()]);
      const wanted = await resultOf(act, file as unknown as TapeStore, filed);
      expect([at, withoutIds(await resultOf(act, store, served))]).toEqual([at, withoutIds(wanted)]);
    }
    expect(withoutIds(await contentOf(two))).toBe(withoutIds(await contentOf(file as unknown as TapeStore)));
    expect(await Array.fromAsync(one.verify())).toEqual([]);
  },
);
