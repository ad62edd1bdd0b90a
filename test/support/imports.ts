import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root: string = fileURLToPath(new URL('../../', import.meta.url));

export interface Import {
  readonly file: string;
  readonly from: string;
  /** Erased when the file is run. */
  readonly typesOnly: boolean;
  /** `await import(…)`: loaded only when it is needed. */
  readonly dynamic: boolean;
}

/** Every import and re-export of one source text, including `import type`, `import('…')` and `typeof import('…')`. */
export function importsOf(file: string, text: string): readonly Import[] {
  const fixed = [...text.matchAll(/^(?:import|export)\s+(?:([^;'"`(=]*?)\s+from\s+)?'([^']+)'/gms)].map(
    ([, names = '', from = '']) => ({ file, from, typesOnly: isTypesOnly(names), dynamic: false }),
  );
  const dynamic = [...text.matchAll(/(typeof\s+)?\bimport\(\s*(?:\/\*.*?\*\/\s*)?['"`]([^'"`]+)['"`]/gs)].map(
    ([, type, from = '']) => ({ file, from, typesOnly: type !== undefined, dynamic: type === undefined }),
  );
  return [...fixed, ...dynamic];
}

/** Every import and re-export of the packages' sources. */
export function sourceImports(): readonly Import[] {
  return globSync('packages/*/src/**/*.ts', { cwd: root }).flatMap((file) =>
    importsOf(file, readFileSync(join(root, file), 'utf8')),
  );
}

function isTypesOnly(names: string): boolean {
  if (/^type\b/.test(names)) return true;
  const listed = /^\{(.*)\}$/s.exec(names)?.[1]?.split(',');
  const given = listed?.map((name) => name.trim()).filter((name) => name !== '');
  return given?.every((name) => name.startsWith('type ')) === true;
}
