import { readdirSync } from 'node:fs';
import type { DelegateHome } from './delegate-acts.ts';
import { delegateHome, faultsInTheEnd, runWork } from './delegate-round.ts';
import type { Scene } from './delegate-scenes.ts';
import { type Asked, type DelegateServer, startDelegateServer } from './delegate-server.ts';
import { dirInside, tempDir } from './temp-dir.ts';
import { homeIn, tempHome } from './temp-home.ts';

/** A home of a scene, or a copy of one as a kill leaves it. */
interface Place {
  readonly home: DelegateHome;
  /** Where the copy was taken, and that of which it is one; none for the home of a scene itself. */
  readonly points: readonly string[];
  /** Its prompts, behind those of the session that it copies. */
  readonly asked: () => readonly Asked[];
}

/** No server has more requests: the numbers of those of the next begin there. */
const requestsMax = 1000;

/**
 * Lets a process delegate, another one recover what the first had written when it passed a point, and a third what the
 * second had at points that the first does not pass. Returns the points, and what is wrong in the end with any of these
 * homes, once its parent has run again.
 */
export async function recoverCopies(
  scenes: readonly Scene[],
  wanted: readonly string[],
): Promise<{ readonly points: readonly string[]; readonly faults: readonly string[] }> {
  await using stack = new AsyncDisposableStack();
  const servers: DelegateServer[] = [];
  let started = 0;
  /** Each has a server of its own: all copies of a home ask for the same. */
  const placed = async (
    files: Parameters<typeof delegateHome>[0],
    { id, scene }: Pick<DelegateHome, 'id' | 'scene'>,
    before: Pick<Place, 'points' | 'asked'>,
  ): Promise<Place> => {
    const server = stack.use(await startDelegateServer(requestsMax * started++));
    servers.push(server);
    return {
      home: delegateHome(files, { id, scene, url: server.url }),
      points: before.points,
      asked: () => [...before.asked(), ...server.asked(id)],
    };
  };
  let places = await Promise.all(
    scenes.map((scene) =>
      placed(stack.use(tempHome()), { id: scene, scene }, { points: [], asked: () => [] }),
    ),
  );
  const all: Place[] = [];
  for (const act of ['work', 'recover', 'recover'] as const) {
    const dir = stack.use(tempDir());
    const seen = new Set([...all, ...places].flatMap((place) => place.points));
    await runWork(
      places.map(({ home }) => home),
      { act, copies: { dir: dir.path, points: wanted.filter((point) => !seen.has(point)) } },
    );
    all.push(...places);
    places = await Promise.all(
      readdirSync(dir.path).flatMap((name) => {
        const [number = '', point = ''] = name.split(/ (.*)/s);
        const of = places[Number(number)];
        if (of === undefined) return [];
        const files = homeIn(dirInside(dir, name));
        return [placed(files, of.home, { points: [...of.points, point.replace(' ', '/')], asked: of.asked })];
      }),
    );
  }
  const faults: string[] = [];
  for (const { home, points, asked } of all)
    faults.push(
      ...(await faultsInTheEnd(home, asked)).map((fault) => `cut at ${points.join(', then ')}: ${fault}`),
    );
  faults.push(...servers.flatMap(({ refusals }) => refusals));
  return { points: all.flatMap(({ points }) => points), faults };
}
