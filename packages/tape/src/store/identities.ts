import { groupAround, primaryIds } from '../identity/group.ts';
import { assertKey } from '../identity/key-name.ts';
import { type Changed, linkKeys, unlinkKeys } from '../identity/link.ts';
import { planKey, resolveKey } from '../identity/resolve.ts';
import type { GraphReceipt } from '../lineage/line.ts';
import { infoOf } from '../tape/info.ts';
import { tapeById } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { assertArgument, assertOptions, fieldsOf, type LinkOptions, type ResolveOptions } from './options.ts';
import type { Identities, Identity, Linked, Resolved } from './store.ts';

/** Makes `store.identities`. */
export function identitiesOn(at: Connection): InProcess<Identities> {
  const { db, realm, writer } = at;

  function assertKeys(act: string, key: string, addresses: readonly string[]): void {
    assertArgument(key, 'text', act, 'the key');
    assertArgument(addresses, 'texts', act, 'the addresses');
    for (const one of [key, ...addresses]) assertKey(one);
  }

  function identityOf(id: number): Identity {
    const { sessions, keys } = groupAround(db, tapeById(db, id));
    const [primary, ...quiet] = sessions.map((tape) => infoOf(db, tape));
    if (primary === undefined) throw new TypeError('a group has a session');
    return { primary, quiet, keys };
  }

  function changedBy(act: () => Changed): Linked & GraphReceipt {
    const done = db.writeThrough(() => {
      const { primary, changed, created } = act();
      return { ...identityOf(primary.id), changed, created };
    });
    return { ...done, ...at.drainOutbox() };
  }

  return {
    resolve(key: string, o: ResolveOptions = {}): Resolved & GraphReceipt {
      assertOptions(o, fieldsOf['identities.resolve'], 'resolve', String(key));
      const { address, init = {} } = o;
      assertKeys('resolve a key', key, address === undefined ? [] : [address]);
      assertOptions(init, fieldsOf['sessions.open'], 'resolve', key);
      const plan = db.read(() => planKey(db, realm, { key, address }));
      if (plan.act === 'none') return { session: infoOf(db, plan.tape), how: plan.how, ...at.graphReceipt() };
      const done = db.writeThrough(() => {
        const { tape, how } = resolveKey(writer, realm, { key, address, init });
        return { session: infoOf(db, tapeById(db, tape.id)), how };
      });
      return { ...done, ...at.drainOutbox() };
    },

    find(key: string, o: ResolveOptions = {}): Resolved | undefined {
      assertOptions(o, fieldsOf['identities.resolve'], 'find', String(key));
      const { address } = o;
      assertKeys('find a key', key, address === undefined ? [] : [address]);
      return db.read(() => {
        const plan = planKey(db, realm, { key, address });
        return plan.act === 'create' ? undefined : { session: infoOf(db, plan.tape), how: plan.how };
      });
    },

    link(key: string, addresses: readonly string[], o: LinkOptions = {}): Linked & GraphReceipt {
      assertOptions(o, fieldsOf['identities.link'], 'link', String(key));
      assertKeys('link keys', key, addresses);
      const { init = {} } = o;
      assertOptions(init, fieldsOf['sessions.open'], 'link', key);
      return changedBy(() => linkKeys(writer, realm, { key, addresses, init }));
    },

    unlink(key: string, addresses: readonly string[] = []): Linked & GraphReceipt {
      assertKeys('unlink keys', key, addresses);
      return changedBy(() => unlinkKeys(writer, realm, { key, addresses }));
    },

    list(): readonly Identity[] {
      return db.read(() => primaryIds(db, realm).map(identityOf));
    },
  };
}
