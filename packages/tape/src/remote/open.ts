import type { RemoteOptions } from './packs.ts';
import type { Remote } from './transfer.ts';
import { kindOf } from './url.ts';

/**
 * Opens the remote of a URL that `remoteUrl` made. A transport is loaded when a URL needs it.
 * @throws TAPE_BAD_OPTION for a URL of no known kind
 */
export async function openRemote(url: string, o: RemoteOptions): Promise<Remote> {
  switch (kindOf(url)) {
    case 'directory': {
      const { directoryPacks } = await import('./directory.ts');
      return directoryPacks(url);
    }
    case 'git': {
      const { gitPacks } = await import('./git.ts');
      return gitPacks(url, o);
    }
    case 'ssh': {
      const { sshPeer } = await import('./ssh.ts');
      return sshPeer(url, o);
    }
  }
}
