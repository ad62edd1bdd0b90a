import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, Pool } from 'pg';
import { againMs, awayMs } from '../db/away.ts';
import type { Address } from './address.ts';
import { clientOf } from './connect.ts';
import { typed } from './errors.ts';

/** The channel on which the server tells that something of a home has changed: its schema has a trigger for it. */
export function channelOf({ schema }: Address): string {
  return `tape_${schema}`;
}

/** What the server has told the owner of a session. */
interface Told {
  readonly all: number;
  /** What this store has done itself. */
  readonly ours: number;
  /** How often this store has taken or released the lease. */
  readonly leases: number;
}

const nothing: Told = { all: 0, ours: 0, leases: 0 };

/**
 * Counts what others commit to a home, as the server tells it. A connection of its own listens from the first question on;
 * when it is lost, the next question listens again, and then the count moves, so that readers look.
 */
export class Listener {
  readonly #address: Address;
  #listening: Promise<Client> | undefined;
  #count = 0;
  /** What the owner of a session has to look at, by its ULID. */
  readonly #ofOwners = new Map<string, Told>();
  /** The processes of the server that do what this store asks. */
  readonly #ours: ReadonlySet<number>;
  /** The connection that listens. */
  #hearing: Client | undefined;
  /** Counts for all owners: they have to look when a connection was lost. */
  #anew = 0;
  #lostAt = Number.NEGATIVE_INFINITY;

  constructor(address: Address, pool: Pool) {
    this.#address = address;
    this.#ours = processesOf(pool);
  }

  /** The connection that listens now. */
  get hearing(): object | undefined {
    return this.#hearing;
  }

  /** A number that is another one soon after each commit; with a session, after those that its owner has to look at. */
  async count(session?: string): Promise<number> {
    this.#listening ??= this.#listen();
    const listening = this.#listening;
    try {
      await listening;
    } catch (error) {
      if (this.#listening === listening) this.#listening = undefined;
      if (performance.now() - this.#lostAt > awayMs) throw typed(this.#address.shown, error);
      await sleep(againMs);
    }
    if (session === undefined) return this.#count;
    return this.#anew + openIn(this.#ofOwners.get(session) ?? nothing);
  }

  /**
   * Says that this store has taken or released the lease of a session, while `hearing` listened: what the server tells of that
   * is nothing that an owner has to look at.
   */
  leased(session: string, hearing: object | undefined): void {
    if (hearing !== undefined && hearing === this.#hearing) this.#tell(session, { leases: 1 });
  }

  /** Says at once what the server will tell: this process has posted something. */
  posted(): void {
    this.#count += 1;
    this.#anew += 1;
  }

  async close(): Promise<void> {
    const client = await this.#listening?.catch(() => undefined);
    this.#listening = undefined;
    // Who waits for the end must not end before it.
    (client as unknown as { ref(): void } | undefined)?.ref();
    await client?.end();
  }

  async #listen(): Promise<Client> {
    const client = clientOf(this.#address);
    client.on('notification', ({ payload = '', processId }) => {
      this.#count += 1;
      if (payload.startsWith('!'))
        this.#tell(payload.slice(1), { all: 1, ours: this.#ours.has(processId) ? 1 : 0 });
    });
    try {
      await client.connect();
      await client.query(`${this.#address.begin}; LISTEN ${channelOf(this.#address)}`);
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
    client.once('end', () => this.#lose());
    // A program that only listens has ended.
    (client as unknown as { unref(): void }).unref();
    this.#count += 1;
    this.#anew += 1;
    this.#hearing = client;
    return client;
  }

  /** The count of an owner keeps what the lost connection had reported: it never comes back to an earlier number. */
  #lose(): void {
    this.#listening = undefined;
    this.#hearing = undefined;
    this.#lostAt = performance.now();
    for (const told of this.#ofOwners.values()) this.#anew += openIn(told);
    this.#ofOwners.clear();
  }

  #tell(session: string, more: Partial<Told>): void {
    const { all, ours, leases } = this.#ofOwners.get(session) ?? nothing;
    this.#ofOwners.set(session, {
      all: all + (more.all ?? 0),
      ours: ours + (more.ours ?? 0),
      leases: leases + (more.leases ?? 0),
    });
  }
}

/** How often the owner of a session had to look. */
function openIn({ all, ours, leases }: Told): number {
  return all - Math.min(ours, leases);
}

/** The processes of the server behind the connections of a pool, as they come and go. */
function processesOf(pool: Pool): ReadonlySet<number> {
  const ids = new Set<number>();
  const idOf = (client: object) => (client as { readonly processID: number }).processID;
  pool.on('connect', (client) => ids.add(idOf(client)));
  pool.on('remove', (client) => ids.delete(idOf(client)));
  return ids;
}
