import { type FoundFile, idOf } from './found-file.ts';
import { isAtOrBelow, realBeginning } from './real.ts';

/** The files of the conversations of which one has changed since a time. */
export function changedSince(since: number | undefined, files: readonly FoundFile[]): readonly FoundFile[] {
  if (since === undefined) return files;
  const isNew = ({ facts }: FoundFile) => facts.modified >= since;
  const changed = new Set(files.filter(isNew).map(idOf));
  return files.filter((file) => changed.has(idOf(file)));
}

/** Files without a working directory of their own have that of their conversation. */
export function withMain(files: readonly FoundFile[]): readonly FoundFile[] {
  if (files.every(({ project }) => project !== undefined)) return files;
  const projects = projectsOf(files);
  return files.map((file) => {
    const project = file.project ?? projects.get(idOf(file));
    return project === undefined ? file : { ...file, project };
  });
}

/** The working directories of conversations: those of their main files where they have one. */
function projectsOf(files: readonly FoundFile[]): ReadonlyMap<string, string> {
  const projects = new Map<string, string>();
  for (const file of files)
    if (file.project !== undefined && (file.role === 'main' || !projects.has(idOf(file))))
      projects.set(idOf(file), file.project);
  return projects;
}

/** The files of a tool, and of a project those of the conversations that began there: a subagent may have worked elsewhere. */
export function wantedOf(
  files: readonly FoundFile[],
  { tool: only, project }: { readonly tool?: string; readonly project?: string },
): readonly FoundFile[] {
  const own = only === undefined ? files : files.filter(({ tool }) => tool.name === only);
  if (project === undefined) return own;
  const [projects, isIn] = [projectsOf(own), inProject(project)];
  return own.filter((file) => {
    const place = file.role === 'main' ? file.project : projects.get(idOf(file));
    return place !== undefined && isIn(place);
  });
}

/** Says whether a directory is one of a project, by whichever links either is named. */
function inProject(project: string): (directory: string) => boolean {
  const places = [...new Set([project, realBeginning(project)])];
  const known = new Map<string, boolean>();
  return (directory) => {
    const isIn =
      known.get(directory) ??
      [directory, realBeginning(directory)].some((one) => places.some((place) => isAtOrBelow(place, one)));
    known.set(directory, isIn);
    return isIn;
  };
}
