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
  return files.filter((file) => {
    const out = leftOut.get(idOf(file));
    if (out === undefined || isMain(file)) return true;
    const own = taken.get(idOf(file)) ?? [];
    const outMains = out.filter(isMain);
    if (outMains.length === 0) return own.some((one) => isMain(one) || one.project !== undefined);
    const mains: readonly LeftOut[] = own.filter(isMain);
    const main = nearestOf([...mains, ...outMains])(file.path);
    return mains.some((one) => one === main);
  });
}
