import { type FoundFile, idOf } from './found-file.ts';
import { nearestOf } from './nearest.ts';

/** A file that is left out by its working directory. */
export type LeftOut = Pick<FoundFile, 'path' | 'tool' | 'main' | 'role'>;

/**
 * The files without those that lie beside a transcript which is left out by its working directory: saved outputs, which name
 * none, and with a main session its subagents, which may have worked elsewhere. Where the session was in another directory,
 * too, what is nearer to the transcript of that is taken with it. `leftOut`: what is left out, by conversations. Pure.
 */
export function withoutParts(
  files: readonly FoundFile[],
  leftOut: ReadonlyMap<string, readonly LeftOut[]>,
): readonly FoundFile[] {
  if (leftOut.size === 0) return files;
  const isMain = ({ role }: LeftOut) => role === 'main';
  const taken = Map.groupBy(files, idOf);
  const takes = new Map(
    [...leftOut].map(([id, out]) => {
      const own = taken.get(id) ?? [];
      const outMains = out.filter(isMain);
      if (outMains.length === 0)
        return [id, () => own.some((one) => isMain(one) || one.project !== undefined)];
      const mains: readonly LeftOut[] = own.filter(isMain);
      const mainOf = nearestOf([...mains, ...outMains]);
      return [id, ({ path }: FoundFile) => mains.some((main) => main === mainOf(path))];
    }),
  );
  return files.filter((file) => isMain(file) || (takes.get(idOf(file))?.(file) ?? true));
}
