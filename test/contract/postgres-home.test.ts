import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
import { expect, test } from 'vitest';
import { serverPlace } from '../support/postgres.ts';
import { sized } from '../support/size.ts';

/** A place on the server whose stores wait for each answer, as the command does. */
async function homePlace() {
  const place = await serverPlace();
  return { ...place, open: place.openHome };
}

let count = 0;
/** Each of these stores starts a thread, and asks the server what the store beside it asks: a part says much of what all do. */
const every = sized(16, 16, 1);
const some = (name: string, run: () => Promise<void>) => {
  count += 1;
  if (count % every === 0) test(name, run);
};

tapeStoreContract(
  { test: some, expect },
  async () => {
    const place = await homePlace();
    const store = await place.open();
    return Object.assign(store, {
      [Symbol.asyncDispose]: async () => {
        store.close();
        await place[Symbol.asyncDispose]();
      },
    });
  },
  { place: homePlace },
);
