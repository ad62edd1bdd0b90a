import { type Audit, type AuditOptions, audit } from '@tapedeck/runtime';
import type { SqliteTapeStore, TapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { expect } from 'vitest';
import { storeUnderTest } from './deck.ts';

/**
 * Audits a store, and once more with each session examined by itself: what the queries about all sessions leave out has no
 * findings.
 */
export async function audited(store: SqliteTapeStore, options: AuditOptions = {}): Promise<Audit> {
  const found = await audit(storeUnderTest(store), options);
  expect(await audit(eachByItself(store), options)).toEqual(found);
  return found;
}

/** The store, without what only a database in this process answers. */
function eachByItself(store: SqliteTapeStore): TapeStore {
  return wrapStore(store, ({ method, act }) => (method === 'changes' ? Promise.resolve(act()) : act()));
}
