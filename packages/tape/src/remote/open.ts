import type { Packs } from './packs.ts';
import { kindOf } from './url.ts';

/** What a transport is given beside the URL. */
export interface RemoteOptions {
  /** A directory of the home for what is kept of this remote: rebuilt when it is missing, and made when it is needed. */
  readonly state: string;
}

/**
 * Opens the remote of a URL that `remoteUrl` made. A transport is loaded when a URL needs it.
 * @throws TAPE_BAD_OPTION for a URL of no known kind
 */
export async function openRemote(url: string, _o: RemoteOptions): Promise<Packs> {
  switch (kindOf(url)) {
    case 'directory': {
      const { directoryPacks } = await import('./directory.ts');
      return directoryPacks(url);
    }
  }
}
