import { createHash } from 'node:crypto';
import { aboutOf, answerTo } from './delegate-scenes.ts';
import { type Provider, startProvider } from './provider.ts';

/** The requests of one home: each by its number, which its answer contains, and what makes two requests the same. */
export interface Asked {
  readonly index: number;
  readonly digest: string;
  readonly sentAt: number;
}

/** The model of all homes, which remembers the requests of each. */
export interface DelegateServer extends Provider {
  /** In the order in which it came. */
  asked(home: string): readonly Asked[];
}

/** Starts one whose requests have the numbers from `first`. */
export async function startDelegateServer(first = 0): Promise<DelegateServer> {
  const byHome = new Map<string, Asked[]>();
  const provider = await startProvider((request, nth, sentAt) => {
    const index = first + nth;
    const about = aboutOf(request);
    const digest = createHash('sha256').update(JSON.stringify(request.messages)).digest('hex');
    const asked = byHome.get(about.home) ?? [];
    byHome.set(about.home, [...asked, { index, digest, sentAt }]);
    return answerTo(request, { about, index });
  });
  return { ...provider, asked: (home) => byHome.get(home) ?? [] };
}
