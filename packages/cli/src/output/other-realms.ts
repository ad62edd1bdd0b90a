import type { HomeStore } from '@tapedeck/tape';
import { counted } from './counted.ts';

/** Says which sessions of a home a verb does not see, because they are of other realms than its own, or than `base`. */
export function otherRealms(store: HomeStore, base?: string): readonly string[] {
  return store
    .otherRealms(base)
    .map(
      ({ realm, sessions }) =>
        `Not included: ${counted(sessions, 'session')} of base '${realm}' (see them with --base ${realm})`,
    );
}
