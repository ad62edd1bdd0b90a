import type { Lease } from '@tapedeck/tape';

/** What the simulator itself knows of all leases that were ever given. */
export class LeaseBook {
  readonly #all: Lease[] = [];
  readonly #superseded = new Set<Lease>();
  /** The lease of a session of which it is known that it has not been given back. */
  readonly #held = new Map<string, Lease>();

  get all(): readonly Lease[] {
    return this.#all;
  }

  /** The leases of a session until now. */
  of(id: string): readonly Lease[] {
    return this.#all.filter((lease) => lease.id === id);
  }

  /** A lease was given: its epoch must be higher than any before, and those before are over. */
  taken(lease: Lease): string[] {
    const known = this.of(lease.id);
    this.over(known);
    this.#all.push(lease);
    this.#held.set(lease.id, lease);
    return known
      .filter(({ epoch }) => epoch >= lease.epoch)
      .map(({ epoch }) => `epoch ${lease.epoch} of ${lease.session} was given after ${epoch}`);
  }

  /** The store has said that it is its owner's still. */
  held(lease: Lease): void {
    this.#held.set(lease.id, lease);
  }

  /** It may expire soon, at an unknown time. */
  doubt({ id }: Lease): void {
    this.#held.delete(id);
  }

  /** They were released, or another process has written their session: none of them may ever write again. */
  over(leases: readonly Lease[]): void {
    for (const lease of leases) {
      this.#superseded.add(lease);
      if (this.#held.get(lease.id)?.epoch === lease.epoch) this.#held.delete(lease.id);
    }
  }

  isOver({ id, epoch }: Lease): boolean {
    return [...this.#superseded].some((lease) => lease.id === id && lease.epoch === epoch);
  }

  /** The lease that certainly holds a session. */
  live(id: string, now: number): Lease | undefined {
    const lease = this.#held.get(id);
    return lease === undefined || lease.expiresAt <= now ? undefined : lease;
  }

  /** After a crash it is unknown which leases were released or taken over. */
  unsure(): void {
    this.#held.clear();
  }
}
